"""What a random transform did to a picture whose pixels say where they come from.

Red grows from left to right, green from top to bottom, blue is a fixed grid: crops, flips and
rotations are read from the corners, changes of colour from the means.  A row of features per draw;
`compare/randomness.py` compares two sets of rows by the Kolmogorov–Smirnov test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 32
_PICTURE_AXES = 3


def probe(like: NDArray[Any]) -> NDArray[Any]:
    """An array of the shape and dtype of a transform's input that shows what becomes of it.

    like: (H, W), (H, W, C) or (C, H, W), any dtype; an array of another shape is returned itself.
    """
    shape = like.shape
    if like.ndim == 2:
        height, width, layout = *shape, "hw"
    elif like.ndim == 3 and shape[2] in (1, 3, 4):
        height, width, layout = shape[0], shape[1], "hwc"
    elif like.ndim == 3 and shape[0] in (1, 3, 4):
        height, width, layout = shape[1], shape[2], "chw"
    else:
        return like
    columns = np.broadcast_to(np.linspace(0.05, 0.95, width)[None, :], (height, width))
    rows = np.broadcast_to(np.linspace(0.05, 0.95, height)[:, None], (height, width))
    grid = 0.3 + 0.4 * ((np.add.outer(np.arange(height) // 8, np.arange(width) // 8)) % 2)
    planes = [columns, rows, grid, np.ones((height, width))]
    if layout == "hw":
        found = (columns + rows) / 2
    else:
        channels = shape[2] if layout == "hwc" else shape[0]
        found = np.stack(planes[:channels], axis=2 if layout == "hwc" else 0)
    if like.dtype.kind in "iu":
        return (found * 255).round().astype(like.dtype)
    high = 255.0 if float(np.max(like, initial=0.0)) > 8 else 1.0
    scaled: NDArray[Any] = (found * high).astype(like.dtype)
    return scaled


def features(output: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers that describe one output: extents, corners, centre, means and deviations.

    output: any shape and real dtype; (H, W, C) or (C, H, W) is a picture.
    returns: (features,) float64.
    """
    values = output.astype(np.float64)
    if values.ndim == 3 and values.shape[0] in (1, 3, 4) and values.shape[2] not in (1, 3, 4):
        values = values.transpose(1, 2, 0)
    if values.ndim != _PICTURE_AXES:
        return _flat_features(values)
    height, width, channels = values.shape
    places = ((0, 0), (0, -1), (-1, 0), (-1, -1), (height // 2, width // 2))
    planes = values[..., : min(3, channels)]
    corners = [planes[row, column] for row, column in places]
    parts = [
        np.asarray([height, width], np.float64),
        *corners,
        planes.mean(axis=(0, 1)),
        planes.std(axis=(0, 1)),
    ]
    return np.concatenate(parts)[:_MOST]


def extents(output: NDArray[Any]) -> int:
    """How many of an output's features are extents, which no rounding changes; they come first.

    output: any shape and dtype.
    """
    return 2 if output.ndim == _PICTURE_AXES else 1


def _flat_features(values: NDArray[np.float64]) -> NDArray[np.float64]:
    flat = values.reshape(-1)
    if flat.size == 0:
        return np.zeros(8)
    ends = [flat[0], flat[-1], flat[flat.size // 2]]
    found = [float(flat.size), *ends, flat.mean(), flat.std(), flat.min(), flat.max()]
    return np.asarray(found, np.float64)
