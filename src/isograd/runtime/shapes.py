"""Where elements stand: reshaping, padding, windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import (
    Numbers,
    axes_of,
    many,
    numbered,
    take,
    take_flat,
)


def narrow(input: Any, dim: int, start: Any, length: int) -> Any:
    """A part of an axis; MindSpore's start counts from no end, and is no tensor."""
    first = int(start)
    return ops.narrow(input, dim, first if first >= 0 else first + input.shape[dim], length)


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Elements moved round along axes."""
    if dims is None or dims == ():
        return take_flat(input, np.roll(numbered(input).reshape(-1), shifts)).reshape(input.shape)
    steps = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    for axis, step in zip(axes_of(dims, input), steps):
        size = input.shape[axis]
        moved = step % size if size else 0
        if moved:
            last, first = ops.split(input, [size - moved, moved], axis)[::-1]
            input = ops.cat((last, first), axis)
    return input


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """Torch's order: the last axis first, two numbers for each."""
    if tuple(pad) == (0,) * len(pad):
        return ops.deepcopy(input)  # the copy of a Parameter is a Parameter
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    for number in range(len(pad) // 2):
        axis = input.ndim - 1 - number
        edges = (pad[2 * number], pad[2 * number + 1])
        if edges == (0, 0):
            continue
        own = np.arange(input.shape[axis])
        cut = own[max(-edges[0], 0) : len(own) - max(-edges[1], 0)]
        more = (max(edges[0], 0), max(edges[1], 0))
        if mode == "constant":
            positions = np.pad(cut, more, constant_values=-1)
        else:
            positions = np.pad(cut, more, mode=modes[mode])  # type: ignore[call-overload]
        input = take(input, axis, positions, float(value or 0.0))
    return input


def sizes_of(sizes: Any) -> Any:
    """Sizes in Python's numbers, which may be tensors of one number; one alone is one number."""
    if isinstance(sizes, (tuple, list)):
        return [size if isinstance(size, int) else int(size) for size in sizes]
    return sizes if isinstance(sizes, int) else int(sizes)


def flip(input: Any, *dims: Any) -> Any:
    """The order along axes turned round; axes one by one or as a tuple."""
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    return ops.flip(input, tuple(given))


def tile(input: Any, *dims: Any) -> Any:
    """Repeated along each axis; counts one by one or as a tuple."""
    given = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    return ops.tile(input, tuple(given))


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """These axes as one."""
    if input.ndim == 0:
        return input.reshape(1)
    first, last = start_dim % input.ndim, end_dim % input.ndim
    return input.reshape(*input.shape[:first], -1, *input.shape[last + 1 :])


def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """One axis as several."""
    axis = dim % input.ndim
    return input.reshape(*input.shape[:axis], *sizes, *input.shape[axis + 1 :])


def unfold_windows(input: Any, dimension: int, size: int, step: int) -> Any:
    """`Tensor.unfold`: the windows of an axis, their elements on a new last axis."""
    axis = dimension % input.ndim
    starts = np.arange(0, input.shape[axis] - size + 1, step)
    positions = starts[:, None] + np.arange(size)
    found = take(input, axis, positions.reshape(-1))
    found = unflatten(found, axis, positions.shape)
    return ops.movedim(found, axis + 1, -1)


def as_strided(
    input: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int = 0
) -> Any:
    """Elements by strides over the flattened tensor; a copy, where torch makes a view."""
    positions = np.full((), storage_offset or 0)
    for count, step in zip(size, stride):
        positions = positions[..., None] + np.arange(count) * step
    return take_flat(input, positions)


def stride(input: Any) -> tuple[int, ...]:
    """The strides of a contiguous tensor of this shape."""
    return tuple(int(np.prod(input.shape[axis + 1 :])) for axis in range(input.ndim))


def diag(input: Any, diagonal: int = 0) -> Any:
    """A vector as a matrix with that diagonal, or the diagonal of a matrix."""
    if input.dtype in (ms.complex64, ms.complex128):
        return ops.Complex()(diag(ops.real(input), diagonal), diag(ops.imag(input), diagonal))
    if input.ndim == 1:
        return ops.diag_embed(input, diagonal)
    return ops.diagonal(input, diagonal)


def fill_diagonal(input: Any, fill_value: float) -> Any:
    """A new tensor with this number on the main diagonal."""
    mask = ms.Tensor(np.eye(input.shape[0], input.shape[1], dtype=bool))
    return ops.masked_fill(input, mask, ms.Tensor(fill_value, input.dtype))


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Coordinates of a grid; the vectors one by one or as a list."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    return tuple(ops.meshgrid(*given, indexing=indexing))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that these shapes broadcast to."""
    given = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    return tuple(np.broadcast_shapes(*given))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803
    """Powers of the elements, the highest or the lowest first."""
    found = ops.vander(x, N)
    return ops.flip(found, (-1,)) if increasing else found


def hsplit(input: Any, indices_or_sections: Any) -> Any:
    """Parts along the second axis, or along the only one, of which MindSpore takes none."""
    if isinstance(indices_or_sections, int) and input.ndim == 1:
        if input.shape[0] % indices_or_sections:
            raise RuntimeError(f"{input.shape[0]} is not divisible by {indices_or_sections}")
    return ops.tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def sum_to_size(input: Any, *size: Any) -> Any:
    """The sums over the axes that broadcasting from this size would add or widen."""
    given = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return input.sum_to_size(*given)


def atleast_1d(*tensors: Any) -> Any:
    """The tensors, or those of one list, with one axis at least."""
    return _at_least(ops.atleast_1d, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """The tensors, or those of one list, with two axes at least."""
    return _at_least(ops.atleast_2d, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """The tensors, or those of one list, with three axes at least."""
    return _at_least(ops.atleast_3d, tensors)


def _at_least(function: Any, tensors: Any) -> Any:
    if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
        return function(tensors[0])
    given = tensors[0] if len(tensors) == 1 else tensors
    return tuple(function(tensor) for tensor in given)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The tensors, or those of one list, in their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return tuple(ops.broadcast_to(tensor, shape) for tensor in tensors)


def channel_shuffle(input: Any, groups: int) -> Any:
    """Channels of the groups in turn."""
    count = input.shape[1]
    order = np.arange(count).reshape(groups, count // groups).T.reshape(-1)
    return take(input, 1, order)


def view_as_complex(input: Any) -> Any:
    """The last axis' two numbers as one complex number."""
    return ops.Complex()(input[..., 0], input[..., 1])


def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """`F.unfold`: the patches of an image, or of each of several, as columns."""
    images = input if input.ndim == 4 else input.expand_dims(0)  # MindSpore wants a batch axis
    found = ops.unfold(images, kernel_size, dilation, padding, stride)
    return found if input.ndim == 4 else found.squeeze(0)


def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """`F.fold`: columns added up to an image, or to several."""
    if input.ndim == 2:
        alone = input.expand_dims(0)
        return fold(alone, output_size, kernel_size, dilation, padding, stride).squeeze(0)
    sizes = many(output_size, 2)
    table = _patches(sizes, kernel_size, dilation, padding, stride)
    batch, channels = input.shape[0], input.shape[1] // table.shape[0]
    columns = input.reshape(batch * channels, -1)
    count = sizes[0] * sizes[1]
    matrix = np.zeros((table.size, count), np.float32)
    inside = table.reshape(-1) >= 0
    matrix[np.flatnonzero(inside), table.reshape(-1)[inside]] = 1
    return ops.matmul(columns, ms.Tensor(matrix)).reshape(batch, channels, *sizes)


def _patches(
    sizes: Sequence[int], kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Numbers:
    """The flat positions that each patch holds, a column each; -1 is padding."""
    rows = []
    settings = (kernel_size, dilation, padding, stride)
    for size, kernel, hole, edge, step in zip(sizes, *[many(value, 2) for value in settings]):
        count = (size + 2 * edge - hole * (kernel - 1) - 1) // step + 1
        own = np.arange(kernel)[:, None] * hole + np.arange(count) * step - edge
        rows.append(np.where((own < 0) | (own >= size), -1, own))
    first, second = rows
    both = first[:, None, :, None] * sizes[1] + second[None, :, None, :]
    gone = (first[:, None, :, None] < 0) | (second[None, :, None, :] < 0)
    shape = (first.shape[0] * second.shape[0], first.shape[1] * second.shape[1])
    return np.where(gone, -1, both).reshape(shape)


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Any:
    """The places where `grid_sample` reads, for images of this size."""
    axes = []
    for count in size[2:]:
        line = np.linspace(-1, 1, count) if count > 1 else np.zeros(1)
        axes.append(line if align_corners else line * (count - 1) / count)
    grids = np.meshgrid(*axes, indexing="ij")
    places = np.stack([*[grid.reshape(-1) for grid in grids[::-1]], np.ones(grids[0].size)], -1)
    points = ms.Tensor(places.astype(np.float32)).expand_dims(0)
    found = ops.matmul(points, ops.swapaxes(theta, 1, 2))
    return found.reshape(size[0], *size[2:], len(axes))


def _shift(input: Any, dim: Any, forward: bool) -> Any:
    axes = axes_of(dim, input)
    steps = [input.shape[a] // 2 if forward else -(input.shape[a] // 2) for a in axes]
    return roll(input, tuple(steps), axes)


def fftshift(input: Any, dim: Any = None) -> Any:
    """The zero frequency into the middle."""
    return _shift(input, dim, True)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """The zero frequency back to the front."""
    return _shift(input, dim, False)


def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours, n times."""
    parts = [part for part in (prepend, input, append) if part is not None]
    found = parts[0] if len(parts) == 1 else ops.cat(parts, dim)
    for _ in range(n):
        own = np.arange(found.shape[dim])
        found = take(found, dim % found.ndim, own[1:]) - take(found, dim % found.ndim, own[:-1])
    return found
