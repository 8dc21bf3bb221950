"""Measures two tensors segment by segment; the parts merge to the same bits on any machine.

A tensor is always cut at the same places, and its parts are added up in their order, so that
neither the number of threads nor the engine changes a bit.

What an element may differ by depends on the reference's root mean square, which is known only at
the end of the pass.  A sample says roughly what it will be; only blocks with an element between
half and twice the allowance of the sample are counted a second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isograd.compare.files.kernels import kernels
from isograd.compare.files.operands import Operand, coarser, signed_bits
from isograd.compare.files.tally import (
    BLOCK,
    POWERS,
    SMALLEST_SQUARES,
    ULP_PLACES,
    Block,
    Tally,
    careful_block,
    exact_block,
    sparse,
)
from isograd.compare.files.tolerance import Tolerance
from isograd.tensors import Array

#: Elements that one thread takes at a time.
SEGMENT = 128 * BLOCK
#: Elements that are decoded at a time where the file does not hold float32 or float64.
_DECODED = 16 * BLOCK
#: The sample: so many runs of so many elements, in a tensor that is longer than that.
_RUNS, _RUN = 16, 256

BlockKind = Callable[..., Block]


@dataclass(frozen=True)
class Method:
    """How a pair is measured.

    low, high: between them lies the absolute allowance that the whole tensor will have.
    """

    relative: float
    low: float
    high: float
    is_counting: bool = True
    is_compiled: bool = False


@dataclass(frozen=True)
class Part:
    """What one segment yields; marks: a byte per block, 1 where `outside` is not counted yet."""

    tally: Tally
    marks: bytes


def method_for(
    first: Operand, tolerance: Tolerance, *, is_counting: bool, is_compiled: bool
) -> Method:
    """How to measure a pair with this reference."""
    low = high = tolerance.absolute
    if tolerance.scaled:
        guess = tolerance.scaled * _typical(first)
        low, high = max(low, guess / 2), max(high, guess * 2)
    return Method(tolerance.relative, low, high, is_counting, is_compiled)


def _typical(side: Operand) -> float:
    """The root mean square of some elements, in runs that are spread over the tensor."""
    if side.size > _RUNS * _RUN:
        starts = np.arange(_RUNS) * ((side.size - _RUN) // (_RUNS - 1))
        places = (starts[:, None] + np.arange(_RUN)).reshape(-1)
        side = replace(side, bits=side.bits[places])
    with np.errstate(all="ignore"):
        values = np.abs(side.values(0, side.size)).astype(np.float64)
        squares = float(values @ values)
        if not math.isfinite(squares):
            values = values[np.isfinite(values)]
            squares = float(values @ values)
        typical = math.sqrt(squares / values.size) if values.size else 0.0
    return typical if math.isfinite(typical) else 0.0


def segments(size: int) -> list[tuple[int, int]]:
    """Where a tensor of this many elements is cut."""
    return [(start, min(start + SEGMENT, size)) for start in range(0, size, SEGMENT)]


def measure_segment(first: Operand, second: Operand, start: int, stop: int, method: Method) -> Part:
    """Measure the elements from start to stop."""
    marks = np.zeros(-(-(stop - start) // BLOCK), np.uint8)
    block = _block_kind(first, second)
    if block is not None:
        tally = _by_blocks(block, first, second, (start, stop), method, marks)
    else:
        tally = _by_kernel(first, second, (start, stop), method, marks)
    return Part(tally, marks.tobytes())


def merged(parts: Sequence[Part]) -> Tally:
    """All segments together."""
    tally = parts[0].tally if parts else Tally()
    for number, part in enumerate(parts[1:], 1):
        tally = tally.merged(part.tally, number * SEGMENT)
    return tally


def recount_segment(
    first: Operand, second: Operand, start: int, stop: int, method: Method, marks: bytes
) -> int:
    """How many elements of the marked blocks are outside; method.low is the exact allowance."""
    found = np.frombuffer(marks, np.uint8)
    block = _block_kind(first, second)
    if block is None:
        return _recount_by_kernel(first, second, (start, stop), method, found)
    outside = 0
    for number in np.flatnonzero(found).tolist():
        at = start + number * BLOCK
        end = min(at + BLOCK, stop)
        mine, its = first.values(at, end), second.values(at, end)
        outside += block(mine, its, method.relative, method.low, method.low).outside_low
    return outside


def is_sound(tally: Tally) -> bool:
    """Whether no sum of squares has over- or underflowed."""
    sums = (tally.error_squares, tally.reference_squares, tally.other_squares)
    if not all(math.isfinite(value) for value in sums):
        return False
    some = (tally.unequal > tally.pattern_mismatches, tally.is_any, tally.is_any_other)
    return not any(
        is_some and squares < SMALLEST_SQUARES for is_some, squares in zip(some, sums, strict=True)
    )


def measure_extremes(first: Operand, second: Operand, method: Method) -> Part:
    """Measure a whole pair whose squares float64 does not hold, in scaled wider floats."""
    exponent = _exponent(first, second)
    marks = np.zeros(-(-first.size // BLOCK), np.uint8)
    tally = _by_blocks(careful_block, first, second, (0, first.size), method, marks, exponent)
    return Part(tally, marks.tobytes())


def _block_kind(first: Operand, second: Operand) -> BlockKind | None:
    """What measures a block of numbers that the kernels do not take; None where they do."""
    if first.is_integer and second.is_integer:
        return exact_block
    is_wide = first.needs_care or second.needs_care
    is_mixed = any(side.is_integer and side.bits.dtype.itemsize == 8 for side in (first, second))
    return careful_block if is_wide or is_mixed else None


def _by_blocks(
    block: BlockKind,
    first: Operand,
    second: Operand,
    span: tuple[int, int],
    method: Method,
    marks: NDArray[np.uint8],
    exponent: int = 0,
) -> Tally:
    tally = Tally(exponent=exponent)
    for number, start in enumerate(range(span[0], span[1], BLOCK)):
        stop = min(start + BLOCK, span[1])
        found = block(
            first.values(start, stop),
            second.values(start, stop),
            method.relative,
            method.low,
            method.high,
            exponent=exponent,
            is_counting=method.is_counting,
        )
        here = found.tally
        if found.outside_low == found.outside_high:
            here = replace(here, outside=found.outside_low)
        else:
            marks[number] = 1
        tally = tally.merged(here, start - span[0])
    return tally


def _by_kernel(
    first: Operand,
    second: Operand,
    span: tuple[int, int],
    method: Method,
    marks: NDArray[np.uint8],
) -> Tally:
    value = _value_type(first, second)
    dtype = coarser(first.dtype, second.dtype) if method.is_counting else None
    bits = "l" if value == "d" and dtype in (None, "float64") else "i"
    kernel = kernels(method.is_compiled).measure(value, bits)
    ulps = np.zeros(ULP_PLACES if dtype else 0, np.int64)
    gaps = np.zeros(POWERS if method.is_counting else 0, np.int64)
    tally = Tally()
    for start, stop in _steps(first, second, span):
        mine, its = _wide(first, value, start, stop), _wide(second, value, start, stop)
        if dtype:
            (mine_bits, mask), (its_bits, _) = (
                signed_bits(side, dtype, start, stop) for side in (first, second)
            )
        else:
            mine_bits, its_bits, mask = np.empty(0, bits), np.empty(0, bits), 0
        places = marks[(start - span[0]) // BLOCK : -(-(stop - span[0]) // BLOCK)]
        allowance = (method.relative, method.low, method.high)
        row = kernel(mine, its, mine_bits, its_bits, mask, *allowance, places, ulps, gaps)
        if stop == span[1] and start == span[0]:
            return Tally(*(*row, sparse(ulps), sparse(gaps)))
        tally = tally.merged(Tally(*row), start - span[0])
    return replace(tally, ulps=sparse(ulps), gaps=sparse(gaps))


def _recount_by_kernel(
    first: Operand,
    second: Operand,
    span: tuple[int, int],
    method: Method,
    marks: NDArray[np.uint8],
) -> int:
    value = _value_type(first, second)
    kernel = kernels(method.is_compiled).recount(value)
    outside = 0
    for start, stop in _steps(first, second, span):
        places = marks[(start - span[0]) // BLOCK : -(-(stop - span[0]) // BLOCK)]
        if places.any():
            mine, its = _wide(first, value, start, stop), _wide(second, value, start, stop)
            outside += kernel(mine, its, method.relative, method.low, places.copy())
    return outside


def _value_type(first: Operand, second: Operand) -> str:
    return "f" if first.fits_float32 and second.fits_float32 else "d"


def _steps(first: Operand, second: Operand, span: tuple[int, int]) -> list[tuple[int, int]]:
    """The whole segment where both lie in the file as the kernel takes them, else pieces."""
    is_direct = first.dtype == second.dtype and first.dtype in ("float32", "float64")
    step = (span[1] - span[0]) if is_direct else _DECODED
    return [(start, min(start + step, span[1])) for start in range(*span, max(1, step))]


def _wide(side: Operand, value: str, start: int, stop: int) -> Array:
    return np.ascontiguousarray(side.values(start, stop), dtype=value)


def _exponent(first: Operand, second: Operand) -> int:
    """The power of two by which all values are divided so that squares stay in range."""
    greatest = 0.0
    for side in (first, second):
        for start in range(0, side.size, BLOCK):
            block = np.abs(side.values(start, min(start + BLOCK, side.size))).astype(np.float64)
            finite = block[np.isfinite(block)]
            greatest = max(greatest, float(finite.max()) if finite.size else 0.0)
    return math.frexp(greatest)[1] if greatest else 0
