"""What random networks are built of: `catalog.toml`, and every example of the knowledge."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import tomllib

from isograd.knowledge.entry import Entry, Example, Status
from isograd.knowledge.store import load_knowledge

_CATALOG = Path(__file__).with_name("catalog.toml")


@dataclass(frozen=True)
class Item:
    """A layer or a function of the catalog."""

    torch: str
    ranks: tuple[int, ...]
    native: str | None = None
    call: str = "{m}({x})"
    buffer: str = ""
    is_layer: bool = True
    weight: int = 1
    choose: dict[str, list[str]] = field(default_factory=dict)
    #: Choices for which MindSpore's own is known to be wrong, so that a port with it is no port.
    without_native: tuple[str, ...] = ()
    #: Shapes S, as an expression, for which MindSpore's own raises.
    unless: str = ""

    def native_text(self, texts: dict[str, str]) -> str | None:
        """MindSpore's own with these arguments, or None."""
        if not self.native or set(self.without_native) & set(texts.values()):
            return None
        return self.native.format(**texts)

    def takes(self, shape: Sequence[int]) -> bool:
        """Whether both frameworks compute it for a value of this shape."""
        names = {"S": tuple(shape), "max": max, "len": len}
        return not self.unless or not eval(self.unless, {}, names)  # noqa: S307 - our own table

    def arguments(self, shape: Sequence[int], draw: random.Random) -> dict[str, str]:
        """Texts of the arguments for a value of this shape."""
        names = {"S": tuple(shape), "r": len(shape), "B": shape[0], "D": shape[-1]}
        names["C"] = shape[1] if len(shape) > 1 else shape[0]
        texts = {key: repr(value) for key, value in names.items() if key in "BCD"}
        for name, choices in self.choose.items():
            chosen = draw.choice(choices)
            if chosen.startswith("`"):
                texts[name] = chosen.strip("`")
            else:
                texts[name] = repr(eval(chosen, {}, dict(names)))  # noqa: S307 - our own table
        return texts


@cache
def items() -> tuple[Item, ...]:
    """The catalog."""
    table = tomllib.loads(_CATALOG.read_text())
    found = []
    for kind in ("layer", "function"):
        for row in table[kind]:
            row.pop("draws", None)
            ranks = tuple(row.pop("ranks"))
            row["without_native"] = tuple(row.get("without_native", ()))
            found.append(Item(ranks=ranks, is_layer=kind == "layer", **row))
    return tuple(found)


@dataclass(frozen=True)
class Snippet:
    """An example of the knowledge: an expression over inputs, perhaps of a layer built before."""

    api: str
    code: str
    inputs: tuple[tuple[str, str], ...]
    layer: str = ""


@cache
def snippets() -> tuple[Snippet, ...]:
    """Every executed example whose value is compared, of what knowledge has a rewrite for."""
    found = []
    for entry in load_knowledge(with_examples=True).entries:
        if _is_usable(entry):
            found += [s for e in entry.examples if (s := _snippet(entry, e)) is not None]
    return tuple(found)


_PLACES = ("torch.nn.", "torch.Tensor.", "torch.special.", "torch.linalg.", "torch.fft.")
#: Names of what is no part of a network's forward pass.
_NOT_FORWARD = ("torch.nn.init.", "torch.nn.utils.", "torch.nn.Module.", "torch.nn.modules.")


def _is_usable(entry: Entry) -> bool:
    inside = entry.api.startswith(_PLACES) or entry.api.count(".") == 1
    known = entry.verified is not None and entry.verified.forward is True
    return (
        inside
        and known
        and entry.status in (Status.SUPPORTED, Status.DIFFERS)
        and not entry.api.startswith(_NOT_FORWARD)
    )


def _snippet(entry: Entry, example: Example) -> Snippet | None:
    if example.compare != "values" or example.port:
        return None
    try:
        body = ast.parse(example.code).body
    except SyntaxError:
        return None
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return None
    layer = _layer_of(body[0].value)
    code = example.code
    if layer is not None:
        call = body[0].value
        assert isinstance(call, ast.Call)
        arguments = [*call.args, *[k.value for k in call.keywords]]
        if any(k.arg is None for k in call.keywords) or not arguments:
            return None
        code = ast.unparse(ast.Call(ast.Name("LAYER"), call.args, call.keywords))
    return Snippet(entry.api, code, example.inputs, layer or "")


def _layer_of(node: ast.expr) -> str | None:
    """`torch.nn.Linear(4, 3)` of `torch.nn.Linear(4, 3)(x)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call):
        text = ast.unparse(node.func)
        return text if text.startswith("torch.nn.") and text[9].isupper() else None
    return None


def without_layers(snippet: Snippet) -> bool:
    """Whether nothing of `torch.nn`'s classes is built within the expression."""
    tree = ast.parse(snippet.code)
    names = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    return not any(n.startswith("torch.nn.") and n[9:10].isupper() for n in names)


def names_of(value: Any) -> list[str]:
    """The names that an expression reads."""
    return [n.id for n in ast.walk(ast.parse(value)) if isinstance(n, ast.Name)]
