"""One pass over two float arrays in numpy, block by block; `numba_kernels.py` is the fast one.

Both add up blocks of the same size in the same order, so that counts, extremes and indices are the
same to the bit, and sums differ by float64 rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.compare.files.tally import (
    BLOCK,
    POWERS,
    SMALLEST_SQUARES,
    ULP_BASE,
    ULP_PLACES,
    Row,
)
from isograd.tensors import Array

Floats = NDArray[np.float64]


def measure(
    reference: Array,
    other: Array,
    bits: Array,
    other_bits: Array,
    mask: int,
    relative: float,
    low: float,
    high: float,
    marks: NDArray[np.uint8],
    ulps: NDArray[np.int64],
    histogram: NDArray[np.int64],
) -> Row:
    """Measure two arrays of one length; the fields of a `Tally` as far as its tables.

    reference, other: (n,) of any float dtype.
    bits, other_bits: (n,) int32 or int64 with the element's sign; `mask` leaves the magnitude.
    relative, low, high: an element is outside beyond relative × |reference| + an absolute
    allowance that is known to lie between low and high only.
    marks: (blocks,) uint8, written: 1 where that leaves a doubt; `recount` counts those blocks.
    ulps, histogram: int64 tables of shape (places,) to count in; (0,) where none is wanted.
    """
    sums = [0.0, 0.0, 0.0, 0.0]
    greatest, greatest_at, ratio, ratio_at = 0.0, -1, 0.0, -1
    counts = np.zeros(8, np.int64)  # finite, unequal, outside, and five of NaN and infinities
    is_any, is_any_other = False, False
    with np.errstate(all="ignore"):
        for start, first, second in _blocks(reference, other):
            first, second, finite, special = _settled(first, second)
            gap, size = np.abs(second - first), np.abs(first)
            here = _squares(gap, first, second)
            counts[3:] += special
            sums = [old + new for old, new in zip(sums, here, strict=True)]
            unequal = int(np.count_nonzero(gap))
            counts[0] += gap.size
            counts[1] += unequal + special[-1]
            limit = relative * size
            above = int(np.count_nonzero(gap > limit + high))
            if above == int(np.count_nonzero(gap > limit + low)):
                counts[2] += above + special[-1]
            else:
                marks[start // BLOCK] = 1
            is_any = is_any or (here[1] < SMALLEST_SQUARES and bool(first.any()))
            is_any_other = is_any_other or (here[2] < SMALLEST_SQUARES and bool(second.any()))
            stop = start + BLOCK
            if histogram.size:
                _count(gap, bits[start:stop], other_bits[start:stop], mask, finite, ulps, histogram)
            if not unequal:
                continue
            greatest, greatest_at = _better(gap, finite, start, greatest, greatest_at)
            if ratio != np.inf:
                quotient = np.where(gap > 0.0, gap / size, 0.0)
                ratio, ratio_at = _better(quotient, finite, start, ratio, ratio_at)
    total, unequal, outside, *rest = (int(count) for count in counts)
    return (
        total, *sums, greatest, greatest_at, ratio, ratio_at, unequal, outside, *rest, is_any,
        is_any_other,
    )  # fmt: skip


def recount(
    reference: Array, other: Array, relative: float, absolute: float, marks: NDArray[np.uint8]
) -> int:
    """How many elements of the marked blocks are outside.

    reference, other: (n,) of any float dtype.
    marks: (blocks,) uint8, not 0 for a block to count.
    """
    outside = 0
    with np.errstate(all="ignore"):
        for start, first, second in _blocks(reference, other):
            if marks[start // BLOCK]:
                finite = np.isfinite(first) & np.isfinite(second)
                beyond = np.abs(second - first) > absolute + relative * np.abs(first)
                agree = (first == second) | (np.isnan(first) & np.isnan(second))
                outside += int(np.count_nonzero(np.where(finite, beyond, ~agree)))
    return outside


def _blocks(reference: Array, other: Array) -> Iterator[tuple[int, Floats, Floats]]:
    for start in range(0, reference.size, BLOCK):
        first = reference[start : start + BLOCK].astype(np.float64)
        yield start, first, other[start : start + BLOCK].astype(np.float64)


def _squares(gap: Floats, first: Floats, second: Floats) -> list[float]:
    return [float(gap @ gap), float(first @ first), float(second @ second), float(first @ second)]


def _settled(first: Floats, second: Floats) -> tuple[Floats, Floats, Any, NDArray[np.int64]]:
    """The elements that are finite on both sides, where they are, and counts of the others.

    The counts: NaN and infinities of both sides, and where the sides disagree on them.
    """
    if np.isfinite(first @ first + second @ second):
        return first, second, slice(None), np.zeros(5, np.int64)
    finite = np.isfinite(first) & np.isfinite(second)
    agree = finite | (first == second) | (np.isnan(first) & np.isnan(second))
    found = (np.isnan(first), np.isnan(second), np.isinf(first), np.isinf(second), ~agree)
    counts = np.array([np.count_nonzero(one) for one in found])
    return first[finite], second[finite], finite, counts


def _better(
    values: Floats, finite: Any, start: int, greatest: float, greatest_at: int
) -> tuple[float, int]:
    """The greater of the greatest so far and these values, with its position."""
    if not values.size:
        return greatest, greatest_at
    at = int(values.argmax())
    if not values[at] > greatest:
        return greatest, greatest_at
    place = at if isinstance(finite, slice) else int(np.flatnonzero(finite)[at])
    return float(values[at]), start + place


def _count(
    gap: Floats,
    bits: Array,
    other_bits: Array,
    mask: int,
    finite: Any,
    ulps: NDArray[np.int64],
    histogram: NDArray[np.int64],
) -> None:
    histogram += np.bincount(gap.view(np.int64) >> 52, minlength=POWERS)
    if ulps.size:
        places = steps_between(bits[finite], other_bits[finite], mask).view(np.int64) >> 49
        ulps += np.bincount(np.maximum(places - ULP_BASE, 0), minlength=ULP_PLACES)


def steps_between(bits: Array, other_bits: Array, mask: int) -> Floats:
    """How many numbers of the dtype lie between each two.

    bits, other_bits: one shape, integers with the element's sign; `mask` leaves their magnitude.
    returns: the same shape, float64.
    """
    first, second = bits.astype(np.int64), other_bits.astype(np.int64)
    mine, its = (first & mask).view(np.uint64), (second & mask).view(np.uint64)
    greater, lesser = np.maximum(mine, its), np.minimum(mine, its)
    apart = np.where((first ^ second) >= 0, greater - lesser, greater + lesser)
    return apart.astype(np.float64)
