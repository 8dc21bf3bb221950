"""Sources in the place of a view (`torch.select_scatter`), and copies of views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import Numbers, numbered, shape_with


def _scattered(input: Any, src: Any, places: Numbers) -> Any:
    """A new tensor with the source's elements at flat positions; both get their gradients."""
    if tuple(src.shape) != places.shape:
        raise RuntimeError(f"the source has shape {tuple(src.shape)}, its place {places.shape}")
    if not places.size:
        return ops.deepcopy(input)
    count = int(np.prod(input.shape))
    order = np.arange(count)
    order[places.reshape(-1)] = count + np.arange(places.size)
    both = ops.cat((input.reshape(-1), src.astype(input.dtype).reshape(-1)))
    return ops.gather(both, ms.Tensor(order), 0).reshape(input.shape)


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """A new tensor whose slice at one position of an axis is the source; MindSpore has none."""
    return _scattered(input, src, np.take(numbered(input), index, dim))


def slice_scatter(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    """A new tensor whose positions from start to end of an axis are the source's.

    `ops.slice_scatter` of MindSpore 2.10 wants positions from 0, torch takes negative ones too.
    """
    axis = dim % input.ndim
    own = np.arange(input.shape[axis])[slice(start, end, step)]
    return _scattered(input, src, np.take(numbered(input), own, axis))


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A new tensor with the source on a diagonal of two axes; MindSpore has none on a CPU."""
    return _scattered(input, src, np.diagonal(numbered(input), offset, dim1, dim2))


def as_strided_scatter(
    input: Any,
    src: Any,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Any:
    """A new tensor with the source where strides over the flattened tensor lead to."""
    places = np.full((), storage_offset or 0)
    for axis, count in enumerate(size):
        places = places[..., None] + np.arange(count) * stride[axis]
    return _scattered(input, src, places)


def deep_copies(parts: Any) -> tuple[Any, ...]:
    """Tensors of their own, where MindSpore's parts may be views of one tensor."""
    return tuple(ops.deepcopy(part) for part in parts)


def slice_copy(
    input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """The positions from start to end of an axis as a tensor of its own."""
    axis = dim % input.ndim
    own = np.arange(input.shape[axis])[slice(start, end, step)]
    if not own.size:
        return ops.zeros(shape_with(input, axis, 0), dtype=input.dtype)
    return ops.gather(input, ms.Tensor(own.astype(np.int32)), axis)


def unsafe_split(input: Any, split_size: int, dim: int = 0) -> Any:
    """The parts of one size of an axis."""
    return ops.split(input, split_size, dim)


def unsafe_split_with_sizes(input: Any, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """The parts of these sizes of an axis."""
    return ops.split(input, list(split_sizes), dim)


def view_copy(input: Any, size: Any) -> Any:
    """The elements in another shape, as a tensor of its own.

    Raises NotImplementedError for a dtype, in which torch reads the same bytes.
    """
    if not isinstance(size, (tuple, list, int)):
        raise NotImplementedError("MindSpore 2.10 reads no tensor's bytes in another dtype")
    return ops.deepcopy(input.reshape(size))


def expand_copy(input: Any, size: Sequence[int]) -> Any:
    """The tensor in a larger shape, as a tensor of its own; -1 leaves an axis as it is."""
    return ops.deepcopy(ops.broadcast_to(input, tuple(size)))


def adjoint(input: Any) -> Any:
    """The last two axes exchanged, complex numbers conjugated; `Tensor.mH` loses the gradient."""
    turned = ops.swapaxes(input, -2, -1)
    return ops.conj(turned) if input.dtype in (ms.complex64, ms.complex128) else turned


def resized(input: Any, *sizes: Any) -> Any:
    """`Tensor.resize_`: the first elements in another shape; zeros where torch leaves memory."""
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else tuple(sizes)
    count, held = int(np.prod(shape)), int(np.prod(input.shape))
    if not count or not held:
        return ops.zeros(shape, dtype=input.dtype)
    flat = input.reshape(-1)
    if count > held:
        flat = ops.cat((flat, ops.zeros((count - held,), dtype=input.dtype)))
    return ops.gather(flat, ms.Tensor(np.arange(count, dtype=np.int32)), 0).reshape(shape)
