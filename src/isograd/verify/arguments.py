"""One argument of a network or a loss, as a case file describes it: `[[inputs]]`, `[[targets]]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isograd.errors import CaseError
from isograd.verify.case_schema import choices, default, properties

Plain = bool | int | float | str | tuple["Plain", ...] | None
#: What an entry is besides a tensor; each excludes all other keys but `name`.
_INSTEAD = ("value", "none", "list", "tuple", "dict")
_MOST_NESTED = 16


@dataclass(frozen=True)
class TensorSpec:
    """A tensor; exactly one of fill and file is set.

    low, high: bounds of what is drawn; valid, padding: what a padding mask holds.
    """

    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    fill: str | None = "normal"
    seed: int = 0
    name: str | None = None
    low: float | None = None
    high: float | None = None
    file: Path | None = None
    valid: float = 1.0
    padding: float = 0.0


@dataclass(frozen=True)
class PlainSpec:
    """A value that is no tensor: None, a string, a number, a truth value, or a list of these."""

    value: Any
    name: str | None = None


@dataclass(frozen=True)
class ContainerSpec:
    """A list, tuple or dict of arguments; keys: of a dict, one for each part."""

    kind: str
    parts: tuple[Argument, ...]
    keys: tuple[str, ...] = ()
    name: str | None = None


Argument = TensorSpec | PlainSpec | ContainerSpec


class ArgumentReader:
    """Reads the entries of one case file; `error` makes an error that names the file."""

    def __init__(
        self,
        folder: Path,
        error: Callable[[str, str], CaseError],
        only: Callable[[Mapping[str, Any], Iterable[str], str], None],
    ) -> None:
        self._folder = folder
        self._error = error
        self._only = only

    def argument(self, entry: dict[str, Any], where: str, depth: int = 0) -> Argument:
        """Check one entry; raises `CaseError` that names the key."""
        self._only(entry, properties("argument"), where)
        name = entry.get("name")
        if name is not None and not str(name).isidentifier():
            raise self._error(f"{where}: name = {name!r}", "Use a Python argument's name.")
        kinds = [key for key in _INSTEAD if key in entry]
        if not kinds:
            return self._tensor(entry, where)
        others = [key for key in entry if key not in ("name", kinds[0])]
        if others:
            raise self._error(f"{where}: both {kinds[0]} and {others[0]}", "Keep one of them.")
        if kinds[0] in ("value", "none"):
            return PlainSpec(self._plain(entry, kinds[0], where), name)
        return self._container(entry[kinds[0]], kinds[0], name, where, depth)

    def _plain(self, entry: dict[str, Any], key: str, where: str) -> Plain:
        if key == "none":
            if entry["none"] is not True:
                raise self._error(f"{where}: none = {entry['none']!r}", "Write none = true.")
            return None
        if not _is_plain(entry["value"]):
            raise self._error(
                f"{where}: value = {entry['value']!r}",
                "Use a string, a number, true, false, or a list of these.",
            )
        return entry["value"]  # type: ignore[no-any-return]  # as _is_plain has found

    def _container(
        self, given: Any, kind: str, name: str | None, where: str, depth: int
    ) -> ContainerSpec:
        if depth >= _MOST_NESTED:
            raise self._error(f"{where}: {kind} is nested too deeply", "Use a callable instead.")
        is_dict = isinstance(given, dict)
        entries = list(given.values()) if is_dict else given
        if is_dict is not (kind == "dict") or not (
            isinstance(entries, list) and all(isinstance(part, dict) for part in entries)
        ):
            example = "{ x = { shape = [2] } }" if kind == "dict" else "[{ shape = [2] }]"
            raise self._error(f"{where}: {kind} = {given!r}", f"Write it as {kind} = {example}.")
        keys = tuple(given) if is_dict else ()
        labels = keys if is_dict else range(1, len(entries) + 1)
        parts = tuple(
            self.argument(part, f"{where}, {kind} {label}", depth + 1)
            for label, part in zip(labels, entries, strict=True)
        )
        if any(part.name for part in parts):
            raise self._error(f"{where}: a part of a {kind} has a name", "Name the entry itself.")
        return ContainerSpec(kind, parts, keys, name)

    def _tensor(self, entry: dict[str, Any], where: str) -> TensorSpec:
        name = entry.get("name")
        if "file" in entry:
            if "fill" in entry or "shape" in entry:
                raise self._error(f"{where}: both file and shape or fill", "Keep one of them.")
            path = self._folder / str(entry["file"])
            if not path.is_file():
                raise self._error(f"{where}: there is no file {path}", "Correct the path.")
            return TensorSpec(fill=None, file=path, name=name)
        shape = entry.get("shape")
        if not isinstance(shape, list) or not all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape
        ):
            raise self._error(f"{where}: shape = {shape!r}", "Write it as shape = [2, 3].")
        dtype = entry.get("dtype", default("argument", "dtype"))
        if dtype not in (dtypes := choices("argument", "dtype")):
            raise self._error(f"{where}: dtype = {dtype!r}", f"Use one of {', '.join(dtypes)}.")
        fill, low, high = self._fill(entry, dtype, where)
        seed = entry.get("seed", default("argument", "seed"))
        if not isinstance(seed, int) or seed < 0:
            raise self._error(f"{where}: seed = {seed!r}", "Use an integer of 0 or more.")
        valid, padding = self._marks(entry, fill, shape, where)
        return TensorSpec(tuple(shape), dtype, fill, seed, name, low, high, None, valid, padding)

    def _fill(
        self, entry: dict[str, Any], dtype: str, where: str
    ) -> tuple[str, float | None, float | None]:
        """How a tensor is filled, and between which bounds."""
        integral = "int" in dtype
        fill = entry.get("fill", "integers" if integral else "normal")
        if fill not in (fills := choices("argument", "fill")):
            raise self._error(f"{where}: fill = {fill!r}", f"Use one of {', '.join(fills)}.")
        if integral and fill in ("normal", "uniform"):
            raise self._error(f"{where}: fill = {fill!r} for {dtype}", "Use fill = 'integers'.")
        low, high = entry.get("low"), entry.get("high")
        if fill == "integers":
            low, high = 0 if low is None else low, 2 if high is None else high
        for bound in (low, high):
            if bound is not None and not isinstance(bound, (int, float)):
                raise self._error(f"{where}: low or high is no number", "Use numbers.")
        if low is not None and high is not None and low >= high:
            raise self._error(f"{where}: low = {low} is not below high = {high}", "Correct them.")
        return fill, low, high

    def _marks(
        self, entry: dict[str, Any], fill: str, shape: list[int], where: str
    ) -> tuple[float, float]:
        """What a padding mask holds at valid and at padded positions."""
        found = []
        for key in ("valid", "padding"):
            mark = entry.get(key, default("argument", key))
            if not isinstance(mark, (bool, int, float)):
                raise self._error(f"{where}: {key} = {mark!r}", "Use a number, true or false.")
            if key in entry and fill != "padding_mask":
                raise self._error(f"{where}: {key} without padding_mask", "Leave it out.")
            found.append(float(mark))
        if fill == "padding_mask" and not shape:
            raise self._error(f"{where}: a padding mask without an axis", "Give it a shape.")
        return found[0], found[1]


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(part) for part in value)
    return isinstance(value, (bool, int, float, str))
