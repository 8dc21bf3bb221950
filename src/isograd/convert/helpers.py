"""Small helpers of torch's that are plain Python; copied into the ports that use them."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Union, get_args, get_origin


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


def reduction_number(reduction: str) -> int:
    """The number that torch has for a reduction of losses.  Raises ValueError for another name."""
    numbers = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return numbers[reduction]


def is_of_type(value: Any, kind: Any) -> bool:
    """`torch.jit.isinstance`: also of `list[int]`, `dict[str, Tensor]`, `Optional[…]`, `int | str`.

    The elements of a container are looked at, one after the other; an empty one fits.
    """
    if isinstance(kind, tuple):
        return any(is_of_type(value, part) for part in kind)
    container, parts = get_origin(kind), get_args(kind)
    if container is None:
        return value is None if kind is None else isinstance(value, kind)
    if container in (Union, types.UnionType):
        return any(is_of_type(value, part) for part in parts)
    if not isinstance(value, container):
        return False
    if issubclass(container, dict):
        return all(
            is_of_type(key, parts[0]) and is_of_type(held, parts[1]) for key, held in value.items()
        )
    if issubclass(container, tuple) and parts[-1:] != (...,):
        fits = len(value) == len(parts)
        return fits and all(map(is_of_type, value, parts))
    return all(is_of_type(part, parts[0]) for part in value)


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
            f"{self.__dict__.get('_place')} was asked for {name!r}, which no text of the reference "
            "holds: add it where this look-up is made."
        )
