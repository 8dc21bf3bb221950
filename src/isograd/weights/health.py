"""Whether the numbers of a tensor are sound, in one pass over blocks of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.dtypes import decoded
from isograd.tensors import Array

#: Elements that are looked at at a time: so many stay in the processor's cache.
BLOCK = 1 << 17
_FAST = (np.dtype(np.float32), np.dtype(np.float64))
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


_VARIANCES = frozenset({"running_var", "moving_variance", "variance"})


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
        least, greatest = float(values.min()), float(values.max())
        sound = values
        if not (math.isfinite(least) and math.isfinite(greatest)):
            nan += int(np.count_nonzero(np.isnan(values)))
            infinite += int(np.count_nonzero(np.isinf(values)))
            sound = values[np.isfinite(values)]
            least = float(sound.min(initial=math.inf))
            greatest = float(sound.max(initial=-math.inf))
        zeros = sound.size - int(np.count_nonzero(sound))
        zero += zeros
        if smallest:
            denormal += int(np.count_nonzero(np.abs(sound) < smallest)) - zeros
        low, high = min(low, least), max(high, greatest)
        wide = sound.astype(np.float64, copy=False)
        total += float(wide.sum())
        squares += float(np.dot(wide, wide))
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
        _dead_channels(tensor) if zero else 0,
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
    for code, message, needs_action in _of_shape(name.rpartition(".")[2], shape, health):
        note(code, message, needs_action)
    if health.denormal:
        note("denormal", f"{health.denormal:,} of {count:,} numbers are denormal in {dtype}")
    greatest = max(abs(health.minimum), abs(health.maximum))
    if greatest > FLOAT16_MAX:
        note("large", f"its greatest number, {greatest:.3g}, is beyond float16")
    elif health.rms < TINY_RMS and health.zero < count:
        note("small", f"its root mean square is only {health.rms:.3g}")
    return found


def _of_shape(
    attribute: str, shape: tuple[int, ...], health: TensorHealth
) -> Iterator[tuple[str, str, bool]]:
    """What zeros and equal numbers mean for a variance, a matrix or a norm's scale."""
    count = math.prod(shape)
    if attribute in _VARIANCES and health.minimum < 0:
        yield "variance", f"a variance is negative: {health.minimum:.3g}", True
    elif attribute in _VARIANCES and health.is_constant and health.minimum == 1:
        yield "untrained", "all its variances are 1: the statistics were never updated", False
    if len(shape) >= 2 and health.zero == count:
        yield "zero", "all its numbers are 0", True
    elif len(shape) >= 2 and health.is_constant:
        yield "constant", f"all its numbers are {health.minimum:g}", False
    elif health.dead_channels:
        yield "dead", f"{health.dead_channels:,} of {shape[0]:,} rows are all 0", False
    elif attribute in ("weight", "gamma") and len(shape) == 1 and 0 < health.zero < count:
        yield "dead", f"{health.zero:,} of {count:,} scales are 0", False


def change_of(name: str, before: RawTensor, after: RawTensor) -> Change:
    """How far a tensor of the same shape moved from one step to the next."""
    moved = size = 0.0
    is_unchanged = True
    for old, new in zip(_blocks(before), _blocks(after), strict=True):
        first, second = old.astype(np.float64), new.astype(np.float64)
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        if not same.all():
            is_unchanged = False
            with np.errstate(invalid="ignore", over="ignore"):
                moved += float(np.abs(second - first).sum())
        size += float(np.abs(first).sum())
    count = max(1, before.bits.size)
    return Change(name, is_unchanged, moved / count / (size / count + 1e-9))


def _blocks(tensor: RawTensor) -> Iterator[NDArray[np.floating[Any]]]:
    """The values block by block, none empty; a complex number as its two parts."""
    flat: Array = tensor.bits.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        values: Any = decoded(flat[start : start + BLOCK], tensor.dtype).values
        if values.dtype.kind == "c":
            values = np.ascontiguousarray(values).view(f"f{values.dtype.itemsize // 2}")
        yield values if values.dtype in _FAST else values.astype(np.float64)


def _dead_channels(tensor: RawTensor) -> int:
    """Rows of the first axis that are all zero."""
    bits = tensor.bits
    if bits.ndim < 2 or not bits.size:
        return 0
    rows = bits.reshape(len(bits), -1)
    step = max(1, BLOCK // rows.shape[1])
    return sum(
        int(np.count_nonzero(~decoded(rows[start : start + step], tensor.dtype).values.any(axis=1)))
        for start in range(0, len(rows), step)
    )
