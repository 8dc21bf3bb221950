"""MindSpore tensors to plain values and back."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np

from isograd.tensors import TensorValue


def dtype_name(tensor: Any) -> str:
    """The dtype as numpy spells it, or "bfloat16"."""
    return str(tensor.dtype).lower().replace("bool", "bool_").replace("bool__", "bool").rstrip("_")


def to_value(tensor: Any) -> TensorValue:
    """Copy a tensor or parameter out of MindSpore.

    returns: the shape and dtype of the tensor; bfloat16 as float32 values with its own dtype name.
    """
    if tensor.dtype == ms.bfloat16:
        return TensorValue(np.array(tensor.astype(ms.float32).asnumpy()), "bfloat16")
    values = np.array(tensor.asnumpy())
    return TensorValue(values, str(values.dtype))


def from_value(value: TensorValue, dtype: Any = None) -> ms.Tensor:
    """Make a MindSpore tensor, of its own dtype or of the given one.

    value: any shape and dtype.
    """
    tensor = ms.Tensor(value.values)
    if dtype is None and value.dtype != str(value.values.dtype):
        dtype = getattr(ms, value.dtype)
    return tensor if dtype is None or tensor.dtype == dtype else tensor.astype(dtype)
