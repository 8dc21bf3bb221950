"""Nested arguments and results as a flat list of tensors and a skeleton that holds the rest.

Networks take and return tuples, lists, dictionaries, named tuples and dataclasses; both adapters
flatten them here so that tensors can be recorded, replaced and put back in the same places.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 32


@dataclass(frozen=True)
class Slot:
    """The place of the tensor with this number."""

    number: int


@dataclass(frozen=True)
class Opaque:
    """A value that is no tensor and no container; kept as it is."""

    value: Any


def flatten(value: Any, is_tensor: Callable[[Any], bool]) -> tuple[list[Any], Any]:
    """Split a nested value into its tensors, in order, and a skeleton with numbered slots."""
    tensors: list[Any] = []

    def walk(item: Any, depth: int) -> Any:
        if is_tensor(item):
            tensors.append(item)
            return Slot(len(tensors) - 1)
        if depth > MAX_DEPTH:
            return Opaque(item)
        if isinstance(item, Mapping):
            return _Dict(item, {key: walk(part, depth + 1) for key, part in item.items()})
        if isinstance(item, (tuple, list)):
            return _Sequence(item, [walk(part, depth + 1) for part in item])
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            names = [f.name for f in dataclasses.fields(item)]
            return _Record(item, {n: walk(getattr(item, n), depth + 1) for n in names})
        return Opaque(item)

    return tensors, walk(value, 0)


def unflatten(skeleton: Any, tensors: list[Any]) -> Any:
    """Put tensors back into a skeleton made by `flatten`."""
    if isinstance(skeleton, Slot):
        return tensors[skeleton.number]
    if isinstance(skeleton, (_Dict, _Sequence, _Record)):
        return skeleton.rebuild(tensors)
    return skeleton.value


def slot_names(skeleton: Any, prefix: str = "") -> list[str]:
    """Name every tensor by its path, for example `0`, `1.hidden`; the only one is ``''``."""
    names = dict(_walk_names(skeleton, prefix))
    return [names[number] for number in sorted(names)]


def _walk_names(skeleton: Any, path: str) -> Iterator[tuple[int, str]]:
    if isinstance(skeleton, Slot):
        yield skeleton.number, path
    elif isinstance(skeleton, (_Dict, _Sequence, _Record)):
        for key, part in skeleton.children():
            yield from _walk_names(part, f"{path}.{key}" if path else str(key))


class _Dict:
    def __init__(self, original: Mapping[Any, Any], parts: dict[Any, Any]) -> None:
        self.kind: type[Any] = type(original)
        self.parts = parts

    def children(self) -> list[tuple[Any, Any]]:
        return list(self.parts.items())

    def rebuild(self, tensors: list[Any]) -> Any:
        values = {key: unflatten(part, tensors) for key, part in self.parts.items()}
        if self.kind is dict:
            return values
        try:
            return self.kind(**values)
        except TypeError:
            return values


class _Sequence:
    def __init__(self, original: Any, parts: list[Any]) -> None:
        self.kind: type[Any] = type(original)
        self.parts = parts

    def children(self) -> list[tuple[Any, Any]]:
        return list(enumerate(self.parts))

    def rebuild(self, tensors: list[Any]) -> Any:
        values = [unflatten(part, tensors) for part in self.parts]
        if self.kind is list:
            return values
        if hasattr(self.kind, "_fields"):
            return self.kind(*values)
        return tuple(values)


class _Record:
    def __init__(self, original: Any, parts: dict[str, Any]) -> None:
        self.kind: type[Any] = type(original)
        self.parts = parts

    def children(self) -> list[tuple[Any, Any]]:
        return list(self.parts.items())

    def rebuild(self, tensors: list[Any]) -> Any:
        return self.kind(**{n: unflatten(part, tensors) for n, part in self.parts.items()})
