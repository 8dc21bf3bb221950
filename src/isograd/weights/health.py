"""Whether the numbers of a tensor are sound, in one pass over blocks of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.dtypes import decoded
from isograd.tensors import Array

#: Elements that are looked at at a time.
BLOCK = 1 << 20
#: The smallest normal number of each dtype; below it precision is lost.
SMALLEST_NORMAL = {
    "float64": 2.0**-1022,
    "float32": 2.0**-126,
    "bfloat16": 2.0**-126,
    "float16": 2.0**-14,
}
#: The greatest finite float16: beyond it a conversion to float16 overflows.
FLOAT16_MAX = 65504.0
#: Root mean squares below which a weight hardly contributes: a float16 product of two vanishes.
TINY_RMS = 1e-8
#: MindInsight's watchpoints weight_change_too_large and _small: mean|Δ| / (mean|before| + 1e-9).
LARGE_CHANGE = 0.1
SMALL_CHANGE = 1e-4


@dataclass(frozen=True)
class TensorHealth:
    """What one pass over a tensor counts; numbers are of its finite elements.

    dead_channels: rows of the first axis that are all zero, in tensors of two or more axes.
    """

    nan: int
    infinite: int
    zero: int
    denormal: int
    minimum: float
    maximum: float
    mean: float
    rms: float
    is_constant: bool
    dead_channels: int


@dataclass(frozen=True)
class Issue:
    """Something about a tensor that a person should know; needs_action: or must act upon."""

    code: str
    name: str
    message: str
    needs_action: bool = False


@dataclass(frozen=True)
class Change:
    """How a tensor moved between two steps; ratio: mean|Δ| / (mean|before| + 1e-9)."""

    name: str
    is_unchanged: bool
    ratio: float


def health_of(tensor: RawTensor) -> TensorHealth:
    """Count what is unsound; numbers are accumulated in float64."""
    nan = infinite = zero = denormal = finite = 0
    low, high, total, squares = math.inf, -math.inf, 0.0, 0.0
    smallest = SMALLEST_NORMAL.get(tensor.dtype, 0.0)
    for values in _blocks(tensor):
        nan += int(np.count_nonzero(np.isnan(values)))
        infinite += int(np.count_nonzero(np.isinf(values)))
        sound = values[np.isfinite(values)]
        zero += int(np.count_nonzero(sound == 0))
        if smallest:
            size = np.abs(sound)
            denormal += int(np.count_nonzero((size < smallest) & (size > 0)))
        if sound.size:
            low, high = min(low, float(sound.min())), max(high, float(sound.max()))
            total += float(sound.sum())
            with np.errstate(over="ignore"):
                squares += float(np.square(sound).sum())
            finite += sound.size
    count = tensor.bits.size
    return TensorHealth(
        nan,
        infinite,
        zero,
        denormal,
        low if finite else math.nan,
        high if finite else math.nan,
        total / finite if finite else math.nan,
        math.sqrt(squares / finite) if finite else math.nan,
        count > 1 and finite == count and low == high,
        _dead_channels(tensor.bits) if zero else 0,
    )


def issues_of(name: str, dtype: str, shape: tuple[int, ...], health: TensorHealth) -> list[Issue]:
    """What the counts mean; only NaN, infinities and a dead matrix need action by themselves."""
    found: list[Issue] = []
    count = math.prod(shape)

    def note(code: str, message: str, needs_action: bool = False) -> None:
        found.append(Issue(f"params.{code}", name, message, needs_action))

    if health.nan:
        note("nan", f"{health.nan:,} of {count:,} numbers are NaN", True)
    if health.infinite:
        note("inf", f"{health.infinite:,} of {count:,} numbers are infinite", True)
    is_floating = dtype.startswith(("float", "bfloat", "complex"))
    if not is_floating or not count:
        return found
    if len(shape) >= 2 and health.zero == count:
        note("zero", "all its numbers are 0", True)
    elif len(shape) >= 2 and health.is_constant:
        note("constant", f"all its numbers are {health.minimum:g}")
    elif health.dead_channels:
        note("dead", f"{health.dead_channels:,} of {shape[0]:,} rows are all 0")
    if health.denormal:
        note("denormal", f"{health.denormal:,} of {count:,} numbers are denormal in {dtype}")
    greatest = max(abs(health.minimum), abs(health.maximum))
    if greatest > FLOAT16_MAX:
        note("large", f"its greatest number, {greatest:.3g}, is beyond float16")
    elif health.rms < TINY_RMS and health.zero < count:
        note("small", f"its root mean square is only {health.rms:.3g}")
    return found


def change_of(name: str, before: RawTensor, after: RawTensor) -> Change:
    """How far a tensor of the same shape moved from one step to the next."""
    moved = size = 0.0
    is_unchanged = True
    for first, second in zip(_blocks(before), _blocks(after), strict=True):
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        if not same.all():
            is_unchanged = False
            with np.errstate(invalid="ignore", over="ignore"):
                moved += float(np.abs(second - first).sum())
        size += float(np.abs(first).sum())
    count = max(1, before.bits.size)
    return Change(name, is_unchanged, moved / count / (size / count + 1e-9))


def _blocks(tensor: RawTensor) -> Iterator[NDArray[np.float64]]:
    """The values as float64, block by block; a complex number as its two parts."""
    flat: Array = tensor.bits.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        values = decoded(flat[start : start + BLOCK], tensor.dtype).values
        if values.dtype.kind == "c":
            values = np.ascontiguousarray(values).view(f"f{values.dtype.itemsize // 2}")
        yield values.astype(np.float64)


def _dead_channels(bits: Array) -> int:
    if bits.ndim < 2 or not bits.size:
        return 0
    return sum(1 for row in bits if not np.any(row))
