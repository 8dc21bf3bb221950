"""One pass over two float arrays, compiled by numba; imported only where the extra `fast` is there.

`numpy_kernels.py` holds the same in numpy, and says what each number is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from isograd.compare.files.tally import BLOCK, SMALLEST_SQUARES, ULP_BASE

_numba: Any = importlib.import_module("numba")
_intrinsic: Any = importlib.import_module("numba.extending").intrinsic

#: `_screened`: a factor that keeps float32's smallest numbers normal, the values that it leaves
#: room for, and what makes a bound too low by more than float32 rounds.
_SCALE, _LARGEST_SCREENED, _BELOW = 2.0**60, 1e17, 1.0 - 1e-6
#: ULP_BASE by the exponents of float32.
_NARROW_ULP_BASE = np.int32(ULP_BASE - ((1023 - 127) << 3))
#: Elements of a block that are searched together for what is greater than before.
_PIECE = 512
#: Reassociation lets sums vectorise; it also folds tests for infinity, so those do without.
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
def _sums(ours: Any, theirs: Any) -> Any:
    """The sums of squares of a block: of its differences and of both sides, and their product."""
    sums: Any = (0.0, 0.0, 0.0, 0.0)
    error, mine, its, dot = sums
    for index in range(ours.size):
        first: Any = np.float64(ours[index])
        second: Any = np.float64(theirs[index])
        gap = second - first
        error += gap * gap
        mine += first * first
        its += second * second
        dot += first * second
    return error, mine, its, dot


@_compiled(fastmath=_FAST_MATH)
def _counts(
    ours: Any, theirs: Any, relative: Any, low: Any, high: Any, greatest: Any, ratio: Any
) -> Any:
    """A block without NaN or infinities; above counts what beats the greatest so far."""
    unequal, over_low, over_high, above, above_ratio = 0, 0, 0, 0, 0
    for index in range(ours.size):
        first: Any = np.float64(ours[index])
        second: Any = np.float64(theirs[index])
        gap = abs(second - first)
        size = abs(first)
        unequal += gap != 0.0
        over_low += gap > low + relative * size
        over_high += gap > high + relative * size
        above += gap > greatest
        above_ratio += gap > ratio * size
    return unequal, over_low, over_high, above, above_ratio


def _bits_of(number: Any, integer: Any) -> Any:
    """A function from a float to its bits: positive exactly where the number is above zero."""

    def build(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(integer))

    def bits(_: Any, value: Any) -> Any:
        return integer(number), build

    return _intrinsic(bits)


_bits = _bits_of(_numba.types.float32, _numba.types.int32)
_wide_bits = _bits_of(_numba.types.float64, _numba.types.int64)


@_compiled(fastmath=_FAST_MATH)
def _screened(ours: Any, theirs: Any, relative: Any, low: Any, greatest: Any, ratio: Any) -> Any:
    """`_sums` of a block of float32, how many are unequal, and whether `_counts` may find more.

    The latter in float32, and by bounds that are a little too low, so that nothing is missed;
    scaled, so that the smallest numbers are not rounded to zero.  It holds where no value is
    greater than _LARGEST_SCREENED.  Maxima of integers vectorise, maxima of floats do not.
    """
    scale, most = np.float32(_SCALE), np.float64(_LARGEST_SCREENED)
    per_size = np.float32(relative * _BELOW * _SCALE)
    allowed = np.float32(min(low, most) * _BELOW * _SCALE)
    best = np.float32(min(greatest, most) * _BELOW * _SCALE)
    per_ratio = np.float32(min(ratio, most) * _BELOW * _SCALE)
    sums: Any = (0.0, 0.0, 0.0, 0.0)
    error, mine, its, dot = sums
    unequal, found = np.int32(0), np.int32(0)
    for index in range(ours.size):
        narrow, other = np.float32(ours[index]), np.float32(theirs[index])
        first: Any = np.float64(narrow)
        second: Any = np.float64(other)
        difference = second - first
        error += difference * difference
        mine += first * first
        its += second * second
        dot += first * second
        size = abs(narrow)
        gap = abs(other - narrow) * scale
        unequal += np.int32(narrow != other)
        beyond = max(_bits(gap - best), _bits(gap - per_ratio * size))
        found = max(found, max(beyond, _bits(gap - (allowed + per_size * size))))
    return error, mine, its, dot, np.int64(unequal), found > 0


@_compiled()
def _gap_places(ours: Any, theirs: Any, places: Any) -> None:
    """The exponents' bits of a whole block's differences."""
    for index in range(ours.size):
        gap = abs(np.float64(theirs[index]) - np.float64(ours[index]))
        places[index] = np.int16(_wide_bits(gap) >> 52)


@_compiled()
def _step_places(ours: Any, theirs: Any, mask: Any, places: Any) -> None:
    """Where the numbers of the dtype that lie between are counted.

    mask: leaves the magnitude of the bits.
    """
    for index in range(ours.size):
        first, second = np.int64(ours[index]), np.int64(theirs[index])
        mine, its = np.uint64(first & mask), np.uint64(second & mask)
        greater, lesser = max(mine, its), min(mine, its)
        steps = np.float64(greater - lesser if (first ^ second) >= 0 else greater + lesser)
        places[index] = np.int16(max(0, (_wide_bits(steps) >> 49) - ULP_BASE))


@_compiled()
def _narrow_step_places(ours: Any, theirs: Any, mask: Any, places: Any) -> None:
    """`_step_places` of 32 bits in 32 bits, which is three times as fast.

    A float32 holds 24 bits of the distance, of which the place needs four; the others are cut off
    first, so that nothing is rounded up.
    """
    for index in range(ours.size):
        first, second = ours[index], theirs[index]
        mine, its = np.uint32(first & mask), np.uint32(second & mask)
        apart = np.uint32(max(mine, its) - min(mine, its))
        steps = apart if np.int32(first ^ second) >= 0 else np.uint32(mine + its)
        held = np.uint32(steps & np.uint32(0xFFFFFF00)) if steps >= np.uint32(1 << 24) else steps
        place = np.int32(np.int32(_bits(np.float32(held)) >> 20) - _NARROW_ULP_BASE)
        places[index] = np.int16(max(np.int32(0), place))


@_compiled()
def _count(places: Any, size: Any, tables: Any) -> None:
    """Count places.

    Neighbours go to different tables, because counting the same place twice in a row waits.
    """
    whole = size - size % 4
    for index in range(0, whole, 4):
        tables[0, np.uint16(places[index])] += 1
        tables[1, np.uint16(places[index + 1])] += 1
        tables[2, np.uint16(places[index + 2])] += 1
        tables[3, np.uint16(places[index + 3])] += 1
    for index in range(whole, size):
        tables[0, np.uint16(places[index])] += 1


@_compiled()
def _add(tables: Any, total: Any) -> None:
    for index in range(total.size):
        total[index] += tables[0, index] + tables[1, index] + tables[2, index] + tables[3, index]


@_compiled()
def _extremes(
    ours: Any, theirs: Any, start: Any, greatest: Any, greatest_at: Any, ratio: Any, ratio_at: Any
) -> Any:
    """What a block without NaN or infinities makes of the greatest differences so far."""
    for begin in range(0, ours.size, _PIECE):
        end = min(begin + _PIECE, ours.size)
        here = _counts(ours[begin:end], theirs[begin:end], 0.0, 0.0, 0.0, greatest, ratio)
        if here[3] > 0:
            for index in range(begin, end):
                gap = abs(np.float64(theirs[index]) - np.float64(ours[index]))
                if gap > greatest:
                    greatest, greatest_at = gap, start + index
        if here[4] > 0 and ratio != np.inf:
            for index in range(begin, end):
                gap = abs(np.float64(theirs[index]) - np.float64(ours[index]))
                if gap > 0.0:
                    quotient = gap / abs(np.float64(ours[index]))
                    if quotient > ratio:
                        ratio, ratio_at = quotient, start + index
    return greatest, greatest_at, ratio, ratio_at


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


@_compiled()
def _settled_extremes(
    ours: Any, gaps: Any, start: Any, greatest: Any, greatest_at: Any, ratio: Any, ratio_at: Any
) -> Any:
    """`_extremes` of a block that `_settle` has been through."""
    for index in range(ours.size):
        gap = gaps[index]
        if gap > greatest:
            greatest, greatest_at = gap, start + index
        if gap > 0.0:
            quotient = gap / abs(np.float64(ours[index]))
            if quotient > ratio:
                ratio, ratio_at = quotient, start + index
    return greatest, greatest_at, ratio, ratio_at


@_compiled()
def _without_special(gaps: Any, places: Any, size: Any) -> None:
    """Elements that are not finite are counted at place 0, from where they are taken again."""
    for index in range(size):
        places[index] = 0 if gaps[index] < 0.0 else places[index]


@_compiled()
def _count_gaps(
    ours: Any, theirs: Any, gaps: Any, is_whole: Any, special: Any, places: Any, powers: Any
) -> None:
    """Count a block's differences by their exponents."""
    if is_whole:
        _gap_places(ours, theirs, places)
    else:
        for index in range(ours.size):
            places[index] = 0 if gaps[index] < 0.0 else _wide_bits(gaps[index]) >> 52
    _count(places, ours.size, powers)
    powers[0, 0] -= special


@_compiled()
def _count_steps(
    near: Any, far: Any, mask: Any, gaps: Any, special: Any, places: Any, eighths: Any
) -> None:
    """Count a block's differences by the numbers of the dtype that lie between."""
    if near.itemsize == 4:
        _narrow_step_places(near, far, mask, places)
    else:
        _step_places(near, far, mask, places)
    if special > 0:
        _without_special(gaps, places, near.size)
    _count(places, near.size, eighths)
    eighths[0, 0] -= special


@_compiled()
def _block(
    ours: Any, theirs: Any, relative: Any, low: Any, high: Any, greatest: Any, ratio: Any, gaps: Any
) -> Any:
    """Sums and counts of a block, as `_settle` returns them, and whether all of it is finite."""
    counts = (0, 0, 0, 0, 0)
    is_worth = True
    if ours.itemsize == 4:
        screened = _screened(ours, theirs, relative, low, greatest, ratio)
        here = screened[:4]
        if max(here[1], here[2]) < _LARGEST_SCREENED**2:
            counts = (screened[4], 0, 0, 0, 0)
            is_worth = screened[5]
    else:
        here = _sums(ours, theirs)
    if not np.isfinite(here[0] + here[1] + here[2]):
        found = _settle(ours, theirs, relative, low, high, greatest, ratio, gaps)
        return found[:4], found[4:9], found[9], found[10:14], found[14], False
    if is_worth:
        counts = _counts(ours, theirs, relative, low, high, greatest, ratio)
    return here, counts, ours.size, (0, 0, 0, 0), 0, True


def _measure(
    reference: Any, other: Any, bits: Any, other_bits: Any, mask: Any, relative: Any, low: Any,
    high: Any, marks: Any, ulps: Any, histogram: Any,
) -> Any:  # fmt: skip
    sums: Any = (0.0, 0.0, 0.0, 0.0)
    error, mine, its, dot = sums
    greatest, greatest_at, ratio, ratio_at = 0.0, -1, 0.0, -1
    finite, unequal, outside, mismatches = 0, 0, 0, 0
    specials = np.zeros(4, np.int64)  # NaN of both sides, infinities of both sides
    is_any, is_any_other = False, False
    gaps, places = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.int16)
    powers = np.zeros((4, histogram.size), np.int32)
    eighths = np.zeros((4, ulps.size), np.int32)
    for start in range(0, reference.size, BLOCK):
        stop = min(start + BLOCK, reference.size)
        ours, theirs = reference[start:stop], other[start:stop]
        here, counts, finite_here, special, mismatched, is_whole = _block(
            ours, theirs, relative, low, high, greatest, ratio, gaps
        )
        for index in range(4):
            specials[index] += special[index]
        mismatches += mismatched
        finite += finite_here
        error, mine, its, dot = error + here[0], mine + here[1], its + here[2], dot + here[3]
        unequal += counts[0] + mismatched
        if counts[1] == counts[2]:
            outside += counts[2] + mismatched
        else:
            marks[start // BLOCK] = 1
        is_any = is_any or (here[1] < SMALLEST_SQUARES and _is_any(ours, theirs))
        is_any_other = is_any_other or (here[2] < SMALLEST_SQUARES and _is_any(theirs, ours))
        if histogram.size > 0 and counts[0] == 0:
            histogram[0] += finite_here
            ulps[:1] += finite_here
            continue
        if counts[3] > 0 or (counts[4] > 0 and ratio != np.inf):
            if is_whole:
                greatest, greatest_at, ratio, ratio_at = _extremes(
                    ours, theirs, start, greatest, greatest_at, ratio, ratio_at
                )
            else:
                greatest, greatest_at, ratio, ratio_at = _settled_extremes(
                    ours, gaps, start, greatest, greatest_at, ratio, ratio_at
                )
        lacking = stop - start - finite_here
        if histogram.size > 0:
            _count_gaps(ours, theirs, gaps, is_whole, lacking, places, powers)
        if ulps.size > 0:
            near, far = bits[start:stop], other_bits[start:stop]
            _count_steps(near, far, mask, gaps, lacking, places, eighths)
    _add(powers, histogram)
    _add(eighths, ulps)
    return (
        finite, error, mine, its, dot, greatest, greatest_at, ratio, ratio_at, unequal, outside,
        specials[0], specials[1], specials[2], specials[3], mismatches, is_any, is_any_other,
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
