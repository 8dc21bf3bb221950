"""Pools by torch's arguments: MindSpore's kernels for float32, else a composition.

The composed averages are products with one small matrix per axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import Numbers, many, resample, take


def _starts(size: int, kernel: int, step: int, edge: int, hole: int, ceil: bool) -> Numbers:
    """Where windows begin, counted from the first element; negative inside the padding."""
    room = size + 2 * edge - hole * (kernel - 1) - 1
    count = (math.ceil(room / step) if ceil else room // step) + 1
    if ceil and (count - 1) * step >= size + edge:
        count -= 1  # a window must not begin behind the elements
    found: Numbers = np.arange(count) * step - edge
    return found


def _averages_by_kernel(
    x: Any, dimensions: int, settings: Sequence[Sequence[int]], *more: Any
) -> Any:
    """MindSpore's average pool; one axis as two with a flat first one."""
    batched = x.ndim == dimensions + 2
    x = x if batched else ops.expand_dims(x, 0)
    if dimensions == 1:
        x = ops.expand_dims(x, 2)
        settings = [(neutral, *own) for neutral, own in zip((1, 1, 0), settings)]
    kernel, step, edge = (tuple(part) for part in settings)
    found = ops.avg_pool2d(x, kernel, step, tuple(np.repeat(edge, 2).tolist()), *more)
    found = found.squeeze(2) if dimensions == 1 else found
    return found if batched else found.squeeze(0)


def _greatest_by_kernel(
    x: Any, dimensions: int, settings: Sequence[Sequence[int]], ceil: bool, with_positions: bool
) -> Any:
    """MindSpore's maximum pool, as `_averages_by_kernel`."""
    batched = x.ndim == dimensions + 2
    x = x if batched else ops.expand_dims(x, 0)
    if dimensions == 1:
        x = ops.expand_dims(x, 2)
        settings = [(neutral, *own) for neutral, own in zip((1, 1, 0, 1), settings)]
    run = ops.max_pool3d if dimensions == 3 else ops.max_pool2d
    kernel, step, edge, hole = (tuple(part) for part in settings)
    found = run(x, kernel, step, edge, hole, ceil_mode=ceil, return_indices=True)
    found = tuple(part.squeeze(2) for part in found) if dimensions == 1 else found
    found = found if batched else tuple(part.squeeze(0) for part in found)
    return tuple(found) if with_positions else found[0]


def avg_pool_in(dimensions: int) -> Callable[..., Any]:
    def avg_pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        kernels = many(kernel_size, dimensions)
        steps = kernels if stride is None or stride == () else many(stride, dimensions)
        if dimensions < 3 and input.dtype == ms.float32:
            plain = (kernels, steps, many(padding, dimensions))
            more = (ceil_mode, count_include_pad, divisor_override or 0)
            return _averages_by_kernel(input, dimensions, plain, *more)
        matrices, counts = [], np.ones(())
        sizes = input.shape[-dimensions:]
        for size, kernel, step, edge in zip(sizes, kernels, steps, many(padding, dimensions)):
            starts = _starts(size, kernel, step, edge, 1, ceil_mode)
            reach = starts[:, None] + np.arange(kernel)
            matrix = (reach[:, :, None] == np.arange(size)).sum(1).astype(np.float64)
            matrices.append(matrix)
            ends = np.minimum(starts + kernel, size + edge) - starts
            counts = np.multiply.outer(counts, ends if count_include_pad else matrix.sum(1))
        divisor = counts if divisor_override is None else np.full(counts.shape, divisor_override)
        if not ops.is_floating_point(input):
            # Integers stay integers: what is divided is cut towards zero.
            total = resample(input.astype(ms.float64), matrices)
            return ops.trunc(total / ms.Tensor(divisor)).astype(input.dtype)
        total = resample(input, matrices)
        return total / ms.Tensor(divisor.astype(np.float32)).astype(input.dtype)

    return avg_pool


def _ranges(size: int, count: int) -> list[tuple[int, int]]:
    """The stretches that adaptive pools share an axis into."""
    return [((i * size) // count, -(-(i + 1) * size // count)) for i in range(count)]


def _counts(output_size: Any, sizes: Sequence[int]) -> list[int]:
    wanted = many(output_size, len(sizes))
    return [n if count is None else count for count, n in zip(wanted, sizes)]


def adaptive_avg_pool_in(dimensions: int) -> Callable[..., Any]:
    def adaptive_avg_pool(input: Any, output_size: Any) -> Any:
        if dimensions == 2 and input.dtype == ms.float32 and input.ndim == 4:
            return ops.adaptive_avg_pool2d(input, many(output_size, 2))
        matrices = []
        sizes = input.shape[-dimensions:]
        for size, count in zip(sizes, _counts(output_size, sizes)):
            matrix = np.zeros((count, size))
            for row, (start, end) in enumerate(_ranges(size, count)):
                matrix[row, start:end] = 1 / (end - start)
            matrices.append(matrix)
        return resample(input, matrices)

    return adaptive_avg_pool


def _greatest(x: Any, windows: Sequence[Numbers], with_positions: bool) -> Any:
    """The greatest element of each window and its position; of equal ones the first.

    windows: per axis the positions that each window holds, -1 where it holds fewer.
    """
    sizes = x.shape[-len(windows) :]
    table, outside = np.zeros((1, 1), np.int64), np.zeros((1, 1), bool)
    for size, own in zip(sizes, windows):
        shape = (len(table) * len(own), table.shape[1] * own.shape[1])
        pairs = table[:, None, :, None] * size + np.maximum(own, 0)[None, :, None, :]
        gone = outside[:, None, :, None] | (own < 0)[None, :, None, :]
        table, outside = pairs.reshape(shape), gone.reshape(shape)
    flat = x.reshape(-1, math.prod(sizes))
    known = take(ops.stop_gradient(flat), 1, np.where(outside, -1, table), -math.inf)
    first = ops.argmax(known, 2).swapaxes(0, 1)
    positions = ops.gather_elements(ms.Tensor(table), 1, first).swapaxes(0, 1)
    values = ops.gather_elements(flat, 1, positions)
    shape = (*x.shape[: x.ndim - len(windows)], *[len(own) for own in windows])
    found = values.reshape(shape)
    return (found, positions.reshape(shape)) if with_positions else found


def max_pool_in(dimensions: int) -> Callable[..., Any]:
    def max_pool(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        kernels = many(kernel_size, dimensions)
        steps = kernels if stride is None or stride == () else many(stride, dimensions)
        if input.dtype == ms.float32:
            plain = (kernels, steps, many(padding, dimensions), many(dilation, dimensions))
            return _greatest_by_kernel(input, dimensions, plain, ceil_mode, return_indices)
        windows = []
        for size, kernel, step, edge, hole in zip(
            input.shape[-dimensions:],
            kernels,
            steps,
            many(padding, dimensions),
            many(dilation, dimensions),
        ):
            starts = _starts(size, kernel, step, edge, hole, ceil_mode)
            reach = starts[:, None] + hole * np.arange(kernel)
            windows.append(np.where((reach < 0) | (reach >= size), -1, reach))
        return _greatest(input, windows, return_indices)

    return max_pool


def adaptive_max_pool_in(dimensions: int) -> Callable[..., Any]:
    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        windows = []
        sizes = input.shape[-dimensions:]
        for size, count in zip(sizes, _counts(output_size, sizes)):
            ranges = _ranges(size, count)
            widest = max(end - start for start, end in ranges)
            rows = [[*range(a, b), *[-1] * (widest - (b - a))] for a, b in ranges]
            windows.append(np.array(rows))
        return _greatest(input, windows, return_indices)

    return adaptive_max_pool


avg_pool1d = avg_pool_in(1)
max_pool1d = max_pool_in(1)
adaptive_avg_pool1d = adaptive_avg_pool_in(1)
adaptive_max_pool1d = adaptive_max_pool_in(1)
adaptive_max_pool2d = adaptive_max_pool_in(2)
adaptive_max_pool3d = adaptive_max_pool_in(3)
avg_pool2d = avg_pool_in(2)
max_pool2d = max_pool_in(2)
adaptive_avg_pool2d = adaptive_avg_pool_in(2)
avg_pool3d = avg_pool_in(3)
max_pool3d = max_pool_in(3)
adaptive_avg_pool3d = adaptive_avg_pool_in(3)


def lp_pool1d(
    input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """The norm of each window; of infinity torch's is the greatest size, `ops.lp_pool1d`'s 1."""
    if not math.isinf(norm_type):
        return ops.lp_pool1d(input, norm_type, kernel_size, stride, ceil_mode)
    sign = 1 if norm_type > 0 else -1
    return sign * max_pool1d(sign * ops.abs(input), kernel_size, stride, 0, 1, ceil_mode)


def lp_pool2d(
    input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """The norm of each window; of infinity torch's is the greatest size, `ops.lp_pool2d`'s 1."""
    if not math.isinf(norm_type):
        images = input if input.ndim == 4 else input.expand_dims(0)  # MindSpore wants a batch
        found = ops.lp_pool2d(images, norm_type, kernel_size, stride, ceil_mode)
        return found if input.ndim == 4 else found.squeeze(0)
    sign = 1 if norm_type > 0 else -1
    return sign * max_pool2d(sign * ops.abs(input), kernel_size, stride, 0, 1, ceil_mode)


def lp_pool3d(
    input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """The norm of each window, whose gradient is zero where the norm is; MindSpore has none."""
    if math.isinf(norm_type):
        sign = 1 if norm_type > 0 else -1
        return sign * max_pool3d(sign * ops.abs(input), kernel_size, stride, 0, 1, ceil_mode)
    means = avg_pool3d(input ** float(norm_type), kernel_size, stride, 0, ceil_mode)
    is_zero = means == 0
    totals = ops.where(is_zero, ops.ones_like(means), means) * math.prod(many(kernel_size, 3))
    return ops.where(is_zero, ops.zeros_like(means), totals ** (1.0 / norm_type))
