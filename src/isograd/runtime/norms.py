"""Normalisations, composed: mean and variance in two passes, statistics updated as in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import axes_of, mean_of, sum_of


def standardised(x: Any, axes: Sequence[int], eps: float) -> Any:
    centred = x - mean_of(x, axes)
    return centred / ops.sqrt(mean_of(centred * centred, axes) + eps)


def scaled(x: Any, weight: Any, bias: Any, shape: tuple[int, ...]) -> Any:
    if weight is not None:
        x = x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)


def channels(x: Any) -> tuple[int, ...]:
    """The shape in which one number per channel stands beside this tensor."""
    return (1, -1, *[1] * (x.ndim - 2))


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalised over the last axes."""
    size = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    axes = tuple(range(input.ndim - size, input.ndim))
    shape = tuple(input.shape[-size:])
    return scaled(standardised(input, axes, eps), weight, bias, shape)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Normalised over groups of channels of each image."""
    groups = input.reshape(input.shape[0], num_groups, -1)
    found = standardised(groups, (2,), eps).reshape(input.shape)
    return scaled(found, weight, bias, channels(input))


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """Divided by the root mean square of the last axes."""
    size = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    axes = tuple(range(input.ndim - size, input.ndim))
    least = float(np.finfo(np.float32).eps) if eps is None else eps
    found = input / ops.sqrt(mean_of(input * input, axes) + least)
    return scaled(found, weight, None, tuple(input.shape[-size:]))


def batch_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float | None = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalised by the batch in training, else by the running statistics."""
    axes = (0, *range(2, input.ndim))
    shape = channels(input)
    own = isinstance(running_mean, ms.Parameter) and isinstance(running_var, ms.Parameter)
    affine = weight is not None and bias is not None and isinstance(momentum, (int, float))
    if own and affine and input.dtype == ms.float32:
        kernel = ops.BatchNorm(is_training=training, epsilon=eps, momentum=float(momentum or 0))
        flat = input if input.ndim == 4 else input.reshape(*input.shape[:2], -1, 1)
        found = kernel(flat, weight, bias, running_mean, running_var)[0]
        return found if input.ndim == 4 else found.reshape(input.shape)
    if not training:
        mean, variance = running_mean.reshape(shape), running_var.reshape(shape)
        found = (input - mean) / ops.sqrt(variance + eps)
        return scaled(found, weight, bias, shape)
    _update(input, axes, running_mean, running_var, momentum)
    return scaled(standardised(input, axes, eps), weight, bias, shape)


def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float | None = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalised by each image and channel."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, input.ndim))
    if running_mean is not None:
        _update_by_image(input, axes, running_mean, running_var, momentum or 0.1)
    return scaled(standardised(input, axes, eps), weight, bias, channels(input))


def _update(
    x: Any, axes: Sequence[int], running_mean: Any, running_var: Any, momentum: float | None
) -> None:
    """Move running statistics towards the batch's; the variance is the unbiased one."""
    if running_mean is None or momentum is None:
        return
    x = ops.stop_gradient(x)
    count = int(np.prod([x.shape[axis] for axis in axes]))
    mean = mean_of(x, axes)
    variance = sum_of((x - mean) * (x - mean), axes) / max(count - 1, 1)
    for running, now in ((running_mean, mean.reshape(-1)), (running_var, variance)):
        ops.assign(running, ops.stop_gradient((1 - momentum) * running + momentum * now))


def _update_by_image(
    x: Any, axes: Sequence[int], running_mean: Any, running_var: Any, momentum: float
) -> None:
    """As `_update`, by the mean over images of each image's statistics."""
    x = ops.stop_gradient(x)
    count = int(np.prod([x.shape[axis] for axis in axes]))
    mean = mean_of(x, axes)
    variance = sum_of((x - mean) * (x - mean), axes) / max(count - 1, 1)
    by_channel = mean.reshape(mean.shape[0], -1)
    for running, now in ((running_mean, by_channel), (running_var, variance)):
        moved = (1 - momentum) * running + momentum * mean_of(now, (0,), False)
        ops.assign(running, ops.stop_gradient(moved))


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """Divided by the p-norm along an axis, at least eps; at zero the gradient is 1 / eps."""
    axes = axes_of(dim, input)
    powers = input * input if p == 2 else ops.pow(ops.abs(input), p)
    total = sum_of(powers, axes, keepdims=True)
    is_short = total <= eps**p
    # The root of zero has no gradient: where the norm is not used it is one of ones.
    safe = ops.where(is_short, ops.ones_like(total), total)
    length = ops.sqrt(safe) if p == 2 else ops.pow(safe, 1 / p)
    return input / ops.where(is_short, ops.full_like(length, eps), length)
