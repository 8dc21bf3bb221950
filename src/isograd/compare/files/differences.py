"""How far two tensors are apart: every number that a person may ask for, in one pass.

The reference's values go first everywhere: a relative difference is |other - reference| over
|reference|.  All sums run in float64.  Integers are subtracted as integers, complex numbers are
measured by their magnitudes, NaN agrees with NaN and an infinity with the same infinity; shapes
are never broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isograd.compare.files.operands import Operand, operand_of_value
from isograd.compare.files.segments import (
    SEGMENT,
    Method,
    Part,
    is_sound,
    measure_extremes,
    measure_segment,
    merged,
    method_for,
    recount_segment,
    segments,
)
from isograd.compare.files.tally import BLOCK, ULP_BASE, Counts, Tally
from isograd.compare.files.tolerance import Tolerance, tolerance_for
from isograd.tensors import TensorValue

Index = tuple[int, ...]

#: The shares of elements whose distance in ulps is reported.
ULP_SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
#: Counts the marked blocks of each segment: called with the exact method and all parts.
Recount = Callable[[Method, Sequence[Part]], int]


@dataclass(frozen=True)
class TensorDifference:
    """The difference of two tensors of one shape.

    total: all elements; finite: those that are finite on both sides and took part in the sums.
    greatest_absolute, greatest_relative: of the finite elements, with their indices.
    reference_there, other_there: the values where the absolute difference is greatest, as text.
    relative_error: Frobenius norm of the difference over the reference's; infinite against zero.
    cosine: None where a side is zero; snr_db: None where nothing differs or the reference is zero.
    unequal: elements that are not exactly equal; outside: those beyond relative × |reference| +
    absolute, NaN and infinities that disagree included.
    nan_reference, nan_other, infinite_reference, infinite_other: how many there are.
    pattern_mismatches: elements that are NaN or an infinity on one side only, or of another sign.
    ulps: by share of `ULP_SHARES`, how many numbers of the coarser dtype lie between two elements
    at most, exact below 16 and to an eighth beyond; None where the dtype has no ulps.
    histogram: (e, n) for n finite elements whose absolute difference lies in [2**e, 2**(e+1));
    equal elements stand in none. None where nobody counted.
    """

    total: int
    finite: int
    greatest_absolute: float
    greatest_absolute_index: Index | None
    reference_there: str
    other_there: str
    greatest_relative: float
    greatest_relative_index: Index | None
    error_norm: float
    reference_norm: float
    other_norm: float
    relative_error: float
    cosine: float | None
    snr_db: float | None
    unequal: int
    outside: int
    relative: float
    absolute: float
    nan_reference: int
    nan_other: int
    infinite_reference: int
    infinite_other: int
    pattern_mismatches: int
    ulps: tuple[int, ...] | None = None
    histogram: tuple[tuple[int, int], ...] | None = None

    @property
    def is_identical(self) -> bool:
        """Whether every element is equal; +0 equals -0."""
        return self.unequal == 0 and self.pattern_mismatches == 0


def compare_tensors(
    reference: TensorValue, other: TensorValue, tolerance: Tolerance | None = None
) -> TensorDifference:
    """Compare two tensors of one shape; raises ValueError where the shapes differ.

    tolerance: what an element may differ by; by default that of the coarser dtype.
    reference, other: one shape, any dtypes.
    """
    if reference.shape != other.shape:
        raise ValueError(f"shapes {reference.shape} and {other.shape} differ")
    allowed = tolerance or tolerance_for(reference.dtype, other.dtype)
    return compare_operands(operand_of_value(reference), operand_of_value(other), allowed)


def compare_operands(
    first: Operand,
    second: Operand,
    tolerance: Tolerance,
    *,
    is_counting: bool = True,
    is_compiled: bool = False,
) -> TensorDifference:
    """Compare two tensors of equally many elements, one segment after the other."""
    method = method_for(first, tolerance, is_counting=is_counting, is_compiled=is_compiled)
    spans = segments(first.size)
    parts = [measure_segment(first, second, *span, method) for span in spans]

    def recount(exact: Method, counted: Sequence[Part]) -> int:
        return sum(
            recount_segment(first, second, *span, exact, part.marks)
            for span, part in zip(spans, counted, strict=True)
            if any(part.marks)
        )

    return settle(first, second, tolerance, method, parts, recount)


def settle(
    first: Operand,
    second: Operand,
    tolerance: Tolerance,
    method: Method,
    parts: Sequence[Part],
    recount: Recount,
) -> TensorDifference:
    """The difference from the parts of all segments; recount: counts what they left open."""
    tally = merged(parts)
    if not is_sound(tally):
        part = measure_extremes(first, second, method)
        tally = replace(part.tally, ulps=tally.ulps)
        marks = part.marks
        step = SEGMENT // BLOCK
        parts = [
            replace(one, marks=marks[number * step : (number + 1) * step])
            for number, one in enumerate(parts)
        ]
    absolute = tolerance.absolute
    if tolerance.scaled and tally.finite:
        size = math.sqrt(max(tally.reference_squares, 0.0) / tally.finite)
        scaled = tolerance.scaled * _scaled_up(size, tally.exponent)
        absolute = max(absolute, scaled if math.isfinite(scaled) else 0.0)
    return _difference(
        _with_outside(tally, method, absolute, parts, recount), first, second, method, absolute
    )


def _with_outside(
    tally: Tally, method: Method, absolute: float, parts: Sequence[Part], recount: Recount
) -> Tally:
    if method.low == method.high == absolute:
        return tally
    if tally.greatest <= absolute:
        return replace(tally, outside=tally.pattern_mismatches)
    exact = replace(method, low=absolute, high=absolute)
    if method.low <= absolute <= method.high:
        if not any(any(part.marks) for part in parts):
            return tally
        return replace(tally, outside=tally.outside + recount(exact, parts))
    everything = [replace(part, marks=b"\1" * len(part.marks)) for part in parts]
    return replace(tally, outside=recount(exact, everything))


def _difference(
    tally: Tally, first: Operand, second: Operand, method: Method, absolute: float
) -> TensorDifference:
    error, mine, its = (
        math.sqrt(squares)
        for squares in (tally.error_squares, tally.reference_squares, tally.other_squares)
    )
    there = tally.greatest_at
    cosine = None if mine == 0.0 or its == 0.0 else tally.dot / mine / its
    return TensorDifference(
        total=first.size,
        finite=tally.finite,
        greatest_absolute=tally.greatest,
        greatest_absolute_index=_index(there, first.shape),
        reference_there=_text(first, there),
        other_there=_text(second, there),
        greatest_relative=tally.ratio,
        greatest_relative_index=_index(tally.ratio_at, first.shape),
        error_norm=_scaled_up(error, tally.exponent),
        reference_norm=_scaled_up(mine, tally.exponent),
        other_norm=_scaled_up(its, tally.exponent),
        relative_error=error / mine if mine else (math.inf if error else 0.0),
        cosine=None if cosine is None else max(-1.0, min(1.0, cosine)),
        snr_db=20.0 * (math.log10(mine) - math.log10(error)) if error and mine else None,
        unequal=tally.unequal,
        outside=tally.outside,
        relative=method.relative,
        absolute=absolute,
        nan_reference=tally.nan_reference,
        nan_other=tally.nan_other,
        infinite_reference=tally.infinite_reference,
        infinite_other=tally.infinite_other,
        pattern_mismatches=tally.pattern_mismatches,
        ulps=_quantiles(tally.ulps),
        histogram=_powers(tally),
    )


def _text(side: Operand, at: int) -> str:
    return "" if at < 0 else str(side.values(at, at + 1)[0])


def _index(position: int, shape: tuple[int, ...]) -> Index | None:
    if position < 0:
        return None
    return tuple(int(part) for part in np.unravel_index(position, shape)) if shape else ()


def _quantiles(ulps: Counts | None) -> tuple[int, ...] | None:
    """The greatest distance within each share of the elements."""
    if not ulps:
        return None
    places = sorted(ulps)
    total, seen, at = sum(ulps.values()), 0, -1
    found = []
    for share in ULP_SHARES:
        wanted = math.ceil(share * total)
        while seen < wanted:
            at += 1
            seen += ulps[places[at]]
        found.append(_greatest_of_place(places[at]))
    return tuple(found)


def _greatest_of_place(place: int) -> int:
    """The greatest whole number that is counted at a place of the table of ulps."""
    if place == 0:
        return 0
    power, eighth = divmod(place + ULP_BASE + 1, 8)
    return math.ceil((1 << (power - 1023)) * (1 + eighth / 8)) - 1


def _powers(tally: Tally) -> tuple[tuple[int, int], ...] | None:
    if tally.gaps is None:
        return None
    equal = tally.finite - (tally.unequal - tally.pattern_mismatches)
    counts = dict(tally.gaps)
    counts[0] = counts.get(0, 0) - equal
    return tuple((place - 1023, counts[place]) for place in sorted(counts) if counts[place])


def _scaled_up(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf
