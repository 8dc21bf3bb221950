"""How far two tensors are apart: every number that a person may ask for, in one pass.

The reference's values go first everywhere: a relative difference is |other - reference| over
|reference|.  All sums run in float64 over blocks that fit the cache, in an order that does not
depend on the number of threads.  Integers are subtracted as integers, complex numbers are measured
by their magnitudes, NaN agrees with NaN and an infinity with the same infinity; shapes are never
broadcast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isograd.compare.files.kernels import BLOCK, kernels
from isograd.compare.files.tally import Tally, careful_block, exact_block
from isograd.compare.files.tolerance import Tolerance, tolerance_for
from isograd.tensors import Array, TensorValue

Index = tuple[int, ...]

#: Below this a sum of squares may have lost its smallest terms to underflow.
_SMALLEST_SQUARES = 1e-280


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

    @property
    def is_identical(self) -> bool:
        """Whether every element is equal; +0 equals -0."""
        return self.unequal == 0 and self.pattern_mismatches == 0


def compare_tensors(
    reference: TensorValue, other: TensorValue, tolerance: Tolerance | None = None
) -> TensorDifference:
    """Compare two tensors of one shape; raises ValueError where the shapes differ.

    tolerance: what an element may differ by; by default that of the coarser dtype.
    """
    if reference.shape != other.shape:
        raise ValueError(f"shapes {reference.shape} and {other.shape} differ")
    allowed = tolerance or tolerance_for(reference.dtype, other.dtype)
    first, second = _flat(reference.values), _flat(other.values)
    absolute = allowed.absolute
    tally = _measure(first, second, allowed.relative, absolute)
    if allowed.scaled and tally.finite:
        size = math.sqrt(max(tally.reference_squares, 0.0) / tally.finite)
        scaled = allowed.scaled * _scaled_up(size, tally.exponent)
        absolute = max(absolute, scaled if math.isfinite(scaled) else 0.0)
        if tally.greatest <= absolute:
            tally = replace(tally, outside=tally.pattern_mismatches)
        else:
            tally = _measure(first, second, allowed.relative, absolute)
    return _difference(tally, reference, other, allowed.relative, absolute)


def _measure(first: Array, second: Array, relative: float, absolute: float) -> Tally:
    if first.dtype.kind in "biu" and second.dtype.kind in "biu":
        return _by_blocks(first, second, relative, absolute, exact=True)
    is_wide = any(array.dtype.kind == "c" or array.dtype.itemsize > 8 for array in (first, second))
    if is_wide or _mixes_wide_integers(first, second):
        tally = _by_blocks(first, second, relative, absolute)
    else:
        tally = _fast(first, second, relative, absolute)
    if _is_sound(tally, first, second):
        return tally
    exponent = _exponent(first, second)
    return _by_blocks(first, second, relative, absolute, exponent=exponent)


def _mixes_wide_integers(first: Array, second: Array) -> bool:
    return any(array.dtype.kind in "iu" and array.dtype.itemsize == 8 for array in (first, second))


def _is_sound(tally: Tally, first: Array, second: Array) -> bool:
    """Whether no sum of squares has over- or underflowed."""
    sums = (tally.error_squares, tally.reference_squares, tally.other_squares)
    if not all(math.isfinite(value) for value in sums):
        return False
    if tally.unequal and tally.error_squares < _SMALLEST_SQUARES:
        return False
    sides = zip(sums[1:], (first, second), strict=True)
    return not any(squares < _SMALLEST_SQUARES and array.any() for squares, array in sides)


def _fast(first: Array, second: Array, relative: float, absolute: float) -> Tally:
    """Floats of up to 64 bits, and small integers, by the compiled kernel."""
    char = "f" if first.dtype.char == second.dtype.char == "f" else "d"
    kernel = kernels()[char]
    is_direct = first.dtype.char == second.dtype.char == char
    tally, start, segment = Tally(), 0, first.size if is_direct else 16 * BLOCK
    wide = np.float32 if char == "f" else np.float64
    while start < first.size:
        stop = min(start + segment, first.size)
        mine = np.ascontiguousarray(first[start:stop], dtype=wide)
        its = np.ascontiguousarray(second[start:stop], dtype=wide)
        row = kernel(mine, its, relative, absolute)
        bad = row[10]
        tally = tally.with_row(row, start, (stop - start) if bad < 0 else bad)
        start = stop
        if bad >= 0:
            at = stop - mine.size + bad
            end = min(at + BLOCK, stop)
            tally = tally.merged(
                careful_block(first[at:end], second[at:end], relative, absolute), at
            )
            start = end
    return tally


def _by_blocks(
    first: Array,
    second: Array,
    relative: float,
    absolute: float,
    *,
    exact: bool = False,
    exponent: int = 0,
) -> Tally:
    tally = Tally(exponent=exponent)
    for start in range(0, first.size, BLOCK):
        mine, its = first[start : start + BLOCK], second[start : start + BLOCK]
        if exact:
            block = exact_block(mine, its, relative, absolute)
        else:
            block = careful_block(mine, its, relative, absolute, exponent)
        tally = tally.merged(block, start)
    return tally


def _exponent(first: Array, second: Array) -> int:
    """The power of two by which all values are divided so that squares stay in range."""
    greatest = 0.0
    for array in (first, second):
        for start in range(0, array.size, BLOCK):
            block = np.abs(array[start : start + BLOCK]).astype(np.float64)
            finite = block[np.isfinite(block)]
            greatest = max(greatest, float(finite.max()) if finite.size else 0.0)
    return math.frexp(greatest)[1] if greatest else 0


def _difference(
    tally: Tally, reference: TensorValue, other: TensorValue, relative: float, absolute: float
) -> TensorDifference:
    error, mine, its = (
        math.sqrt(squares)
        for squares in (tally.error_squares, tally.reference_squares, tally.other_squares)
    )
    index = _index(tally.greatest_at, reference.shape)
    cosine = None if mine == 0.0 or its == 0.0 else tally.dot / mine / its
    return TensorDifference(
        total=int(reference.values.size),
        finite=tally.finite,
        greatest_absolute=tally.greatest,
        greatest_absolute_index=index,
        reference_there="" if index is None else str(reference.values[index]),
        other_there="" if index is None else str(other.values[index]),
        greatest_relative=tally.ratio,
        greatest_relative_index=_index(tally.ratio_at, reference.shape),
        error_norm=_scaled_up(error, tally.exponent),
        reference_norm=_scaled_up(mine, tally.exponent),
        other_norm=_scaled_up(its, tally.exponent),
        relative_error=error / mine if mine else (math.inf if error else 0.0),
        cosine=None if cosine is None else max(-1.0, min(1.0, cosine)),
        snr_db=20.0 * (math.log10(mine) - math.log10(error)) if error and mine else None,
        unequal=tally.unequal,
        outside=tally.outside,
        relative=relative,
        absolute=absolute,
        nan_reference=tally.nan_reference,
        nan_other=tally.nan_other,
        infinite_reference=tally.infinite_reference,
        infinite_other=tally.infinite_other,
        pattern_mismatches=tally.pattern_mismatches,
    )


def _flat(values: Array) -> Array:
    flat: NDArray[np.generic] = np.ascontiguousarray(values).reshape(-1)
    if not flat.dtype.isnative:
        flat = flat.astype(flat.dtype.newbyteorder("="))
    if flat.dtype.kind not in "biufc":
        raise ValueError(f"values of dtype {flat.dtype} are not numbers")
    return flat if flat.flags.aligned else flat.copy()


def _index(position: int, shape: tuple[int, ...]) -> Index | None:
    if position < 0:
        return None
    return tuple(int(part) for part in np.unravel_index(position, shape)) if shape else ()


def _scaled_up(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.inf
