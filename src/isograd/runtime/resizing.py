"""Resizing: products with one small matrix per axis."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import Numbers, many, resample, take


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Images in another size, by torch's rules for every mode."""
    dimensions = input.ndim - 2
    olds = input.shape[2:]
    scales: tuple[Any, ...] = (None,) * dimensions
    if size is not None:
        news = many(size, dimensions)
    else:
        scales = many(scale_factor, dimensions)
        news = tuple(math.floor(n * scale) for n, scale in zip(olds, scales))
        scales = (None,) * dimensions if recompute_scale_factor else scales
    matrices = [
        _resizing(mode, old, new, scale, bool(align_corners), antialias)
        for old, new, scale in zip(olds, news, scales)
    ]
    if mode.startswith("nearest"):
        for axis, matrix in enumerate(matrices, 2):
            input = take(input, axis, matrix.argmax(1))
        return input
    return resample(input, matrices)


def _resizing(
    mode: str, old: int, new: int, scale: float | None, align_corners: bool, antialias: bool
) -> Numbers:
    """The matrix of shape (new, old) that resizes one axis."""
    ratio = old / new if scale is None else 1 / scale
    places = np.arange(new)
    if mode == "area":
        edges = np.arange(new + 1) * old / new
        inside = (np.arange(old) >= np.floor(edges[:-1, None])) & (
            np.arange(old) < np.ceil(edges[1:, None])
        )
        mean: Numbers = inside / inside.sum(1, keepdims=True)
        return mean
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


def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """The values of images at the places of a grid.

    Of the nearest two torch takes the even one, MindSpore the one away from zero: it gets the
    middle of the pixel.  It has no bicubic sampling.
    """
    if mode == "bicubic":
        return _bicubic(input, grid, padding_mode, bool(align_corners))
    if mode == "nearest":
        lines = []
        for axis, size in enumerate(input.shape[:1:-1]):
            at = ops.stop_gradient(grid)[..., axis]
            lines.append(_nearest(at, size, padding_mode, bool(align_corners)))
        grid = ops.stack(lines, -1)
    return ops.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def _nearest(at: Any, size: int, padding_mode: str, align_corners: bool) -> Any:
    """The middle of the pixel nearest to places from -1 to 1 along an axis."""
    pixel = ops.round(_kept(_place(at, size, align_corners), size, padding_mode, align_corners))
    if align_corners:
        return pixel * (2 / max(size - 1, 1)) - 1
    return (pixel * 2 + 1) / size - 1


def _place(at: Any, size: int, align_corners: bool) -> Any:
    """The pixel, between two of them, of a place from -1 to 1 along an axis."""
    return (at + 1) / 2 * (size - 1) if align_corners else ((at + 1) * size - 1) / 2


def _kept(place: Any, size: int, padding_mode: str, align_corners: bool) -> Any:
    """Pixels that are brought back into an image; with zeros around it they stay."""
    if padding_mode == "reflection":
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        turned = ops.abs(place - low)
        rest = turned - ops.floor(turned / max(span, 1)) * max(span, 1)
        is_back = ops.floor(turned / max(span, 1)) % 2 != 0
        place = ops.where(is_back, span - rest + low, rest + low)
    return place if padding_mode == "zeros" else ops.clamp(place, 0, size - 1)


def _bicubic(input: Any, grid: Any, padding_mode: str, align_corners: bool) -> Any:
    """Sixteen pixels around each place, weighted by Keys' kernel along both axes."""
    images, channels, height, width = input.shape
    x, y = _place(grid[..., 0], width, align_corners), _place(grid[..., 1], height, align_corners)
    left, top = (ops.stop_gradient(ops.floor(at)) for at in (x, y))
    flat, found = input.reshape(images, channels, -1), 0
    for down in range(-1, 3):
        row = _kept(top + down, height, padding_mode, align_corners)
        for right in range(-1, 3):
            column = _kept(left + right, width, padding_mode, align_corners)
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            at = ops.clamp(row, 0, height - 1) * width + ops.clamp(column, 0, width - 1)
            at = at.astype(ms.int32).reshape(images, 1, -1)
            values = ops.gather_elements(flat, 2, ops.tile(at, (1, channels, 1)))
            share = _share(x - left, right) * _share(y - top, down) * inside.astype(x.dtype)
            found += values.reshape(images, channels, *share.shape[1:]) * share.expand_dims(1)
    return found


def _share(rest: Any, offset: int) -> Any:
    """The weight of the pixel at an offset from the one before a place (torch's a is -0.75)."""
    d = rest - offset if offset < 1 else offset - rest
    if offset in (0, 1):
        return (1.25 * d - 2.25) * d * d + 1
    return ((-0.75 * d + 3.75) * d - 6) * d + 3
