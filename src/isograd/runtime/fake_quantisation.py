"""Numbers rounded as quantisation would round them, with gradients straight through."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253


def fake_quantize_per_tensor_affine(
    input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Any:
    """To the nearest of the numbers that a scale and a zero point can show.

    Inside their range the gradient passes as it is, outside it is 0.  MindSpore has none on a CPU.
    """
    return _rounded(input, _still(scale), _still(zero_point), quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero point for each channel."""
    shape = [-1 if one == axis else 1 for one in range(input.ndim)]
    scales, zeros = _still(scale).reshape(shape), _still(zero_point).reshape(shape)
    return _rounded(input, scales, zeros, quant_min, quant_max)


def _still(value: Any) -> Any:
    return ops.stop_gradient(value).astype(ms.float32) if isinstance(value, ms.Tensor) else value


def _rounded(input: Any, scale: Any, zero_point: Any, low: int, high: int) -> Any:
    still = ops.stop_gradient(input)
    raw = ops.round(still * (1.0 / scale)) + zero_point
    is_inside = ops.logical_and(raw >= low, raw <= high)
    found = (ops.clamp(raw, low, high) - zero_point) * scale
    passing = ops.where(is_inside, input, ops.zeros_like(input))
    return found.astype(input.dtype) + (passing - ops.stop_gradient(passing))
