"""Small helpers of torch's that are plain Python; copied into the ports that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any


def ntuple(count: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes a tuple of a value, or of so many times the same."""

    def parse(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else tuple(repeat(value, count))

    parse.__name__ = name
    return parse


single = ntuple(1, "single")
pair = ntuple(2, "pair")
triple = ntuple(3, "triple")
quadruple = ntuple(4, "quadruple")


def reverse_repeat_tuple(values: Iterable[Any], count: int) -> tuple[Any, ...]:
    """Each value so many times, the last first."""
    return tuple(value for value in reversed(tuple(values)) for _ in range(count))


def never(*_: Any, **__: Any) -> bool:
    """The answer to questions about torch's compilers and exporters."""
    return False


class Names:
    """What of a package of torch's is looked up by name: `getattr(nn, kind)`."""

    def __init__(self, place: str, **members: Any) -> None:
        self.__dict__.update(members)
        self._place = place

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self.__dict__.get('_place')} was asked for {name!r}, which no text of the original "
            "holds: add it where this look-up is made."
        )
