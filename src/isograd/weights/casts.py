"""Tensors in another floating dtype, with what is lost counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.dtypes import decoded
from isograd.tensors import Array

#: Dtypes that `--dtype` takes.
TARGETS = ("float64", "float32", "float16", "bfloat16")
_FLOATING = frozenset((*TARGETS, "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"))


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


def cast(name: str, tensor: RawTensor, target: str) -> tuple[RawTensor, CastLoss | None]:
    """The tensor in another dtype, rounded to nearest, ties to even."""
    if tensor.dtype == target:
        return tensor, None
    values = decoded(tensor.bits, tensor.dtype).values
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if target == "bfloat16":
            upper = _bfloat16_bits(values.astype(np.float32, copy=False))
            infinite, zero = (upper & 0x7FFF) == 0x7F80, (upper & 0x7FFF) == 0
            bits: Array = upper
        else:
            bits = values.astype(target)
            infinite, zero = np.isinf(bits), bits == 0
    overflowed = int(np.count_nonzero(infinite & np.isfinite(values)))
    flushed = int(np.count_nonzero(zero & (values != 0)))
    return RawTensor(bits, target), CastLoss(name, tensor.dtype, target, overflowed, flushed)


def _bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    wide = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
    rounded = wide + np.uint32(0x7FFF) + ((wide >> np.uint32(16)) & np.uint32(1))
    rounded = np.where(np.isnan(values), np.uint32(0x7FC00000), rounded)
    return (rounded >> np.uint32(16)).astype(np.uint16)
