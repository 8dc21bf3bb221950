"""einops: axes by name, of tensors and of numpy arrays, without einops itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.layers import einsum
from isograd.runtime.reductions import amax, amin
from isograd.runtime.torch_module import Module

#: The axes of one place of a pattern, in brackets or alone.
Places = list[list[str]]


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """Axes by name in another order, split or merged: "b c h w -> b (h w) c"."""
    return _applied(tensor, pattern, None, axes_lengths)


def repeat(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """As rearrange; axes that stand on the right alone are new and repeat the rest."""
    return _applied(tensor, pattern, None, axes_lengths)


def reduce(
    tensor: Any, pattern: str, reduction: str | Callable[..., Any], **axes_lengths: int
) -> Any:
    """As rearrange; axes that stand on the left alone are taken together.

    reduction: "min", "max", "sum", "mean", "prod", "any", "all", or a function of a tensor and
    its axes.
    """
    return _applied(tensor, pattern, reduction, axes_lengths)


def named_einsum(*tensors_and_pattern: Any) -> Any:
    """einsum with names of any length: "batch i d, batch j d -> batch i j"."""
    *tensors, pattern = tensors_and_pattern
    return einsum(_spelled(pattern), *tensors)


@ops.constexpr  # type: ignore[untyped-decorator]  # MindSpore's has no types
def _spelled(pattern: str) -> str:
    """The equation with a letter for each name."""
    left, _, right = pattern.partition("->")
    names = sorted(set(pattern.replace("->", " ").replace(",", " ").split()) - {"..."})
    letters = dict(zip(names, "abcdefghijklmnopqrstuvwxyz", strict=False)) | {"...": "..."}
    sides = [",".join("".join(letters[name] for name in term.split()) for term in side.split(","))
             for side in (left, right)]  # fmt: skip
    return "->".join(sides)


def pack(tensors: Sequence[Any], pattern: str) -> tuple[Any, list[tuple[int, ...]]]:
    """Tensors one behind the other along "*", which stands for any axes; with those axes' sizes."""
    before, after = (len(side.split()) for side in pattern.split("*"))
    flat, sizes = [], []
    for tensor in tensors:
        shape = tuple(tensor.shape)
        end = len(shape) - after
        if end < before:
            raise RuntimeError(f"shape {shape} has too few axes for {pattern!r}")
        sizes.append(shape[before:end])
        flat.append(tensor.reshape((*shape[:before], math.prod(shape[before:end]), *shape[end:])))
    is_array = isinstance(flat[0], np.ndarray)
    return (np.concatenate(flat, before) if is_array else ops.cat(flat, before)), sizes


def unpack(tensor: Any, packed_shapes: Sequence[Sequence[int]], pattern: str) -> list[Any]:
    """What pack put together; one size may be -1."""
    before = len(pattern.split("*")[0].split())
    shape = tuple(tensor.shape)
    lengths = [-1 if -1 in size else math.prod(size) for size in packed_shapes]
    if lengths.count(-1) > 1:
        raise RuntimeError(f"more than one of the sizes {packed_shapes} is unknown")
    if -1 in lengths:
        lengths[lengths.index(-1)] = shape[before] - sum(lengths) - 1
    if sum(lengths) != shape[before]:
        raise RuntimeError(f"sizes {packed_shapes} do not make {shape[before]}")
    found, start = [], 0
    for length, size in zip(lengths, packed_shapes):
        part = tensor[(slice(None),) * before + (slice(start, start + length),)]
        found.append(part.reshape((*shape[:before], *size, *shape[before + 1 :])))
        start += length
    return found


def parse_shape(x: Any, pattern: str) -> dict[str, int]:
    """The sizes of axes by name; "_" and "..." name none."""
    names, places = _named_places(pattern, tuple(x.shape))
    return {name: x.shape[place] for name, place in zip(names, places)}


@ops.constexpr  # type: ignore[untyped-decorator]  # the same
def _named_places(pattern: str, shape: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names of axes, and which axis of a tensor each is; checks the numbers among them."""
    found: dict[str, int] = {}
    places, _ = _places_of(pattern, len(shape), pattern)
    for at, (place, length) in enumerate(zip(places, shape)):
        for name in place or ["1"]:
            if name.isdecimal() and int(name) != length:
                raise RuntimeError(f"an axis of {shape} is not {name} as in {pattern!r}")
            if not name.isdecimal() and name != "_" and not name.startswith("..."):
                found[name] = at
    return tuple(found), tuple(found.values())


class Rearrange(Module):
    """rearrange as a layer."""

    def __init__(self, pattern: str, **axes_lengths: int) -> None:
        super().__init__()
        self.pattern = pattern
        self.axes_lengths = axes_lengths

    def construct(self, x: Any) -> Any:
        """The axes in another order."""
        return _applied(x, self.pattern, None, self.axes_lengths)


class Reduce(Module):
    """reduce as a layer."""

    def __init__(self, pattern: str, reduction: Any, **axes_lengths: int) -> None:
        super().__init__()
        self.pattern = pattern
        self.reduction = reduction
        self.axes_lengths = axes_lengths

    def construct(self, x: Any) -> Any:
        """Axes taken together."""
        return _applied(x, self.pattern, self.reduction, self.axes_lengths)


def _places(side: str, dots: Sequence[str] = ("...",)) -> Places:
    """The axes by place: "b (h 2) 1" as [[b], [h, 2], []]; dots: what "..." stands for."""
    found: Places = []
    is_open = False
    for word in side.replace("(", " ( ").replace(")", " ) ").replace("\u2026", "...").split():
        names = [] if word == "1" else list(dots) if word == "..." else [word]
        if word in ("(", ")"):
            is_open = word == "("
            found += [[]] if is_open else []
        elif is_open:
            found[-1] += names
        else:
            found += [[name] for name in names] if word == "..." else [names]
    return found


def _places_of(side: str, rank: int, pattern: str) -> tuple[Places, list[str]]:
    """The axes by place of a tensor of so many axes, and those that "..." stands for."""
    dots = [f"...{number}" for number in range(rank - len(_places(side, ())))]
    dots = dots if "..." in _flat(_places(side)) else []
    places = _places(side, dots)
    if len(places) != rank:
        raise RuntimeError(f"{rank} axes do not fit {pattern!r}")
    return places, dots


def _flat(places: Places) -> list[str]:
    return [name for place in places for name in place]


def _lengths(
    places: Places, shape: tuple[int, ...], given: Mapping[str, int], pattern: str
) -> dict[str, int]:
    """The length of each axis on the left; one of each place may be found by division."""
    found: dict[str, int] = {}
    for place, length in zip(places, shape):
        known = {name: given[name] for name in place if name in given}
        open_names = [name for name in place if name not in known]
        rest, left = divmod(length, math.prod(known.values()) or 1)
        if left or len(open_names) > 1 or (not open_names and rest != 1 and length):
            raise RuntimeError(f"shape {shape} does not fit {pattern!r} with {dict(given)}")
        found |= known | dict.fromkeys(open_names, rest)
    return found


def _numbered(places: Places, side: str, given: dict[str, int]) -> Places:
    """Names for axes that are numbers, whose lengths join those given."""
    found = []
    for index, place in enumerate(places):
        names = [f"{side}{index}.{n}" if name.isdecimal() else name for n, name in enumerate(place)]
        given.update({new: int(old) for new, old in zip(names, place) if new != old})
        found.append(names)
    return found


# At compile time: the static graph has no sets and no nested comprehensions.
@ops.constexpr  # type: ignore[untyped-decorator]  # the same
def _plan(
    pattern: str,
    shape: tuple[int, ...],
    names_given: tuple[str, ...],
    lengths_given: tuple[int, ...],
    is_reduced: bool,
) -> tuple[tuple[int, ...], ...]:
    """What to do: shape to split into, axes that go, order, shape with ones, full shape, merged.

    An empty order or full shape means that nothing is to be done.
    """
    left_side, _, right_side = pattern.partition("->")
    given = dict(zip(names_given, lengths_given))
    left, dots = _places_of(left_side, len(shape), pattern)
    left = _numbered(left, "left", given)
    right = _numbered(_places(right_side, dots), "right", given)
    lengths = _lengths(left, shape, given, pattern)
    names, wanted = _flat(left), _flat(right)
    new = [name for name in wanted if name not in lengths]
    gone = tuple(axis for axis, name in enumerate(names) if name not in wanted)
    if (gone and not is_reduced) or (new and is_reduced):
        raise RuntimeError(f"{pattern!r} has axes on one side alone")
    if any(name not in given for name in new):
        raise RuntimeError(f"the lengths of {new} in {pattern!r} are not given")
    split = tuple(lengths[name] for name in names)
    kept = [name for name in names if name in wanted]
    order = tuple(kept.index(name) for name in wanted if name in kept)
    ones = tuple(lengths.get(name, 1) for name in wanted)
    lengths |= {name: given[name] for name in new}
    full = tuple(lengths[name] for name in wanted) if new else ()
    merged = tuple(math.prod(lengths[name] for name in place) for place in right)
    return split, gone, () if order == tuple(sorted(order)) else order, ones, full, merged


def _applied(tensor: Any, pattern: str, reduction: Any, axes_lengths: Mapping[str, int]) -> Any:
    if isinstance(tensor, (list, tuple)):
        is_array = isinstance(tensor[0], np.ndarray)
        tensor = np.stack(tensor) if is_array else ops.stack(tuple(tensor))
    names, lengths = tuple(axes_lengths.keys()), tuple(axes_lengths.values())
    plan = _plan(pattern, tuple(tensor.shape), names, lengths, reduction is not None)
    split, gone, order, ones, full, merged = plan
    tensor = tensor.reshape(split)
    if gone:
        tensor = _reduced(tensor, reduction, gone)
    if isinstance(tensor, np.ndarray):
        tensor = tensor.transpose(order) if order else tensor
        tensor = np.broadcast_to(tensor.reshape(ones), full) if full else tensor
    else:
        tensor = ops.transpose(tensor, order) if order else tensor
        tensor = ops.broadcast_to(tensor.reshape(ones), full) if full else tensor
    return tensor.reshape(merged)


def _reduced(tensor: Any, reduction: Any, axes: tuple[int, ...]) -> Any:
    if callable(reduction):
        return reduction(tensor, axes)
    if isinstance(tensor, np.ndarray):
        return getattr(tensor, reduction)(axis=axes)
    if reduction in ("max", "min"):
        return (amax if reduction == "max" else amin)(tensor, axes)
    if reduction == "prod":
        for axis in reversed(axes):
            tensor = ops.prod(tensor, axis)
        return tensor
    if reduction in ("any", "all"):
        return getattr(ops, reduction)(tensor.astype(ms.bool_), axes)
    if reduction not in ("sum", "mean"):
        raise RuntimeError(f"unknown reduction {reduction!r}")
    return ops.mean(tensor, axes) if reduction == "mean" else ops.sum(tensor, axes)
