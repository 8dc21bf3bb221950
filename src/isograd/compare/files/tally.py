"""What has been added up of two arrays so far, and the blocks that numpy's floats do not hold.

A careful block holds complex numbers, extremes, or 64-bit integers beside floats; an exact block
holds integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.tensors import Array

#: Elements of a block; both blocks in float64 fit the second-level cache.
BLOCK = 8192
#: Below this a sum of squares may have lost its smallest terms to underflow.
SMALLEST_SQUARES = 1e-280
#: A table of ulps has eight places for each power of two: the upper 15 bits of the distance as a
#: float64. Place 0 is a distance of 0, place 1 of 1; up to 16 each distance has its own.
ULP_BASE = (1023 << 3) - 1
ULP_PLACES = (64 << 3) + 2
#: A histogram has a place for each power of two: the upper 12 bits of the difference.
POWERS = 2048

Counts = Mapping[int, int]
#: The fields of a `Tally` as far as its tables.
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Tally:
    """Sums, extremes and counts; sums of squares are of values divided by 2**exponent.

    is_any, is_any_other: whether a block whose squares are next to nothing holds more than zeros.
    ulps, gaps: how often a distance or difference fell into each place of its table; None where
    nobody counted.
    """

    finite: int = 0
    error_squares: float = 0.0
    reference_squares: float = 0.0
    other_squares: float = 0.0
    dot: float = 0.0
    greatest: float = 0.0
    greatest_at: int = -1
    ratio: float = 0.0
    ratio_at: int = -1
    unequal: int = 0
    outside: int = 0
    nan_reference: int = 0
    nan_other: int = 0
    infinite_reference: int = 0
    infinite_other: int = 0
    pattern_mismatches: int = 0
    is_any: bool = False
    is_any_other: bool = False
    ulps: Counts | None = field(default=None)
    gaps: Counts | None = field(default=None)
    exponent: int = 0

    def merged(self, later: Tally, offset: int) -> Tally:
        """Both together; positions of `later` count from `offset`; the first of equals stays."""
        takes, takes_ratio = later.greatest > self.greatest, later.ratio > self.ratio
        return replace(
            self,
            finite=self.finite + later.finite,
            error_squares=self.error_squares + later.error_squares,
            reference_squares=self.reference_squares + later.reference_squares,
            other_squares=self.other_squares + later.other_squares,
            dot=self.dot + later.dot,
            greatest=later.greatest if takes else self.greatest,
            greatest_at=later.greatest_at + offset if takes else self.greatest_at,
            ratio=later.ratio if takes_ratio else self.ratio,
            ratio_at=later.ratio_at + offset if takes_ratio else self.ratio_at,
            unequal=self.unequal + later.unequal,
            outside=self.outside + later.outside,
            nan_reference=self.nan_reference + later.nan_reference,
            nan_other=self.nan_other + later.nan_other,
            infinite_reference=self.infinite_reference + later.infinite_reference,
            infinite_other=self.infinite_other + later.infinite_other,
            pattern_mismatches=self.pattern_mismatches + later.pattern_mismatches,
            is_any=self.is_any or later.is_any,
            is_any_other=self.is_any_other or later.is_any_other,
            ulps=_added(self.ulps, later.ulps),
            gaps=_added(self.gaps, later.gaps),
        )


def _added(first: Counts | None, second: Counts | None) -> Counts | None:
    if first is None or second is None:
        return second if first is None else first
    found = dict(first)
    for place, count in second.items():
        found[place] = found.get(place, 0) + count
    return found


def sparse(table: NDArray[np.int64]) -> Counts | None:
    """The places of a table that are not zero; None for no table.

    table: (places,) int64.
    """
    if not table.size:
        return None
    places = np.flatnonzero(table)
    return dict(zip(places.tolist(), table[places].tolist(), strict=True))


def _histogram(gap: Array, is_counting: bool) -> Counts | None:
    if not is_counting:
        return None
    with np.errstate(all="ignore"):
        powers = gap.astype(np.float64).view(np.int64) >> 52
    return sparse(np.bincount(powers, minlength=1))


@dataclass(frozen=True)
class Block:
    """A block and how many of its elements are outside at the least and the greatest allowance."""

    tally: Tally
    outside_low: int
    outside_high: int


def careful_block(
    reference: Array,
    other: Array,
    relative: float,
    low: float,
    high: float,
    *,
    exponent: int = 0,
    is_counting: bool = False,
) -> Block:
    """Measure a block in which anything may stand.

    reference, other: (n,) of any float or complex dtype.
    """
    first, second = _wide(reference), _wide(other)
    finite = np.isfinite(first) & np.isfinite(second)
    agree = finite | _same_pattern(first, second)
    mismatches = int(first.size - np.count_nonzero(agree))
    positions = np.flatnonzero(finite)
    mine, its = first[finite], second[finite]
    with np.errstate(all="ignore"):
        gap = np.abs(its - mine).astype(np.longdouble)
        size = np.abs(mine).astype(np.longdouble)
        ratio = np.where(gap > 0, gap / size, np.longdouble(0))
        limit = np.longdouble(relative) * size
        tally = _sums(mine, its, exponent)
    greatest, greatest_at = _greatest(gap, positions)
    quotient, quotient_at = _greatest(ratio, positions)
    outside = [
        int(np.count_nonzero(gap > np.longdouble(absolute) + limit)) + mismatches
        for absolute in (low, high)
    ]
    tally = replace(
        tally,
        finite=int(mine.size),
        greatest=greatest,
        greatest_at=greatest_at,
        ratio=quotient,
        ratio_at=quotient_at,
        unequal=int(np.count_nonzero(gap)) + mismatches,
        nan_reference=int(np.count_nonzero(np.isnan(first))),
        nan_other=int(np.count_nonzero(np.isnan(second))),
        infinite_reference=int(np.count_nonzero(np.isinf(first))),
        infinite_other=int(np.count_nonzero(np.isinf(second))),
        pattern_mismatches=mismatches,
        is_any=bool(mine.any()),
        is_any_other=bool(its.any()),
        gaps=_histogram(gap, is_counting),
    )
    return Block(tally, *outside)


def _wide(values: Array) -> Array:
    """In the widest floats there are, in which a 64-bit integer is exact."""
    return values.astype(np.clongdouble if values.dtype.kind == "c" else np.longdouble)


def _same_pattern(first: Array, second: Array) -> NDArray[np.bool_]:
    """Where both are NaN, or equal as infinities; each part of a complex number for itself."""
    if first.dtype.kind == "c" or second.dtype.kind == "c":
        real = _same_part(np.real(first), np.real(second))
        imaginary = _same_part(np.imag(first), np.imag(second))
        return real & imaginary
    return _same_part(first, second)


def _same_part(first: Array, second: Array) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (first == second) | (np.isnan(first) & np.isnan(second))
    return same


def _sums(mine: Array, its: Array, exponent: int) -> Tally:
    scale = np.ldexp(np.longdouble(1), -exponent)
    first, second = mine * scale, its * scale
    gap = second - first
    return Tally(
        error_squares=float(np.sum(np.abs(gap) ** 2)),
        reference_squares=float(np.sum(np.abs(first) ** 2)),
        other_squares=float(np.sum(np.abs(second) ** 2)),
        dot=float(np.sum(np.real(np.conj(first) * second))),
        exponent=exponent,
    )


def _greatest(values: Array, positions: NDArray[np.intp]) -> tuple[float, int]:
    if not values.size:
        return 0.0, -1
    at = int(values.argmax())
    greatest = float(values[at])
    return (greatest, int(positions[at])) if greatest > 0 or bool(values[at]) else (0.0, -1)


def exact_block(
    reference: Array,
    other: Array,
    relative: float,
    low: float,
    high: float,
    *,
    exponent: int = 0,
    is_counting: bool = False,
) -> Block:
    """Measure a block of integers or booleans, subtracted without overflow.

    reference, other: (n,) integers or booleans of any dtype.
    """
    first, second = _same_integers(reference, other)
    above = np.greater(first, second)
    gap = np.where(above, first, second)
    lesser = np.where(above, second, first)
    if gap.dtype == object:
        distance = (gap - lesser).astype(np.float64)
    else:
        distance = (gap.view(np.uint64) - lesser.view(np.uint64)).astype(np.float64)
    mine, its = first.astype(np.float64), second.astype(np.float64)
    size = np.abs(mine)
    with np.errstate(all="ignore"):
        ratio = np.where(distance > 0, distance / size, 0.0)
    positions = np.arange(first.size)
    greatest, greatest_at = _greatest(distance, positions)
    quotient, quotient_at = _greatest(ratio, positions)
    tally = Tally(
        finite=int(first.size),
        error_squares=float(distance @ distance),
        reference_squares=float(mine @ mine),
        other_squares=float(its @ its),
        dot=float(mine @ its),
        greatest=greatest,
        greatest_at=greatest_at,
        ratio=quotient,
        ratio_at=quotient_at,
        unequal=int(np.count_nonzero(distance)),
        gaps=_histogram(distance, is_counting),
        exponent=exponent,
    )
    outside = (int(np.count_nonzero(distance > limit + relative * size)) for limit in (low, high))
    return Block(tally, *outside)


def _same_integers(first: Array, second: Array) -> tuple[Array, Array]:
    """Both as int64 or both as uint64; as Python's integers where neither holds them."""
    if np.dtype(np.uint64) not in (first.dtype, second.dtype):
        return first.astype(np.int64), second.astype(np.int64)
    if all(array.dtype.kind != "i" or int(array.min()) >= 0 for array in (first, second)):
        return first.astype(np.uint64), second.astype(np.uint64)
    return first.astype(object), second.astype(object)
