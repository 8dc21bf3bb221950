"""Building blocks with exact gradients on a CPU: gathering along an axis, axes, casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253
from numpy.typing import NDArray

#: Positions along an axis, or the weights of a matrix.
Numbers = NDArray[Any]


def refuse_gradient(name: str, tensor: Any) -> None:
    """Raise where a gradient would go through what numpy computes, and be lost."""
    if (tensor * 1)._requires_grad:
        raise NotImplementedError(
            f"MindSpore has no gradient of torch.{name}, which this port computes by numpy: "
            "detach() what it is given where no gradient is needed"
        )


def zero_with_gradient(x: Any) -> Any:
    """Zeros with the gradient of a tensor.

    Added to values that numpy computed, times their derivative, they leave the values as they are
    and give them their gradient; that of the gradient is not exact.
    """
    return x - ops.stop_gradient(x)


def is_compiled(x: Any) -> bool:
    """Whether the static graph is being compiled: there a tensor has no memory yet.

    The compiler answers while it compiles, so that one branch is left of an `if`.
    """
    return not hasattr(x, "data_ptr")


def named(kind: Any, *parts: Any) -> Any:
    """A result with names; plain when compiled, where a named one has no gradient."""
    return parts if is_compiled(parts[0]) else kind(*parts)


def cast(x: Any, dtype: Any) -> Any:
    """To a dtype that is given by name, with or without "torch."."""
    return x.astype(getattr(ms, str(dtype).rpartition(".")[2]))


def constant(values: Any, like: Any) -> Any:
    """An array as a tensor of another tensor's dtype."""
    return ms.Tensor(np.asarray(values, np.float64).astype(np.float32)).astype(like.dtype)


def many(value: Any, count: int) -> tuple[Any, ...]:
    """One number per dimension, from one number or several."""
    if isinstance(value, (tuple, list)):
        return tuple(value) if len(value) == count else tuple(value) * count
    return (value,) * count


def axes_of(dim: Any, x: Any) -> tuple[int, ...]:
    """Axes as numbers from 0; None means all of them."""
    if dim is None or dim == () or not x.ndim:
        return tuple(range(x.ndim))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(axis % x.ndim for axis in given)


def shape_with(x: Any, axis: int, size: int) -> tuple[int, ...]:
    """The shape with another size at an axis."""
    return tuple(size if i == axis else n for i, n in enumerate(x.shape))


def take(x: Any, axis: int, positions: Numbers, fill: float | None = None) -> Any:
    """The elements at these positions of an axis; with fill, -1 stands for that number.

    MindSpore's own slices crash in their gradient where several follow one another.
    """
    if fill is not None and np.any(positions < 0):
        size = x.shape[axis]
        filled = ops.full(shape_with(x, axis, 1), fill, dtype=x.dtype)
        x = ops.cat((x, filled), axis)
        positions = np.where(positions < 0, size, positions)
    return ops.gather(x, ms.Tensor(positions.astype(np.int32)), axis)


def take_flat(x: Any, positions: Numbers) -> Any:
    """The elements at these positions of the flattened tensor, in the positions' shape."""
    flat = ops.gather(x.reshape(-1), ms.Tensor(positions.reshape(-1).astype(np.int32)), 0)
    return flat.reshape(positions.shape)


def numbered(x: Any) -> Numbers:
    """The position of every element in the flattened tensor, in the tensor's shape."""
    found: Numbers = np.arange(int(np.prod(x.shape))).reshape(x.shape)
    return found


def resample(x: Any, matrices: Sequence[Numbers]) -> Any:
    """Multiply each of the last axes by a matrix of shape (new size, old size)."""
    for number, matrix in enumerate(matrices):
        axis = x.ndim - len(matrices) + number
        moved = ops.swapaxes(x, axis, x.ndim - 1)
        rows = moved.reshape(-1, moved.shape[-1])
        product = ops.matmul(rows, constant(matrix.T, x))
        x = ops.swapaxes(product.reshape(*moved.shape[:-1], -1), axis, x.ndim - 1)
    return x


def mean_of(x: Any, axes: Sequence[int], keepdims: bool = True) -> Any:
    """The mean over axes."""
    return ops.ReduceMean(keep_dims=keepdims)(x, tuple(axes)) if axes else x


def sum_of(x: Any, axes: Sequence[int], keepdims: bool = False) -> Any:
    """The sum over axes."""
    return ops.ReduceSum(keep_dims=keepdims)(x, tuple(axes)) if axes else x


def root(x: Any) -> Any:
    """The square root, whose gradient at zero is zero, as norms and deviations have it in torch."""
    is_zero = x == 0
    return ops.where(is_zero, ops.zeros_like(x), ops.sqrt(ops.where(is_zero, ops.ones_like(x), x)))
