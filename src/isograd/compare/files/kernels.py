"""One pass over a block of two float arrays; compiled by numba where the extra `fast` is there.

Both kernels add up blocks of the same size in the same order, so that counts, extremes and indices
are the same to the bit, and sums differ by float64 rounding alone.  A block that holds NaN or
infinities is not measured here: its sums come out as not finite, and the caller looks at it again.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from isograd.tensors import Array

#: Elements of a block; both blocks in float64 fit the second-level cache.
BLOCK = 8192

#: What `_measure` returns.
Row = tuple[float, float, float, float, float, int, float, int, int, int, int]
Kernel = Callable[[Any, Any, float, float], Row]

#: Reassociation lets sums vectorise; NaN and infinity keep their meaning.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}


def _measure(reference: Any, other: Any, relative: Any, absolute: Any) -> Any:
    """Measure a segment.

    Returns error², reference², other², dot, greatest absolute difference and its position,
    greatest relative difference and its position, unequal elements, elements outside the
    allowance, and the position of the first block that is not finite (-1: none).
    """
    size = reference.size
    error_total = 0.0
    reference_total = 0.0
    other_total = 0.0
    dot_total = 0.0
    greatest: Any = 0.0
    greatest_at = -1
    ratio: Any = 0.0
    ratio_at = -1
    unequal = 0
    outside = 0
    for start in range(0, size, 8192):
        stop = min(start + 8192, size)
        error = 0.0
        mine = 0.0
        its = 0.0
        dot = 0.0
        unequal_here = 0
        outside_here = 0
        above = 0
        above_ratio = 0
        ours = reference[start:stop]
        theirs = other[start:stop]
        for index in range(ours.size):
            first: Any = np.float64(ours[index])
            second: Any = np.float64(theirs[index])
            gap: Any = abs(second - first)
            size_here = abs(first)
            error += gap * gap
            mine += first * first
            its += second * second
            dot += first * second
            unequal_here += gap != 0.0
            outside_here += gap > absolute + relative * size_here
            above += gap > greatest
            above_ratio += gap > ratio * size_here
        if not np.isfinite(error + mine + its):
            return (
                error_total, reference_total, other_total, dot_total, greatest, greatest_at, ratio,
                ratio_at, unequal, outside, start,
            )  # fmt: skip
        error_total += error
        reference_total += mine
        other_total += its
        dot_total += dot
        unequal += unequal_here
        outside += outside_here
        if above:
            for index in range(start, stop):
                gap = abs(np.float64(other[index]) - np.float64(reference[index]))
                if gap > greatest:
                    greatest = gap
                    greatest_at = index
        if above_ratio and ratio != np.inf:
            for index in range(start, stop):
                size_here = abs(np.float64(reference[index]))
                gap = abs(np.float64(other[index]) - np.float64(reference[index]))
                quotient = gap / size_here if size_here > 0.0 else (np.inf if gap > 0.0 else 0.0)
                if quotient > ratio:
                    ratio = float(quotient)
                    ratio_at = index
    return (
        error_total, reference_total, other_total, dot_total, greatest, greatest_at, ratio,
        ratio_at, unequal, outside, -1,
    )  # fmt: skip


def measure_with_numpy(reference: Array, other: Array, relative: float, absolute: float) -> Row:
    """The same as `_measure`, block by block."""
    sums = [0.0, 0.0, 0.0, 0.0]
    greatest, greatest_at, ratio, ratio_at, unequal, outside = 0.0, -1, 0.0, -1, 0, 0
    with np.errstate(all="ignore"):
        for start in range(0, reference.size, BLOCK):
            first = reference[start : start + BLOCK].astype(np.float64)
            second = other[start : start + BLOCK].astype(np.float64)
            gap = np.abs(second - first)
            here = [float(gap @ gap), float(first @ first), float(second @ second)]
            if not np.isfinite(sum(here)):
                return (
                    sums[0], sums[1], sums[2], sums[3], greatest, greatest_at, ratio, ratio_at,
                    unequal, outside, start,
                )  # fmt: skip
            here.append(float(first @ second))
            sums = [old + new for old, new in zip(sums, here, strict=True)]
            size = np.abs(first)
            unequal += int(np.count_nonzero(gap))
            outside += int(np.count_nonzero(gap > absolute + relative * size))
            position = int(gap.argmax())
            if gap[position] > greatest:
                greatest, greatest_at = float(gap[position]), start + position
            if ratio != np.inf and np.any(gap > ratio * size):
                quotient = np.where(gap > 0.0, gap / size, 0.0)
                position = int(quotient.argmax())
                if quotient[position] > ratio:
                    ratio, ratio_at = float(quotient[position]), start + position
    return (
        sums[0], sums[1], sums[2], sums[3], greatest, greatest_at, ratio, ratio_at, unequal,
        outside, -1,
    )  # fmt: skip


@functools.cache
def kernels() -> dict[str, Kernel]:
    """The kernels by the character of numpy's dtype; numpy's own where numba is missing."""
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        return {"f": measure_with_numpy, "d": measure_with_numpy}
    return {
        "f": _compile(numba, numba.types.float32),
        "d": _compile(numba, numba.types.float64),
    }


def _compile(numba: Any, element: Any) -> Kernel:
    array = numba.types.Array(element, 1, "C", readonly=True)
    signature = (array, array, numba.types.float64, numba.types.float64)
    options = {"nogil": True, "fastmath": FAST_MATH, "error_model": "numpy"}
    try:
        kernel: Kernel = numba.njit(signature, cache=True, **options)(_measure)
    except RuntimeError:  # no folder in which numba may keep its cache
        kernel = numba.njit(signature, **options)(_measure)
    return kernel
