"""Tensors in another floating dtype, with what is lost counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.dtypes import decoded
from isograd.tensors import Array

#: Dtypes that `--dtype` takes, with the exponent of the power of two that their numbers stay below.
TARGETS = {"float64": 1024, "float32": 128, "float16": 16, "bfloat16": 128}
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
_FLOATING = frozenset((*TARGETS, *_FLOAT8))


@dataclass(frozen=True)
class CastLoss:
    """What a cast did to a tensor's numbers.

    overflowed: finite numbers that became infinite; flushed: numbers that became 0.
    """

    name: str
    source: str
    target: str
    overflowed: int
    flushed: int


def target_dtype(source: str, wanted: str | None) -> str:
    """The dtype that a tensor gets; only floating ones are cast."""
    return wanted if wanted is not None and source in _FLOATING else source


def may_overflow(source: str, target: str) -> bool:
    """Whether a finite number of the source can become infinite: also by rounding upwards."""
    if source not in (*TARGETS, "float8_e8m0fnu") or target not in TARGETS or source == target:
        return False
    return TARGETS.get(source, 128) > TARGETS[target] or target == "bfloat16" != source


def cast(name: str, tensor: RawTensor, target: str) -> tuple[RawTensor, CastLoss | None]:
    """The tensor in another dtype, rounded to nearest, ties to even."""
    if tensor.dtype == target:
        return tensor, None
    values = decoded(tensor.bits, tensor.dtype).values
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if target == "bfloat16":
            upper = _bfloat16_bits(_rounded_to_odd(values))
            infinite, zero = (upper & 0x7FFF) == 0x7F80, (upper & 0x7FFF) == 0
            bits: Array = upper
        else:
            bits = values.astype(target)
            infinite, zero = np.isinf(bits), bits == 0
    overflowed = int(np.count_nonzero(infinite & np.isfinite(values)))
    flushed = int(np.count_nonzero(zero & (values != 0)))
    return RawTensor(bits, target), CastLoss(name, tensor.dtype, target, overflowed, flushed)


def _rounded_to_odd(values: Array) -> NDArray[np.float32]:
    """float32 with the last bit set where anything was lost, so that a second rounding is right."""
    narrow = values.astype(np.float32)
    if values.dtype != np.float64:
        return narrow
    bits = np.ascontiguousarray(narrow).view(np.uint32).reshape(narrow.shape)
    is_lossy = np.isfinite(values) & (narrow != values)
    bits = np.where(is_lossy & (np.abs(narrow) > np.abs(values)), bits - np.uint32(1), bits)
    bits = np.where(is_lossy, bits | np.uint32(1), bits)
    return bits.view(np.float32)


def _bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    wide = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
    rounded = wide + np.uint32(0x7FFF) + ((wide >> np.uint32(16)) & np.uint32(1))
    rounded = np.where(np.isnan(values), np.uint32(0x7FC00000), rounded)
    return (rounded >> np.uint32(16)).astype(np.uint16)
