"""The case file of `verify`: read, checked, and turned into values.

The format is fixed by the interface contract; unknown keys are errors, because a misspelt key
would silently verify something else.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isograd.errors import CaseError
from isograd.frameworks.base import SideSpec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SIDE_KEYS = ("framework", "model", "loss", "optimizer", "python", "kwargs")
_TENSOR_KEYS = ("shape", "dtype", "fill", "seed", "name", "low", "high", "file")
_FILLS = ("normal", "uniform", "integers", "zeros", "ones")
_MODES = ("train", "eval", "both")
_DTYPES = (
    "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 bool complex64 complex128"
).split()


@dataclass(frozen=True)
class TensorSpec:
    """How an input or a target is made; exactly one of fill and file is set."""

    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    fill: str | None = "normal"
    seed: int = 0
    name: str | None = None
    low: float | None = None
    high: float | None = None
    file: Path | None = None


@dataclass(frozen=True)
class Case:
    """A checked case file."""

    path: Path
    reference: SideSpec
    port: SideSpec
    reference_python: str | None
    port_python: str | None
    inputs: tuple[TensorSpec, ...]
    targets: tuple[TensorSpec, ...]
    rename: dict[str, str] = field(default_factory=dict)
    mode: str = "both"
    steps: int = 10

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
    reader = _Reader(path)
    reader.only(table, ("reference", "port", "inputs", "targets", "weights", "verify"), "")
    reference, reference_python = reader.side(table, "reference", "torch")
    port, port_python = reader.side(table, "port", "mindspore")
    reader.both_or_neither(reference, port)
    weights = reader.table(table, "weights")
    reader.only(weights, ("rename",), "weights")
    options = reader.table(table, "verify")
    reader.only(options, ("mode", "steps"), "verify")
    mode = options.get("mode", "both")
    if mode not in _MODES:
        raise reader.error(f"[verify] mode = {mode!r}", f"Use one of {', '.join(_MODES)}.")
    steps = options.get("steps", 10)
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise reader.error(f"[verify] steps = {steps!r}", "Use a whole number of 1 or more.")
    inputs = reader.tensors(table, "inputs")
    if not inputs:
        raise reader.error("there is no [[inputs]]", "Describe the arguments of the model.")
    targets = reader.tensors(table, "targets")
    if any(t.name for t in targets):
        raise reader.error("[[targets]] has a name", "Targets are passed by position.")
    if reference.loss is None and targets:
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
    )


class _Reader:
    """Checks the parts of one case file; every message names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path.resolve().parent

    def error(self, what: str, advice: str) -> CaseError:
        return CaseError(f"{self._path}: {what}", advice)

    def only(self, table: dict[str, Any], known: Iterable[str], where: str) -> None:
        known = tuple(known)
        for key in table:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                place = f" in [{where}]" if where else ""
                hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known)}."
                raise self.error(f"unknown key {key!r}{place}", hint)

    def table(self, parent: dict[str, Any], key: str) -> dict[str, Any]:
        value = parent.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f"{key} is not a table", f"Write [{key}].")
        return value

    def side(self, table: dict[str, Any], key: str, default: str) -> tuple[SideSpec, str | None]:
        if key not in table:
            raise self.error(f"there is no [{key}]", f"Add [{key}] with framework and model.")
        side = self.table(table, key)
        self.only(side, _SIDE_KEYS, key)
        for name in ("framework", "model", "loss", "optimizer", "python"):
            if name in side and not isinstance(side[name], str):
                raise self.error(f"[{key}] {name} is not a text", "Write it in quotes.")
        framework = side.get("framework", default)
        if framework not in ("torch", "mindspore", "fake"):
            raise self.error(f"[{key}] framework = {framework!r}", "Use 'torch' or 'mindspore'.")
        if "model" not in side:
            raise self.error(f"[{key}] has no model", 'Name it: model = "file.py:build".')
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
        )
        return spec, python

    def both_or_neither(self, reference: SideSpec, port: SideSpec) -> None:
        for key in ("loss", "optimizer"):
            has = (getattr(reference, key) is not None, getattr(port, key) is not None)
            if has[0] != has[1]:
                missing = "port" if has[0] else "reference"
                raise self.error(
                    f"[{missing}] has no {key}, but the other side has one",
                    f"Name a {key} on both sides, or on neither to skip its stages.",
                )

    def tensors(self, table: dict[str, Any], key: str) -> tuple[TensorSpec, ...]:
        entries = table.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise self.error(f"{key} is not an array of tables", f"Write [[{key}]].")
        return tuple(self._tensor(e, f"{key}, entry {i + 1}") for i, e in enumerate(entries))

    def _tensor(self, entry: dict[str, Any], where: str) -> TensorSpec:
        self.only(entry, _TENSOR_KEYS, where)
        name = entry.get("name")
        if name is not None and not str(name).isidentifier():
            raise self.error(f"{where}: name = {name!r}", "Use a Python argument's name.")
        if "file" in entry:
            if "fill" in entry or "shape" in entry:
                raise self.error(f"{where}: both file and shape or fill", "Keep one of them.")
            path = self._folder / str(entry["file"])
            if not path.is_file():
                raise self.error(f"{where}: there is no file {path}", "Correct the path.")
            return TensorSpec(fill=None, file=path, name=name)
        shape = entry.get("shape")
        if not isinstance(shape, list) or not all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape
        ):
            raise self.error(f"{where}: shape = {shape!r}", "Write it as shape = [2, 3].")
        dtype = entry.get("dtype", "float32")
        if dtype not in _DTYPES:
            raise self.error(f"{where}: dtype = {dtype!r}", f"Use one of {', '.join(_DTYPES)}.")
        fill, low, high = self._fill(entry, dtype, where)
        seed = entry.get("seed", 0)
        if not isinstance(seed, int) or seed < 0:
            raise self.error(f"{where}: seed = {seed!r}", "Use a whole number of 0 or more.")
        return TensorSpec(tuple(shape), dtype, fill, seed, name, low, high)

    def _fill(
        self, entry: dict[str, Any], dtype: str, where: str
    ) -> tuple[str, float | None, float | None]:
        """How a tensor is filled, and between which bounds."""
        integral = "int" in dtype
        fill = entry.get("fill", "integers" if integral else "normal")
        if fill not in _FILLS:
            raise self.error(f"{where}: fill = {fill!r}", f"Use one of {', '.join(_FILLS)}.")
        if integral and fill in ("normal", "uniform"):
            raise self.error(f"{where}: fill = {fill!r} for {dtype}", "Use fill = 'integers'.")
        low, high = entry.get("low"), entry.get("high")
        if fill == "integers":
            low, high = 0 if low is None else low, 2 if high is None else high
        for bound in (low, high):
            if bound is not None and not isinstance(bound, (int, float)):
                raise self.error(f"{where}: low or high is no number", "Use numbers.")
        if low is not None and high is not None and low >= high:
            raise self.error(f"{where}: low = {low} is not below high = {high}", "Correct them.")
        return fill, low, high

    def rename(self, weights: dict[str, Any]) -> dict[str, str]:
        rename = self.table(weights, "rename")
        for key, value in rename.items():
            if not isinstance(value, str):
                raise self.error(
                    f"[weights] rename: {key!r} is not renamed to a text",
                    'Write rename = { "torch.name" = "mindspore.name" }, quoting both names.',
                )
        return dict(rename)
