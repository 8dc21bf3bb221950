"""torch's functions where they are passed around: MindSpore's, with torch's arguments and defaults.

`inplace` changes nothing but memory in torch where the result is used, as it has to be here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.layers import dropout_channels
from isograd.runtime.losses import reduced
from isograd.runtime.reductions import summand, unless_empty


def relu(input: Any, inplace: bool = False) -> Any:
    """Nothing below 0."""
    return ops.relu(input)


def relu6(input: Any, inplace: bool = False) -> Any:
    """Nothing below 0 or above 6; MindSpore's takes no integers and no float64."""
    if input.dtype in (ms.float32, ms.float16):
        return ops.relu6(input)
    return hardtanh(input, 0, 6)


def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """Zero near zero; MindSpore's takes no float64."""
    if input.dtype != ms.float64:
        return ops.hardshrink(input, lambd)
    return ops.where(ops.abs(input) > lambd, input, ops.zeros_like(input))


def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """Nearer to zero by lambd; MindSpore's takes no float64."""
    if input.dtype != ms.float64:
        return ops.softshrink(input, lambd)
    return input - ops.clamp(input, -lambd, lambd)


def prelu(input: Any, weight: Any) -> Any:
    """The input above 0, a learnt share of it below; MindSpore's takes no float64."""
    if input.dtype != ms.float64:
        return ops.prelu(input, weight)
    if weight.size > 1:
        weight = weight.reshape(-1, *(1,) * (input.ndim - 2))
    return ops.where(input > 0, input, input * weight)


def silu(input: Any, inplace: bool = False) -> Any:
    """The input times its sigmoid."""
    return ops.silu(input)


def hardswish(input: Any, inplace: bool = False) -> Any:
    """The input times its hard sigmoid."""
    return ops.hardswish(input)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """A line between 0 and 1."""
    return ops.hardsigmoid(input)


def gelu(input: Any, approximate: str = "none") -> Any:
    """By the error function, or tanh's approximation."""
    return ops.gelu(input, approximate=approximate)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """The input above 0, a share of it below."""
    return ops.where(input > 0, input, input * negative_slope)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """The input above 0, alpha * expm1(x / alpha) below."""
    return ops.celu(input, float(alpha))


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Cut at both ends, where the gradient is 0; integers at integer ends."""
    if not ops.is_floating_point(input):
        return ops.clamp(input, int(min_val), int(max_val)).astype(input.dtype)
    is_between = ops.logical_and(input > min_val, input < max_val)
    return ops.where(is_between, input, ops.stop_gradient(ops.clamp(input, min_val, max_val)))


def glu(input: Any, dim: int = -1) -> Any:
    """One half times the sigmoid of the other."""
    return ops.glu(input, dim)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Channels dropped in training."""
    return dropout_channels(input, p, training, 1)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Channels dropped in training."""
    return dropout_channels(input, p, training, 2)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Channels dropped in training."""
    return dropout_channels(input, p, training, 3)


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Side by side along an axis."""
    return ops.cat(tensors, dim)


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Side by side along a new axis."""
    return ops.stack(tensors, dim)


def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """So many parts along an axis."""
    return ops.chunk(input, chunks, dim)


def squeeze(input: Any, *dims: Any, dim: Any = None) -> Any:
    """Without axes of length 1: all, or these, one by one or as a tuple; others stay."""
    if not dims and dim is None:
        return ops.squeeze(input)
    given = dims or (dim,)
    given = tuple(given[0]) if isinstance(given[0], (tuple, list)) else given
    single = tuple(axis for axis in given if input.shape[axis] == 1)
    return ops.squeeze(input, single) if single else input


def unsqueeze(input: Any, dim: int) -> Any:
    """With a new axis of length 1."""
    return ops.expand_dims(input, dim)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Two axes exchanged."""
    return ops.swapaxes(input, dim0, dim1)


def permute(input: Any, dims: Sequence[int]) -> Any:
    """The axes in another order."""
    return ops.permute(input, tuple(dims))


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Parts of a size, or of these sizes, along an axis."""
    return ops.split(tensor, split_size_or_sections, dim)


def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> Any:
    """So many parts, or parts between these positions, along an axis."""
    return ops.tensor_split(input, indices_or_sections, dim)


def cumsum(input: Any, dim: int, dtype: Any = None) -> Any:
    """The sums of the elements so far; of whole numbers and booleans in int64."""
    if not input.ndim:
        return cumsum(input.reshape(1), 0, dtype).reshape(())
    given = summand(input) if dtype is None else input.astype(dtype)
    return ops.cumsum(given, dim) if input.size else given  # MindSpore adds up no empty tensor


def repeat_interleave(input: Any, repeats: Any = None, dim: int | None = None) -> Any:
    """Each element so many times, one after the other; of counts alone, each one's position."""
    if repeats is None:
        return ops.repeat_interleave(ops.arange(input.shape[0]), input, 0)
    if input.dtype == ms.bool_:  # MindSpore repeats numbers alone
        return ops.repeat_interleave(input.astype(ms.uint8), repeats, dim).astype(ms.bool_)
    return ops.repeat_interleave(input, repeats, dim)


def rot90(input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    """Turned in a plane."""
    return ops.rot90(input, k, dims)


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """A product over these axes."""
    return ops.tensor_dot(a, b, dims)


def linspace(start: Any, end: Any, steps: int, dtype: Any = None, **_: Any) -> Any:
    """Numbers at equal distances; MindSpore raises for none at all."""
    if steps < 2:
        found = ops.full((int(steps),), float(start), dtype=ms.float32)
    else:
        found = ops.linspace(float(start), float(end), int(steps))
    return found if dtype is None else found.astype(dtype)


def filled_with(input: Any, value: Any) -> Any:
    """A tensor like another, of one value, which may be a tensor without axes."""
    return ops.broadcast_to(ms.tensor(value).astype(input.dtype), input.shape)


def logspace(start: Any, end: Any, steps: Any, base: Any = 10.0, dtype: Any = None) -> Any:
    """Powers of a base in equal steps of the exponent."""
    powers = ms.Tensor(np.logspace(start, end, steps, base=base))
    return powers.astype(ms.float32 if dtype is None else dtype)


def add(input: Any, other: Any, alpha: Any = 1) -> Any:
    """The sum."""
    return input + (other if alpha == 1 else alpha * other)


def sub(input: Any, other: Any, alpha: Any = 1) -> Any:
    """The difference."""
    return input - (other if alpha == 1 else alpha * other)


def mul(input: Any, other: Any) -> Any:
    """The product."""
    return input * other


def div(input: Any, other: Any, rounding_mode: str | None = None) -> Any:
    """The quotient."""
    if rounding_mode is None:
        return input / other
    return ops.div(input, other, rounding_mode=rounding_mode)


def floor_divide(input: Any, other: Any) -> Any:
    """The quotient's greatest whole number below."""
    return input // other


def total(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum over axes, or of everything; 0 of nothing, where MindSpore's is undefined."""
    return unless_empty(ops.sum, 0, input, dim=dim, keepdim=keepdim, dtype=dtype)


def mean(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The mean over axes, or of everything."""
    input = input if dtype is None else input.astype(dtype)
    return ops.mean(input, axis=dim, keep_dims=keepdim)


def prod(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The product along an axis, or of everything."""
    return ops.prod(input, dim, keepdim, dtype=dtype)


def all_true(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether everything is true, or everything along axes."""
    return ops.all(input.astype(ms.bool_), dim, keepdim)


def any_true(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether anything is true, or anything along axes."""
    return ops.any(input.astype(ms.bool_), dim, keepdim)


def full_like(input: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    """A tensor of one number, in the shape of another."""
    return ops.full_like(input, fill_value, dtype=dtype)


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(obj, ms.Tensor)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """A draw from the softmax of noisy logits, as shares or as one choice."""
    return ops.gumbel_softmax(logits, float(tau), hard, dim)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """Squares near 0, distances beyond delta, in the input's dtype."""
    found = ops.huber_loss(
        input, target, reduction="none" if weight is not None else reduction, delta=delta
    )
    found = found.astype(input.dtype)
    return found if weight is None else reduced(found * weight, reduction)
