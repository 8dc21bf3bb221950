"""Pools and interpolation: all but the maxima are products with one small matrix per axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

from isograd.frameworks.mindspore.functions.basics import Numbers, many, resample, take


def _starts(size: int, kernel: int, step: int, edge: int, hole: int, ceil: bool) -> Numbers:
    """Where windows begin, counted from the first element; negative inside the padding."""
    room = size + 2 * edge - hole * (kernel - 1) - 1
    count = (math.ceil(room / step) if ceil else room // step) + 1
    if ceil and (count - 1) * step >= size + edge:
        count -= 1  # a window must not begin behind the elements
    found: Numbers = np.arange(count) * step - edge
    return found


def _avg_pool(dimensions: int) -> Callable[..., Any]:
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
        matrices, counts = [], np.ones(())
        sizes = input.shape[-dimensions:]
        for size, kernel, step, edge in zip(
            sizes, kernels, steps, many(padding, dimensions), strict=True
        ):
            starts = _starts(size, kernel, step, edge, 1, ceil_mode)
            reach = starts[:, None] + np.arange(kernel)
            matrix = (reach[:, :, None] == np.arange(size)).sum(1).astype(np.float64)
            matrices.append(matrix)
            ends = np.minimum(starts + kernel, size + edge) - starts
            counts = np.multiply.outer(counts, ends if count_include_pad else matrix.sum(1))
        total = resample(input, matrices)
        divisor = counts if divisor_override is None else np.full(counts.shape, divisor_override)
        return total / ms.Tensor(divisor.astype(np.float32)).astype(input.dtype)

    return avg_pool


def _ranges(size: int, count: int) -> list[tuple[int, int]]:
    """The stretches that adaptive pools share an axis into."""
    return [((i * size) // count, -(-(i + 1) * size // count)) for i in range(count)]


def _counts(output_size: Any, sizes: Sequence[int]) -> list[int]:
    wanted = many(output_size, len(sizes))
    return [n if count is None else count for count, n in zip(wanted, sizes, strict=True)]


def _adaptive_avg_pool(dimensions: int) -> Callable[..., Any]:
    def adaptive_avg_pool(input: Any, output_size: Any) -> Any:
        matrices = []
        sizes = input.shape[-dimensions:]
        for size, count in zip(sizes, _counts(output_size, sizes), strict=True):
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
    for size, own in zip(sizes, windows, strict=True):
        shape = (len(table) * len(own), table.shape[1] * own.shape[1])
        pairs = table[:, None, :, None] * size + np.maximum(own, 0)[None, :, None, :]
        gone = outside[:, None, :, None] | (own < 0)[None, :, None, :]
        table, outside = pairs.reshape(shape), gone.reshape(shape)
    flat = x.reshape(-1, math.prod(sizes))
    known = take(ops.stop_gradient(flat), 1, np.where(outside, -1, table), -math.inf)
    first = ops.argmax(known, 2).asnumpy()
    positions = table[np.arange(len(table)), first]
    values = ops.gather_elements(flat, 1, ms.Tensor(positions.astype(np.int32)))
    shape = (*x.shape[: x.ndim - len(windows)], *[len(own) for own in windows])
    found = values.reshape(shape)
    return (found, ms.Tensor(positions.reshape(shape))) if with_positions else found


def _max_pool(dimensions: int) -> Callable[..., Any]:
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
        windows = []
        for size, kernel, step, edge, hole in zip(
            input.shape[-dimensions:],
            kernels,
            steps,
            many(padding, dimensions),
            many(dilation, dimensions),
            strict=True,
        ):
            starts = _starts(size, kernel, step, edge, hole, ceil_mode)
            reach = starts[:, None] + hole * np.arange(kernel)
            windows.append(np.where((reach < 0) | (reach >= size), -1, reach))
        return _greatest(input, windows, return_indices)

    return max_pool


def _adaptive_max_pool(dimensions: int) -> Callable[..., Any]:
    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        windows = []
        sizes = input.shape[-dimensions:]
        for size, count in zip(sizes, _counts(output_size, sizes), strict=True):
            ranges = _ranges(size, count)
            widest = max(end - start for start, end in ranges)
            rows = [[*range(a, b), *[-1] * (widest - (b - a))] for a, b in ranges]
            windows.append(np.array(rows))
        return _greatest(input, windows, return_indices)

    return adaptive_max_pool


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    dimensions = input.ndim - 2
    olds = input.shape[2:]
    scales: tuple[Any, ...] = (None,) * dimensions
    if size is not None:
        news = many(size, dimensions)
    else:
        scales = many(scale_factor, dimensions)
        news = tuple(math.floor(n * scale) for n, scale in zip(olds, scales, strict=True))
        scales = (None,) * dimensions if recompute_scale_factor else scales
    matrices = [
        _resizing(mode, old, new, scale, bool(align_corners), antialias)
        for old, new, scale in zip(olds, news, scales, strict=True)
    ]
    if mode.startswith("nearest"):
        for axis, matrix in enumerate(matrices, 2):
            input = take(input, axis, matrix.argmax(1))
        return input
    if mode == "area":
        return _adaptive_avg_pool(dimensions)(input, tuple(news))
    return resample(input, matrices)


def _resizing(
    mode: str, old: int, new: int, scale: float | None, align_corners: bool, antialias: bool
) -> Numbers:
    """The matrix of shape (new, old) that resizes one axis."""
    ratio = old / new if scale is None else 1 / scale
    places = np.arange(new)
    if mode == "area":
        return np.zeros((new, old))
    if mode.startswith("nearest"):
        # Torch computes positions in float32.
        shift = np.float32(0.5 if mode == "nearest-exact" else 0.0)
        nearest = np.floor((places.astype(np.float32) + shift) * np.float32(ratio))
        return _one_hot(nearest.astype(np.int64), old)
    if align_corners:
        ratio = (old - 1) / (new - 1) if new > 1 else 0.0
        centres = places * ratio
    else:
        centres = (places + 0.5) * ratio - 0.5
    cubic = mode == "bicubic"
    if antialias:
        return _antialiased(centres, ratio, old, cubic)
    if not cubic:
        centres = np.maximum(centres, 0.0) if not align_corners else centres
    lowest = np.floor(centres).astype(np.int64)
    offsets = np.arange(-1, 3) if cubic else np.arange(2)
    weigh = _cubic if cubic else _hat
    return sum(
        (
            weigh(centres - lowest - offset, -0.75)[:, None] * _one_hot(lowest + offset, old)
            for offset in offsets
        ),
        np.zeros((new, old)),
    )


def _one_hot(positions: Numbers, size: int) -> Numbers:
    inside = np.clip(positions, 0, size - 1)
    found: Numbers = (inside[:, None] == np.arange(size)).astype(np.float64)
    return found


def _hat(distance: Numbers, a: float) -> Numbers:
    found: Numbers = np.maximum(1 - np.abs(distance), 0.0)
    return found


def _cubic(distance: Numbers, a: float) -> Numbers:
    """Keys' cubic convolution."""
    d = np.abs(distance)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    found: Numbers = np.where(d <= 1, near, np.where(d < 2, far, 0.0))
    return found


def _antialiased(centres: Numbers, ratio: float, old: int, cubic: bool) -> Numbers:
    """The kernel is widened where the axis shrinks; its weights sum to one (torch's a is -0.5)."""
    wide = max(ratio, 1.0)
    reach = (2 if cubic else 1) * wide
    places = np.arange(old)
    distance = (places[None, :] - centres[:, None]) / wide
    weights = _cubic(distance, -0.5) if cubic else _hat(distance, 0.0)
    first = np.maximum((centres + 0.5 - reach + 0.5).astype(np.int64), 0)
    last = np.minimum((centres + 0.5 + reach + 0.5).astype(np.int64), old)
    inside = (places >= first[:, None]) & (places < last[:, None])
    weights = np.where(inside, weights, 0.0)
    found: Numbers = weights / weights.sum(1, keepdims=True)
    return found


FUNCTIONS: dict[str, Callable[..., Any]] = {"interpolate": interpolate, "upsample": interpolate}
for _dimensions in (1, 2, 3):
    FUNCTIONS[f"avg_pool{_dimensions}d"] = _avg_pool(_dimensions)
    FUNCTIONS[f"max_pool{_dimensions}d"] = _max_pool(_dimensions)
    FUNCTIONS[f"adaptive_avg_pool{_dimensions}d"] = _adaptive_avg_pool(_dimensions)
    FUNCTIONS[f"adaptive_max_pool{_dimensions}d"] = _adaptive_max_pool(_dimensions)
