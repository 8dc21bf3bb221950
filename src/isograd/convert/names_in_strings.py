"""Names of torch that code looks up by a text: `getattr(nn, kind)`, `getattr(F, f"conv{n}d")`.

What is asked for is known when the network is built, not before.  The port can find what the
project's own texts name, in its code and in its settings (YAML, JSON, TOML).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

#: Code that looks a computed name up in something.
LOOKS_UP = re.compile(rb"\b(?:get|has)attr\(\s*[A-Za-z_][\w.]*\s*,\s*(?![\"'])")
#: Files whose words may be names of layers.
SETTINGS = frozenset((".yaml", ".yml", ".json", ".toml"))
#: Packages of torch that are asked so.
LOOKED_IN = tuple(
    """torch torch.nn torch.nn.functional torch.nn.init torch.optim torch.optim.lr_scheduler
    torchvision.transforms""".split()
)
_LARGEST_SETTINGS_BYTES = 1 << 20
_TEXTS = re.compile(rb"[\"']([A-Za-z_]\w{0,60})[\"']")
_WORDS = re.compile(rb"[A-Za-z_]\w{0,60}")
#: What a format puts in: `"Conv%dd" % n`, `"Conv{}d".format(n)`.
_PUT_IN = re.compile(r"%[sdri]|\{[^{}]*\}")
_CASES = frozenset(("lower", "upper", "capitalize", "title", "casefold", "swapcase"))


def texts_of(raw: bytes) -> set[str]:
    """The texts of a Python file that may be names."""
    return _decoded(_TEXTS.findall(raw))


def words_of(raw: bytes) -> set[str]:
    """The words of a file with settings; of a large one, which holds data, none."""
    if len(raw) > _LARGEST_SETTINGS_BYTES:
        return set()
    return _decoded(_WORDS.findall(raw))


def _decoded(found: Iterable[bytes]) -> set[str]:
    return {word.decode("ascii") for word in set(found)}


@dataclass(frozen=True)
class Asked:
    """What a look-up may ask for, in alphabetical order; is_whole: it can be nothing else."""

    names: tuple[str, ...]
    is_whole: bool = False


def asked_names(asked: ast.expr, members: Iterable[str], words: frozenset[str]) -> Asked:
    """Which public members of a package an expression may ask for.

    Where parts of the name are known (`f"Conv{n}d"`) all that fit; else those among the words,
    the texts of the project.
    """
    shape = _shape(asked)
    if shape:
        fits = re.compile(shape)
        return Asked(tuple(sorted(name for name in members if fits.fullmatch(name))), True)
    if any(isinstance(part, ast.Attribute) and part.attr in _CASES for part in ast.walk(asked)):
        folded = {word.casefold() for word in words}
        return Asked(tuple(sorted(name for name in members if name.casefold() in folded)))
    return Asked(tuple(sorted(words.intersection(members))))


def _shape(asked: ast.expr) -> str:
    """A pattern of the names that a formatted text may be; empty where nothing of it is known."""
    parts: list[str] = []
    if isinstance(asked, ast.JoinedStr):
        parts = [
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w*"
            for part in asked.values
        ]
    elif isinstance(asked, ast.BinOp) and isinstance(asked.op, ast.Add):
        sides = (asked.left, asked.right)
        parts = [
            re.escape(side.value)
            if isinstance(side, ast.Constant) and isinstance(side.value, str)
            else r"\w*"
            for side in sides
        ]
    else:
        text = _formatted(asked)
        parts = [re.escape(part) for part in _PUT_IN.split(text)] if text else []
        parts = [r"\w*".join(parts)] if parts else []
    return "".join(parts) if any(part.replace(r"\w*", "") for part in parts) else ""


def _formatted(asked: ast.expr) -> str:
    """The text of `text % values` and `text.format(values)`."""
    text: ast.expr | None = None
    if isinstance(asked, ast.BinOp) and isinstance(asked.op, ast.Mod):
        text = asked.left
    elif isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute):
        text = asked.func.value if asked.func.attr == "format" else None
    return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
