"""Transforms in numpy and Pillow, as the libraries compute them, to apply a hypothesis by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.sources.media import pillow

Numbers = NDArray[Any]

#: Filters of Pillow, which antialias when they shrink.
FILTERS = ("nearest", "bilinear", "bicubic", "box", "hamming", "lanczos")


def pillow_resize(picture: Numbers, height: int, width: int, name: str) -> Numbers:
    """Resize (H, W, C) by a filter of Pillow; floats channel by channel.

    picture: (H, W, C), uint8 or any real dtype.
    returns: (height, width, C) of the same dtype.
    """
    image_module = pillow()
    kernel = getattr(image_module.Resampling, name.upper())
    if picture.dtype == np.uint8 and picture.shape[2] in (1, 3, 4):
        image = image_module.fromarray(picture[..., 0] if picture.shape[2] == 1 else picture)
        found = np.asarray(image.resize((width, height), kernel))
        return found[..., None] if found.ndim == 2 else found
    planes = [
        np.asarray(
            image_module.fromarray(picture[..., n].astype(np.float32)).resize(
                (width, height), kernel
            )
        )
        for n in range(picture.shape[2])
    ]
    return np.stack(planes, axis=2)


def point_resize(picture: Numbers, height: int, width: int, name: str) -> Numbers:
    """Resize (H, W, C) by points without antialiasing, as OpenCV and torch's tensors do.

    Half-pixel centres; "bicubic" with OpenCV's and torch's a = -0.75.

    picture: (H, W, C), integers of 0 to 255 or floats: any such dtype.
    returns: (height, width, C) of the same dtype.
    """
    wide = picture.astype(np.float64)
    rows = _weights(picture.shape[0], height, name)
    columns = _weights(picture.shape[1], width, name)
    found = np.einsum("ij,jkc->ikc", rows, wide)
    found = np.einsum("lk,ikc->ilc", columns, found)
    if picture.dtype.kind in "iu":
        return np.clip(np.rint(found), 0, 255).astype(picture.dtype)
    return found.astype(picture.dtype)


def _weights(size: int, target: int, name: str) -> NDArray[np.float64]:
    """The matrix by which an axis of `size` becomes one of `target`."""
    found = np.zeros((target, size))
    scale = size / target
    for n in range(target):
        if name == "nearest":
            found[n, min(size - 1, int(n * scale))] = 1.0
            continue
        centre = (n + 0.5) * scale - 0.5
        first = int(np.floor(centre))
        taps = range(first, first + 2) if name == "bilinear" else range(first - 1, first + 3)
        for tap in taps:
            weight = _linear(centre - tap) if name == "bilinear" else _cubic(centre - tap)
            found[n, min(size - 1, max(0, tap))] += weight
    return found


def _linear(distance: float) -> float:
    return max(0.0, 1.0 - abs(distance))


def _cubic(distance: float, a: float = -0.75) -> float:
    t = abs(distance)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    if t < 2:
        return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return 0.0


def area_resize(picture: Numbers, height: int, width: int) -> Numbers:
    """Resize (H, W, C) by the mean over each target pixel's area.

    picture: (H, W, C), integers of 0 to 255 or floats: any such dtype.
    returns: (height, width, C) of the same dtype.
    """
    rows, columns = _area(picture.shape[0], height), _area(picture.shape[1], width)
    found = np.einsum("ij,jkc->ikc", rows, picture.astype(np.float64))
    found = np.einsum("lk,ikc->ilc", columns, found)
    if picture.dtype.kind in "iu":
        return np.clip(np.rint(found), 0, 255).astype(picture.dtype)
    return found.astype(picture.dtype)


def _area(size: int, target: int) -> NDArray[np.float64]:
    edges = np.arange(target + 1) * size / target
    cells = np.arange(size)
    low = np.maximum(edges[:-1, None], cells[None, :])
    high = np.minimum(edges[1:, None], cells[None, :] + 1)
    overlap = np.clip(high - low, 0.0, None)
    weights: NDArray[np.float64] = overlap / overlap.sum(axis=1, keepdims=True)
    return weights


def crop(picture: Numbers, top: int, left: int, height: int, width: int) -> Numbers:
    """A window of (H, W, C), filled with zeros where it leaves the picture.

    picture: (H, W, C), any dtype.
    returns: (height, width, C) of the same dtype.
    """
    found = np.zeros((height, width, *picture.shape[2:]), picture.dtype)
    y0, x0 = max(0, top), max(0, left)
    y1, x1 = min(picture.shape[0], top + height), min(picture.shape[1], left + width)
    if y1 > y0 and x1 > x0:
        found[y0 - top : y1 - top, x0 - left : x1 - left] = picture[y0:y1, x0:x1]
    return found


#: How libraries place a window of one size in another: the offset of a margin.
OFFSETS = {
    "rounded down": lambda margin: margin // 2,
    "rounded up": lambda margin: -(-margin // 2),
    "rounded half to even": lambda margin: round(margin / 2),
    "at the beginning": lambda margin: 0,
    "at the end": lambda margin: margin,
}


def smooth(rng: np.random.Generator, height: int, width: int) -> Numbers:
    """A smooth random picture, (H, W, 3) uint8, for examples."""
    coarse = rng.integers(0, 256, (height // 6 + 2, width // 6 + 2, 3)).astype(np.uint8)
    return pillow_resize(coarse, height, width, "bicubic")


def busy(rng: np.random.Generator, height: int, width: int) -> Numbers:
    """A picture with fine detail, (H, W, 3) uint8, for examples."""
    noise = rng.integers(-60, 60, (height, width, 3))
    found: Numbers = np.clip(smooth(rng, height, width) + noise, 0, 255).astype(np.uint8)
    return found


def grey(picture: Numbers) -> Numbers:
    """Pillow's luma of (H, W, 3) uint8, repeated in three channels.

    picture: (H, W, 3) uint8.
    returns: (H, W, 3) uint8.
    """
    luma = np.asarray(pillow().fromarray(np.ascontiguousarray(picture)).convert("L"))
    return np.repeat(luma[..., None], 3, axis=2)
