"""Experiments with real chance: what a dropout drops, and along which axes a mask is drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from isograd.frameworks.base import DropoutSite, MaskDraw, Tensors
from isograd.frameworks.common import users_line
from isograd.frameworks.kinds import MASKS
from isograd.tensors import Array

#: Channels of the experiment, 600 × 600: with 318,500 draws on each side a difference of one
#: percentage point at the most variable rate, 1/2, is found with probability 0.999 at a false-alarm
#: rate of 1e-6, because (4.89 + 3.09)² · 2 · 1/4 / 0.01² = 318,500.
PROBE_CHANNELS = (600, 600)


def probe_shape(spatial: int) -> tuple[int, ...]:
    """The shape of the experiment's input: rows, channels, and two places along each axis."""
    return (*PROBE_CHANNELS, *[2] * spatial)


def site_of(module: str, occurrence: int, dropped: Any, scale: float) -> DropoutSite:
    """What an experiment showed; dropped: boolean, rows × channels × places.

    An axis along which nothing changes shares one draw: a channel of Dropout2d is one draw, not
    one for each of its places.
    """
    mask = np.asarray(dropped)
    share = float(mask.mean())
    drawn = mask
    for axis in range(mask.ndim):
        first = drawn.take([0], axis)
        if np.array_equal(np.broadcast_to(first, drawn.shape), drawn):
            drawn = first
    count = drawn.size
    if share in (0.0, 1.0):  # nothing shows what was drawn together
        count = mask.shape[0]
    return DropoutSite(module, occurrence, share, scale, count)


#: Two runs gave the same numbers where they differ by no more than this share of the greatest.
_SAME = 1e-4


def held_axes(rank: int) -> tuple[tuple[int, ...], ...]:
    """Every set of a tensor's axes, the empty one first."""
    return tuple(
        itertools.chain.from_iterable(
            itertools.combinations(range(rank), n) for n in range(rank + 1)
        )
    )


def equal_pairs(
    run: Callable[[int], Tensors],
    starts: Mapping[str, tuple[int, ...]],
    pairs: int,
    seed: int,
    partners: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[str, tuple[int, ...]]:
    """In how many pairs of runs with real chance a part of each tensor is the same.

    One part for each set of axes of `held_axes`: these axes stay at the start, and the others are
    whole.  A mask that is drawn for each sample leaves a whole sample the same more often than
    one that is drawn for each element.  Pairs are disjoint, so they are independent.

    Noise leaves nothing the same: with `partners`, a place along each axis besides the start, it
    is counted too in how many pairs the two places changed in the same direction, axis by axis.
    Noise that is shared along an axis moves them together.

    run: draws by the seed that it is given.
    """
    partners = partners or {}
    counts = {
        key: [0] * (len(held_axes(len(start))) + len(partners.get(key, ())))
        for key, start in starts.items()
    }
    seeds = itertools.count(1 + seed * 2 * pairs)
    for _ in range(pairs):
        first, second = run(next(seeds)), run(next(seeds))
        for key, start in starts.items():
            one, other = first.get(key), second.get(key)
            axes = partners.get(key, ())
            if one is not None and other is not None and axes:
                for axis, agrees in enumerate(_agreements(one.values, other.values, start, axes)):
                    counts[key][axis - len(axes)] += agrees
            for number, held in enumerate(held_axes(len(start))):
                part = tuple(
                    place if axis in held else slice(None) for axis, place in enumerate(start)
                )
                if one is None or other is None:  # a run may leave a module out by chance
                    counts[key][number] += one is other
                else:
                    counts[key][number] += _is_same(one.values[part], other.values[part])
    return {key: tuple(found) for key, found in counts.items()}


def _agreements(
    one: Array, other: Array, start: tuple[int, ...], partners: tuple[int, ...]
) -> list[bool]:
    """For each axis, whether the start and its partner changed in the same direction, or not."""
    slack = _SAME * float(np.abs(one).max(initial=0.0))
    places = [start, *[(*start[:a], p, *start[a + 1 :]) for a, p in enumerate(partners)]]
    changes = [float(one[place]) - float(other[place]) for place in places]
    first, *others = [0.0 if abs(c) <= slack else math.copysign(1.0, c) for c in changes]
    return [first == sign for sign in others]


def _is_same(one: Array, other: Array) -> bool:
    scale = float(np.abs(one).max(initial=0.0))
    return bool(np.abs(np.subtract(one, other)).max(initial=0.0) <= _SAME * scale)


class MaskDraws:
    """Collects what is drawn in a recorded pass."""

    def __init__(self, current_call: Callable[[], int | None]) -> None:
        self._current_call = current_call
        self.found: list[MaskDraw] = []

    def add(self, function: str, shape: tuple[int, ...], kind: str = MASKS) -> None:
        """Note that the running call draws these numbers."""
        call = self._current_call()
        if call is None or math.prod(shape) == 0:
            return
        place = users_line()
        where = None if place is None else f"{Path(place[0]).name}:{place[1]}"
        self.found.append(MaskDraw(call, function, tuple(map(int, shape)), where, kind))


def shape_of_draws(shape: tuple[int, ...], by_channel: bool) -> tuple[int, ...]:
    """The independent numbers of a dropout of a tensor of this shape."""
    return (*shape[:2], *[1] * len(shape[2:])) if by_channel else shape
