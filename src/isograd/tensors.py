"""Tensors between frameworks: a numpy array and the dtype that it had.

numpy has no bfloat16, so a bfloat16 tensor travels as float32 values (exact) with its own dtype
beside them; every other dtype is numpy's own.  Dtype names are those of numpy, plus "bfloat16".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

#: Unit roundoff of each floating dtype: half the distance from 1 to the next number.
UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}


@dataclass(frozen=True)
class TensorValue:
    """A tensor taken out of a framework.

    values: the numbers; float32 where dtype is "bfloat16", else of that dtype.
    """

    values: Array
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def is_floating(self) -> bool:
        return self.dtype in UNIT_ROUNDOFF


def tensor_value(values: Array) -> TensorValue:
    """Wrap a plain numpy array."""
    return TensorValue(values, str(values.dtype))


def contiguous(values: Array) -> Array:
    """The array in C order, of the same shape; numpy's own function makes 0-d arrays 1-d."""
    return np.ascontiguousarray(values).reshape(values.shape)


def bfloat16_to_bits(values: Array) -> NDArray[np.uint16]:
    """The upper halves of float32 values that are exact in bfloat16."""
    contiguous = np.ascontiguousarray(values, dtype=np.float32)
    return (contiguous.view(np.uint32) >> np.uint32(16)).astype(np.uint16).reshape(values.shape)


def bfloat16_from_bits(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """float32 values of bfloat16 bits."""
    wide = np.ascontiguousarray(bits, dtype=np.uint16).astype(np.uint32) << np.uint32(16)
    return wide.view(np.float32).reshape(bits.shape)
