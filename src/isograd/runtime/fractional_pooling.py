"""Fractional maximum pools: the greatest of windows that random numbers place."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import Numbers, many


def _output_sizes(sizes: Sequence[int], output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    if output_size is not None:
        return tuple(int(count) for count in many(output_size, len(sizes)))
    if output_ratio is None:
        raise ValueError("a fractional maximum pool needs an output_size or an output_ratio")
    ratios = many(output_ratio, len(sizes))
    return tuple(int(size * ratio) for size, ratio in zip(sizes, ratios, strict=True))


def _window_starts(samples: Numbers, size: int, count: int, kernel: int) -> Numbers:
    """Where each plane's windows begin on one axis, of shape (planes, count)."""
    kind = samples.dtype.type
    drawn = samples[:, None]
    step = kind(size - kernel) / kind(max(count - 1, 1))
    places = (np.arange(count).astype(kind) + drawn) * step
    starts: Numbers = places.astype(np.int64) - (drawn * step).astype(np.int64)
    starts[:, -1] = size - kernel
    return starts


def _window_positions(
    samples: Numbers, sizes: Sequence[int], counts: Sequence[int], kernels: Sequence[int]
) -> Numbers:
    """What each window holds, of shape (planes, windows, elements), in the flattened plane."""
    found = np.zeros((len(samples), 1, 1), np.int64)
    for axis, (size, count, kernel) in enumerate(zip(sizes, counts, kernels, strict=True)):
        if not 0 < count <= size - kernel + 1:
            raise ValueError(f"{count} windows of {kernel} do not fit into an axis of {size}")
        starts = _window_starts(samples[:, axis], size, count, kernel)
        reach = (starts[:, :, None] + np.arange(kernel))[:, None, :, None, :]
        both = found[:, :, None, :, None] * size + reach
        found = both.reshape(len(samples), found.shape[1] * count, found.shape[2] * kernel)
    return found


def fractional_max_pool_in(dimensions: int) -> Callable[..., Any]:
    def fractional_max_pool(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        """torch's rule of the windows; MindSpore's pool places them otherwise."""
        sizes, leading = input.shape[-dimensions:], input.shape[:-dimensions]
        counts = _output_sizes(sizes, output_size, output_ratio)
        planes = math.prod(leading)
        samples = _random_samples
        if samples is None:
            samples = ops.rand(planes, dimensions, dtype=input.dtype)
        drawn = samples.asnumpy().reshape(-1, dimensions)[:planes]
        if dimensions == 2:
            drawn = drawn[:, ::-1]  # the first sample is the width's, of three axes the depth's
        held = _window_positions(drawn, sizes, counts, many(kernel_size, dimensions))
        flat, table = input.reshape(planes, math.prod(sizes)), ms.Tensor(held)
        known = ops.gather_elements(ops.stop_gradient(flat), 1, table.reshape(planes, -1))
        first = ops.argmax(known.reshape(table.shape), 2, True)
        positions = ops.gather_elements(table, 2, first).squeeze(2)
        values = ops.gather_elements(flat, 1, positions)
        shape = (*leading, *counts)
        found = values.reshape(shape)
        return (found, positions.reshape(shape)) if return_indices else found

    return fractional_max_pool


fractional_max_pool2d = fractional_max_pool_in(2)
fractional_max_pool3d = fractional_max_pool_in(3)
