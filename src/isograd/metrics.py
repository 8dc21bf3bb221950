"""How far two tensors are apart: finite elements by norm, everything else by pattern.

Frobenius norms of the finite elements follow TTrace (arXiv 2506.09280) and our own measurements
(docs/thresholds.md): cosine is blind to eps faults, units in the last place explode near zero.
Values that mean "masked out" (-inf, -1e4, -1e9, the dtype's minimum) are one pattern,
because a softmax makes nothing of any of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isograd.tensors import UNIT_ROUNDOFF, Array

Float64 = NDArray[np.float64]

#: A value below -MASK × max(1, typical magnitude) means "masked out".
MASK = 5e3
#: Below this, float32 hardware may flush to zero.
SMALLEST_NORMAL = 1.2e-38
#: A sum of squares below this may have lost some of them.
_UNDERFLOW = 1e-280
#: Elements that are compared at a time: two of them in float64 stay in a core's second cache.
_BLOCK = 1 << 15


@dataclass(frozen=True)
class Difference:
    """The difference of two tensors of one shape.

    error: Frobenius norm of the difference of the elements that are finite on both sides.
    size: Frobenius norm of the same elements of the reference.
    pattern_mismatches: elements that are NaN, +Inf or masked on one side only.
    finite: number of elements that took part in the norms.
    """

    error: float
    size: float
    pattern_mismatches: int
    finite: int
    total: int


def patterns(values: Float64) -> NDArray[np.int8]:
    """0 finite, 1 NaN, 2 +Inf, 3 masked (-Inf or far below everything else).

    values: any shape, float64.
    returns: the same shape, int8.
    """
    found = np.zeros(values.shape, np.int8)
    if not values.size:
        return found
    lowest = np.nanmin(values) if not np.isnan(values).all() else 0.0
    if np.isfinite(values.sum()) and lowest > -MASK:
        return found
    found[np.isnan(values)] = 1
    found[values == np.inf] = 2
    with np.errstate(invalid="ignore"):
        ordinary = np.abs(values[(values > -1e3) & np.isfinite(values)])
        typical = float(np.median(ordinary)) if ordinary.size else 1.0
        found[values <= -MASK * max(1.0, typical)] = 3
    return found


def difference(reference: Array, other: Array) -> Difference:
    """Compare two arrays of one shape; complex numbers as pairs, integers and booleans exactly.

    reference, other: one shape, any dtypes.
    """
    quick = _difference_of_ordinary(reference, other)
    if quick is not None:
        return quick
    first, second = as_float64(reference), as_float64(other)
    pattern_first, pattern_second = patterns(first), patterns(second)
    mismatches = int(np.count_nonzero(pattern_first != pattern_second))
    if pattern_first.any() or pattern_second.any():
        use = (pattern_first == 0) & (pattern_second == 0)
        first, second = first[use], second[use]
    return Difference(
        norm(first - second), norm(first), mismatches, int(first.size), int(pattern_first.size)
    )


def relative_gap(reference: Array, other: Array) -> float:
    """How far two arrays of one shape lie apart, by the first one's norm.

    Infinite where one of them alone is masked, infinite or no number at a place: an additive mask
    of zeros and -inf is not its transpose.

    reference, other: one shape, any dtypes.
    """
    found = difference(reference, other)
    return math.inf if found.pattern_mismatches else found.error / (found.size + 1e-30)


def is_close(reference: Array, other: Array, tolerance: float) -> bool:
    """Whether two arrays have one shape and are one but for so much of the first one's norm.

    reference, other: any shape and dtype.
    """
    return reference.shape == other.shape and relative_gap(reference, other) <= tolerance


def _difference_of_ordinary(reference: Array, other: Array) -> Difference | None:
    """The same block by block where all is finite and nothing masked; None where it is not."""
    if reference.dtype.kind not in "fiu" or other.dtype.kind not in "fiu" or not reference.size:
        return None
    first, second = reference.reshape(-1), other.reshape(-1)
    wide = np.empty(min(first.size, _BLOCK), np.float64)
    gap = np.empty_like(wide)
    error = size = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, first.size, _BLOCK):
            ours, theirs = first[begin : begin + _BLOCK], second[begin : begin + _BLOCK]
            count = ours.size
            np.copyto(wide[:count], ours)
            np.subtract(wide[:count], theirs, out=gap[:count])
            error += _sum_of_squares(gap[:count])
            size += _sum_of_squares(wide[:count])
            if not math.isfinite(error + size) or min(ours.min(), theirs.min()) <= -MASK:
                return None
    exact_error = math.sqrt(error)
    if error <= _UNDERFLOW and reference is not other:
        exact_error = norm(np.subtract(first, second, dtype=np.float64))
    exact_size = math.sqrt(size) if size > _UNDERFLOW else norm(as_float64(first))
    return Difference(exact_error, exact_size, 0, first.size, first.size)


def as_float64(values: Array) -> Float64:
    """Any dtype as float64; complex as a last axis of two.

    values: any shape and dtype.
    returns: the same shape, or (*shape, 2) for complex numbers, float64.
    """
    if np.iscomplexobj(values):
        values = np.stack([np.real(values), np.imag(values)], axis=-1)
    return np.asarray(values, dtype=np.float64)


def norm(values: Float64) -> float:
    """Frobenius norm, accumulated in float64 and safe against overflow.

    values: any shape, float64.
    """
    if not values.size:
        return 0.0
    flat = values.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sum_of_squares(flat)
    if np.isfinite(total) and total > _UNDERFLOW:
        return float(np.sqrt(total))
    largest = float(np.abs(flat).max())
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    scaled = flat / largest
    return float(largest * np.sqrt(_sum_of_squares(scaled)))


def _sum_of_squares(flat: Float64) -> float:
    # Not flat @ flat: the threads of BLAS wait by spinning, in the way of the two frameworks.
    return float(np.einsum("i,i->", flat, flat))


def rounding_floor(size: float, count: int, dtype: str) -> float:
    """The error that merely storing a result in this dtype may cost."""
    unit = UNIT_ROUNDOFF.get(dtype, 0.0)
    return unit * size + SMALLEST_NORMAL * float(np.sqrt(count))
