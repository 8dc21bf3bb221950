"""One pass over two float arrays, compiled by numba; imported only where the extra `fast` is there.

`plain.py` holds the same in numpy, and says what each number is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from isograd.compare.files.tally import BLOCK, SMALLEST_SQUARES, ULP_BASE

_numba: Any = importlib.import_module("numba")

#: Reassociation lets sums vectorise; only `_sums` has it, because it also folds tests for infinity.
_FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}


def _compiled(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    options = {"nogil": True, "error_model": "numpy", **options}

    def compile_it(function: Callable[..., Any]) -> Any:
        try:
            return _numba.njit(*signatures, cache=True, **options)(function)
        except RuntimeError:  # no folder in which numba may keep its cache
            return _numba.njit(*signatures, **options)(function)

    return compile_it


@_compiled()
def _is_any(values: Any, others: Any) -> Any:
    for index in range(values.size):
        value, other = values[index], others[index]
        if value != 0 and abs(value) < np.inf and abs(other) < np.inf:
            return True
    return False


@_compiled(fastmath=_FAST_MATH)
def _settle(
    ours: Any,
    theirs: Any,
    relative: Any,
    low: Any,
    high: Any,
    greatest: Any,
    ratio: Any,
    gaps: Any,
) -> Any:
    """A block with NaN or infinities; `gaps` gets -1 for elements that are not finite."""
    sums: Any = (0.0, 0.0, 0.0, 0.0)
    error, mine, its, dot = sums
    finite, unequal, over_low, over_high = 0, 0, 0, 0
    above, above_ratio = 0, 0
    nans, other_nans, infinities, other_infinities, mismatches = 0, 0, 0, 0, 0
    for index in range(ours.size):
        first: Any = np.float64(ours[index])
        second: Any = np.float64(theirs[index])
        is_nan, is_other_nan = first != first, second != second
        is_infinite, is_other_infinite = abs(first) == np.inf, abs(second) == np.inf
        is_special = is_nan | is_other_nan | is_infinite | is_other_infinite
        is_alike = (first == second) | (is_nan & is_other_nan)
        number = 0.0 if is_special else first
        partner = 0.0 if is_special else second
        gap, size = abs(partner - number), abs(number)
        gaps[index] = -1.0 if is_special else gap
        error += gap * gap
        mine += number * number
        its += partner * partner
        dot += number * partner
        finite += not is_special
        unequal += gap != 0.0
        over_low += gap > low + relative * size
        over_high += gap > high + relative * size
        above += gap > greatest
        above_ratio += gap > ratio * size
        nans += is_nan
        other_nans += is_other_nan
        infinities += is_infinite
        other_infinities += is_other_infinite
        mismatches += is_special & (not is_alike)
    return (
        error, mine, its, dot, unequal, over_low, over_high, above, above_ratio, finite, nans,
        other_nans, infinities, other_infinities, mismatches,
    )  # fmt: skip


@_compiled(fastmath=_FAST_MATH)
def _sums(
    ours: Any, theirs: Any, relative: Any, low: Any, high: Any, greatest: Any, ratio: Any
) -> Any:
    """A block without NaN or infinities; above counts what beats the greatest so far."""
    sums: Any = (0.0, 0.0, 0.0, 0.0)
    error, mine, its, dot = sums
    unequal, over_low, over_high, above, above_ratio = 0, 0, 0, 0, 0
    for index in range(ours.size):
        first: Any = np.float64(ours[index])
        second: Any = np.float64(theirs[index])
        gap = abs(second - first)
        size = abs(first)
        error += gap * gap
        mine += first * first
        its += second * second
        dot += first * second
        unequal += gap != 0.0
        over_low += gap > low + relative * size
        over_high += gap > high + relative * size
        above += gap > greatest
        above_ratio += gap > ratio * size
    return error, mine, its, dot, unequal, over_low, over_high, above, above_ratio


@_compiled()
def _count(numbers: Any, shift: Any, base: Any, size: Any, tables: Any) -> None:
    """Count the upper bits of numbers, at place 0 what is below the base.

    Neighbours go to different tables, because counting the same place twice in a row waits.
    """
    places = numbers.view(np.int64)
    whole = size - size % 4
    for index in range(0, whole, 4):
        tables[0, np.uint32(max(0, (places[index] >> shift) - base))] += 1
        tables[1, np.uint32(max(0, (places[index + 1] >> shift) - base))] += 1
        tables[2, np.uint32(max(0, (places[index + 2] >> shift) - base))] += 1
        tables[3, np.uint32(max(0, (places[index + 3] >> shift) - base))] += 1
    for index in range(whole, size):
        tables[0, np.uint32(max(0, (places[index] >> shift) - base))] += 1


@_compiled()
def _add(tables: Any, total: Any) -> None:
    for index in range(total.size):
        total[index] += tables[0, index] + tables[1, index] + tables[2, index] + tables[3, index]


@_compiled()
def _steps(ours: Any, theirs: Any, mask: Any, steps: Any) -> None:
    """How many numbers of the dtype lie between, where `mask` leaves the magnitude of the bits."""
    for index in range(ours.size):
        first, second = np.int64(ours[index]), np.int64(theirs[index])
        mine, its = np.uint64(first & mask), np.uint64(second & mask)
        greater, lesser = max(mine, its), min(mine, its)
        steps[index] = np.float64(greater - lesser if (first ^ second) >= 0 else greater + lesser)


def _recount(reference: Any, other: Any, relative: Any, absolute: Any, marks: Any) -> Any:
    outside = 0
    for start in range(0, reference.size, BLOCK):
        if not marks[start // BLOCK]:
            continue
        for index in range(start, min(start + BLOCK, reference.size)):
            first, second = np.float64(reference[index]), np.float64(other[index])
            if np.isfinite(first) and np.isfinite(second):
                outside += abs(second - first) > absolute + relative * abs(first)
            else:
                outside += not (first == second or (np.isnan(first) and np.isnan(second)))
    return outside


def _measure(  # noqa: C901 - numba inlines no more than this without losing speed
    reference: Any,
    other: Any,
    bits: Any,
    other_bits: Any,
    mask: Any,
    relative: Any,
    low: Any,
    high: Any,
    marks: Any,
    ulps: Any,
    histogram: Any,
) -> Any:
    size = reference.size
    sums: Any = (0.0, 0.0, 0.0, 0.0)
    error, mine, its, dot = sums
    greatest, greatest_at, ratio, ratio_at = 0.0, -1, 0.0, -1
    finite, unequal, outside = 0, 0, 0
    nans, other_nans, infinities, other_infinities, mismatches = 0, 0, 0, 0, 0
    is_any, is_any_other = False, False
    gaps = np.empty(BLOCK, np.float64)
    steps = np.empty(BLOCK, np.float64)
    powers = np.zeros((4, histogram.size), np.int32)
    eighths = np.zeros((4, ulps.size), np.int32)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        length = stop - start
        ours, theirs = reference[start:stop], other[start:stop]
        here = _sums(ours, theirs, relative, low, high, greatest, ratio)
        is_whole = np.isfinite(here[0] + here[1] + here[2])
        finite_here, mismatches_here = length, 0
        if not is_whole:
            found = _settle(ours, theirs, relative, low, high, greatest, ratio, gaps)
            here = found[:9]
            finite_here = found[9]
            nans += found[10]
            other_nans += found[11]
            infinities += found[12]
            other_infinities += found[13]
            mismatches_here = found[14]
            mismatches += mismatches_here
            unequal += mismatches_here
        finite += finite_here
        unequal_here = here[4]
        error += here[0]
        mine += here[1]
        its += here[2]
        dot += here[3]
        unequal += unequal_here
        if here[5] == here[6]:
            outside += here[6] + mismatches_here
        else:
            marks[start // BLOCK] = 1
        if here[1] < SMALLEST_SQUARES and not is_any:
            is_any = _is_any(ours, theirs)
        if here[2] < SMALLEST_SQUARES and not is_any_other:
            is_any_other = _is_any(theirs, ours)
        is_counted = histogram.size > 0
        if is_counted and unequal_here == 0:
            histogram[0] += finite_here
            if ulps.size > 0:
                ulps[0] += finite_here
            continue
        is_above = here[7] > 0
        is_above_ratio = here[8] > 0 and ratio != np.inf
        if is_whole and (is_above or is_above_ratio or is_counted):
            for index in range(length):
                gaps[index] = abs(np.float64(theirs[index]) - np.float64(ours[index]))
        if is_above:
            for index in range(length):
                if gaps[index] > greatest:
                    greatest = gaps[index]
                    greatest_at = start + index
        if is_above_ratio:
            for index in range(length):
                gap = gaps[index]
                if gap > 0.0:
                    quotient = gap / abs(np.float64(ours[index]))
                    if quotient > ratio:
                        ratio = quotient
                        ratio_at = start + index
        if is_counted:
            special = length - finite_here
            _count(gaps, 52, 0, length, powers)
            powers[0, 0] -= special
            if ulps.size > 0:
                _steps(bits[start:stop], other_bits[start:stop], mask, steps)
                if special > 0:
                    for index in range(length):
                        steps[index] = 0.0 if gaps[index] < 0.0 else steps[index]
                _count(steps, 49, ULP_BASE, length, eighths)
                eighths[0, 0] -= special
    _add(powers, histogram)
    _add(eighths, ulps)
    return (
        finite, error, mine, its, dot, greatest, greatest_at, ratio, ratio_at, unequal, outside,
        nans, other_nans, infinities, other_infinities, mismatches, is_any, is_any_other,
    )  # fmt: skip


def _array(element: Any, *, is_input: bool = False) -> Any:
    return _numba.types.Array(element, 1, "C", readonly=is_input)


_types = _numba.types
_INPUTS = {
    character: _array(element, is_input=True)
    for character, element in (
        ("f", _types.float32), ("d", _types.float64), ("i", _types.int32), ("l", _types.int64),
    )
}  # fmt: skip
_NUMBER, _MARKS, _TABLE = _types.float64, _array(_types.uint8), _array(_types.int64)


def measure(value: str, bits: str) -> Any:
    """The kernel for values and bits of these characters of numpy."""
    sides = (_INPUTS[value], _INPUTS[value], _INPUTS[bits], _INPUTS[bits])
    numbers = (_types.int64, _NUMBER, _NUMBER, _NUMBER)
    return _compiled((*sides, *numbers, _MARKS, _TABLE, _TABLE))(_measure)


def recount(value: str) -> Any:
    """The kernel that counts the marked blocks of values of this character again."""
    values = _INPUTS[value]
    return _compiled((values, values, _NUMBER, _NUMBER, _MARKS))(_recount)
