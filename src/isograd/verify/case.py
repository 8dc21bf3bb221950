"""The case file of `verify`: read, checked, and turned into values.

The format is fixed by the interface contract and by case_schema.json; unknown keys are errors,
because a misspelt key would silently verify something else.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isograd.errors import CaseError
from isograd.frameworks.base import SideSpec
from isograd.verify.arguments import Argument, ArgumentReader, TensorSpec
from isograd.verify.case_schema import choices, default, properties

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Case", "TensorSpec", "case_of", "read_case"]


@dataclass(frozen=True)
class Case:
    """A checked case file.

    inputs, targets: what is drawn; inputs_from, targets_from: a callable that returns them instead.
    """

    path: Path
    reference: SideSpec
    port: SideSpec
    reference_python: str | None
    port_python: str | None
    inputs: tuple[Argument, ...]
    targets: tuple[Argument, ...]
    rename: dict[str, str] = field(default_factory=dict)
    mode: str = "both"
    steps: int = 10
    inputs_from: str | None = None
    targets_from: str | None = None
    compiled: str = "auto"
    input_gradients: bool = False

    @property
    def wants_compiled(self) -> bool:
        """Whether the port has a static graph, and the case asks for the stage."""
        return self.compiled != "off" and self.port.framework == "mindspore"

    @property
    def modes(self) -> tuple[str, ...]:
        return ("train", "eval") if self.mode == "both" else (self.mode,)


def read_case(path: Path) -> Case:
    """Read and check a case file; raises `CaseError` that names the key."""
    if not path.is_file():
        raise CaseError(f"there is no case file {path}", "Give the path of a TOML case file.")
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CaseError(f"{path} is not valid TOML: {error}", "Correct the file.") from None
    except OSError as error:
        raise CaseError(f"{path} cannot be read: {error.strerror}", "Check it.") from None
    return case_of(table, path)


def case_of(table: Mapping[str, Any], path: Path) -> Case:
    """Check the tables of a case; raises `CaseError` that names the key.

    path: of the case file, which messages name, and to whose folder paths are relative.
    """
    reader = _Reader(path)
    reader.only(table, properties("case"), "")
    reference, reference_python = reader.side(table, "reference", "torch")
    port, port_python = reader.side(table, "port", "mindspore")
    reader.both_or_neither(reference, port)
    weights = reader.table(table, "weights")
    reader.only(weights, properties("weights"), "weights")
    options = reader.table(table, "verify")
    reader.only(options, properties("verify"), "verify")
    mode = options.get("mode", default("verify", "mode"))
    if mode not in (modes := choices("verify", "mode")):
        raise reader.error(f"[verify] mode = {mode!r}", f"Use one of {', '.join(modes)}.")
    steps = options.get("steps", default("verify", "steps"))
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise reader.error(f"[verify] steps = {steps!r}", "Use an integer of 1 or more.")
    compiled = options.get("compiled", default("verify", "compiled"))
    if compiled not in (ways := choices("verify", "compiled")):
        raise reader.error(f"[verify] compiled = {compiled!r}", f"Use {', '.join(ways)}.")
    input_gradients = options.get("input_gradients", default("verify", "input_gradients"))
    if not isinstance(input_gradients, bool):
        raise reader.error(f"[verify] input_gradients = {input_gradients!r}", "Use true or false.")
    inputs, inputs_from = reader.arguments(table, "inputs")
    if not inputs and inputs_from is None:
        raise reader.error("there is no [[inputs]]", "Describe the arguments of the model.")
    targets, targets_from = reader.arguments(table, "targets")
    if any(t.name for t in targets):
        raise reader.error("[[targets]] has a name", "Targets are passed by position.")
    if reference.loss is None and (targets or targets_from):
        raise reader.error("[[targets]] without [reference] loss", "Name a loss on both sides.")
    if reference.optimizer and not reference.loss:
        raise reader.error("[reference] optimizer without loss", "Name a loss on both sides.")
    return Case(
        path,
        reference,
        port,
        reference_python,
        port_python,
        inputs,
        targets,
        reader.rename(weights),
        mode,
        steps,
        inputs_from,
        targets_from,
        compiled,
        input_gradients,
    )


#: Where keys belong that may stand in the wrong place, by the table that describes them.
_PLACES = {"verify": "[verify]", "side": "[reference] or [port]", "argument": "[[inputs]]"}


def _belongs(key: str, value: object) -> str:
    """Where an unknown key belongs, or all that an unknown table holds; "" where nowhere."""
    names = [*value] if isinstance(value, dict) else [key]
    for table, place in _PLACES.items():
        if names and all(name in properties(table) for name in names):
            verb = "belongs" if len(names) == 1 else "belong"
            return f"{' and '.join(map(repr, names))} {verb} in {place}."
    return ""


class _Reader:
    """Checks the parts of one case file; every message names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path.resolve().parent

    def error(self, what: str, advice: str) -> CaseError:
        return CaseError(f"{self._path}: {what}", advice)

    def only(self, table: Mapping[str, Any], known: Iterable[str], where: str) -> None:
        known = tuple(known)
        for key in table:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                place = f" in [{where}]" if where else ""
                hint = f"Did you mean {close[0]!r}?" if close else _belongs(key, table[key])
                hint = hint or f"Known: {', '.join(known)}."
                raise self.error(f"unknown key {key!r}{place}", hint)

    def table(self, parent: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = parent.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f"{key} is not a table", f"Write [{key}].")
        return value

    def side(self, table: Mapping[str, Any], key: str, usual: str) -> tuple[SideSpec, str | None]:
        if key not in table:
            raise self.error(f"there is no [{key}]", f"Add [{key}] with framework and model.")
        side = self.table(table, key)
        self.only(side, properties("side"), key)
        for name, rule in properties("side").items():
            is_text = rule.get("type") == "string" or name == "framework"
            if is_text and name in side and not isinstance(side[name], str):
                raise self.error(f"[{key}] {name} is not a text", "Write it in quotes.")
        framework = side.get("framework", usual)
        if framework not in choices("side", "framework"):
            raise self.error(f"[{key}] framework = {framework!r}", "Use 'torch' or 'mindspore'.")
        if "model" not in side:
            raise self.error(f"[{key}] has no model", 'Name it: model = "file.py:build".')
        device = side.get("device")
        if device is not None and framework != "mindspore":
            raise self.error(
                f"[{key}] device = {device!r} of a {framework} side",
                "Only MindSpore's side has a device.",
            )
        if device is not None and device not in (devices := choices("side", "device")):
            raise self.error(f"[{key}] device = {device!r}", f"Use one of {', '.join(devices)}.")
        python = side.get("python")
        if python is not None and ("/" in python and not python.startswith(("/", "~"))):
            python = str(self._folder / python)
        spec = SideSpec(
            framework,
            side["model"],
            str(self._folder),
            self.table(side, "kwargs"),
            side.get("loss"),
            side.get("optimizer"),
            side.get("reset"),
            device,
        )
        return spec, python

    def both_or_neither(self, reference: SideSpec, port: SideSpec) -> None:
        for key in ("loss", "optimizer"):
            has = (getattr(reference, key) is not None, getattr(port, key) is not None)
            if has[0] != has[1]:
                there, missing = ("reference", "port") if has[0] else ("port", "reference")
                raise self.error(
                    f"[{missing}] has no {key}, but [{there}] has one",
                    f"Name a {key} on both sides, or on neither to skip its stages.",
                )

    def arguments(
        self, table: Mapping[str, Any], key: str
    ) -> tuple[tuple[Argument, ...], str | None]:
        """What is drawn, or the name of the callable that returns it."""
        given = table.get(key, [])
        if isinstance(given, str):
            return (), given
        if not isinstance(given, list) or not all(isinstance(e, dict) for e in given):
            raise self.error(
                f"{key} is not an array of tables",
                f'Write [[{key}]], or {key} = "file.py:name" above the first table.',
            )
        reader = ArgumentReader(self._folder, self.error, self.only)
        return tuple(reader.argument(e, f"{key}, entry {i + 1}") for i, e in enumerate(given)), None

    def rename(self, weights: dict[str, Any]) -> dict[str, str]:
        rename = self.table(weights, "rename")
        for key, value in rename.items():
            if not isinstance(value, str):
                raise self.error(
                    f"[weights] rename: {key!r} is not renamed to a text",
                    'Write rename = { "torch.name" = "mindspore.name" }, quoting both names.',
                )
        return dict(rename)
