"""Integers with a scale and a zero point, as torch's quantised tensors hold them."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253


class QuantizedTensor:
    """What `torch.quantize_per_tensor` and `torch.quantize_per_channel` return.

    MindSpore has no such tensors: this holds the integers as a tensor, and what they mean beside
    it.  Only its own methods can be called on it.
    """

    def __init__(self, numbers: Any, scale: Any, zero_point: Any, axis: int | None = None) -> None:
        self._numbers, self._scale, self._zero_point, self._axis = numbers, scale, zero_point, axis
        self.shape, self.dtype = numbers.shape, numbers.dtype

    def int_repr(self) -> Any:
        """The integers."""
        return ms.Tensor(self._numbers)

    def dequantize(self) -> Any:
        """The numbers in float32."""
        scale, zero_point = (
            _along(one, self._axis, self._numbers.ndim) for one in (self._scale, self._zero_point)
        )
        found = (self._numbers.astype(np.float32) - zero_point) * scale
        return ms.Tensor(found.astype(np.float32))

    def q_scale(self) -> float:
        """The scale of a tensor that has one."""
        return float(self._scale)

    def q_zero_point(self) -> int:
        """The zero point of a tensor that has one."""
        return int(self._zero_point)

    def q_per_channel_scales(self) -> Any:
        """The scale of each channel, in float64."""
        return ms.Tensor(np.asarray(self._scale, np.float64))

    def q_per_channel_zero_points(self) -> Any:
        """The zero point of each channel."""
        return ms.Tensor(np.asarray(self._zero_point, np.int64))

    def q_per_channel_axis(self) -> int | None:
        """The axis of the channels."""
        return self._axis

    def qscheme(self) -> str:
        """The name of torch's scheme."""
        return "torch.per_tensor_affine" if self._axis is None else "torch.per_channel_affine"


def _along(value: Any, axis: int | None, rank: int) -> Any:
    """Numbers of channels in a shape that broadcasts."""
    if axis is None:
        return np.float32(value)
    shape = [-1 if one == axis else 1 for one in range(rank)]
    return np.asarray(value, np.float32).reshape(shape)


def _plain(value: Any) -> Any:
    return ops.stop_gradient(value).asnumpy() if isinstance(value, ms.Tensor) else value


def _quantised(input: Any, scale: Any, zero_point: Any, axis: int | None, dtype: Any) -> Any:
    kind = ms.dtype_to_nptype(dtype)
    values, limits = ops.stop_gradient(input).asnumpy(), np.iinfo(kind)
    inverse = np.float32(1) / _along(scale, axis, values.ndim)
    zero = _along(zero_point, axis, values.ndim)
    # Halves go to even numbers: torch adds the zero point behind that, of channels before it.
    raw = np.rint(values * inverse) + zero if axis is None else np.rint(values * inverse + zero)
    numbers = np.clip(raw.astype(np.float64), limits.min, limits.max).astype(kind)
    return QuantizedTensor(numbers, scale, zero_point, axis)


def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    """The tensor in integers with one scale; torch has no gradient of it either."""
    return _quantised(input, _plain(scale), _plain(zero_point), None, dtype)


def quantize_per_channel(input: Any, scales: Any, zero_points: Any, axis: int, dtype: Any) -> Any:
    """The tensor in integers with a scale for each channel; torch has no gradient of it either."""
    return _quantised(input, _plain(scales), _plain(zero_points), axis % input.ndim, dtype)


def dequantize(tensor: Any) -> Any:
    """The numbers of quantised tensors in float32; a tensor of numbers as it is."""
    if isinstance(tensor, (tuple, list)):
        return tuple(dequantize(one) for one in tensor)
    return tensor if isinstance(tensor, ms.Tensor) else tensor.dequantize()
