"""Masks over images: integer maps of an image's height and width, as translucent colours."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.tensors import Array

#: Values that a mask may have: a picture or a map of depths has more.
_MOST_VALUES = 64
#: How much of a mask's colour is seen, of 1.
_OPACITY = 0.5
#: Turn of the hue from a value to the next: the golden ratio keeps neighbours apart.
_TURN = 0.618034


def mask_of(values: Array, height: int, width: int) -> Array | None:
    """The mask (height, width) that an array is; None for any other array.

    values: any shape and dtype.
    returns: (height, width) integers or booleans of the same dtype.
    """
    if values.ndim == 3 and 1 in (values.shape[0], values.shape[2]):
        values = values[0] if values.shape[0] == 1 else values[..., 0]
    if values.shape != (height, width) or values.dtype.kind not in "biu":
        return None
    return values if len(np.unique(values)) <= _MOST_VALUES else None


def colour(value: int) -> tuple[int, int, int]:
    """The colour of a value, 0 to 255: the same in every sample."""
    red, green, blue = colorsys.hsv_to_rgb(value * _TURN % 1.0, 0.9, 1.0)
    return round(red * 255), round(green * 255), round(blue * 255)


def overlaid(pixels: NDArray[np.uint8], mask: Array) -> NDArray[np.uint8]:
    """An image (H, W) or (H, W, 3 or 4) as (H, W, 3), coloured wherever the mask is not 0.

    pixels: (H, W), (H, W, 3) or (H, W, 4) uint8.
    mask: (H, W) integers.
    returns: (H, W, 3) uint8.
    """
    image = np.stack([pixels] * 3, axis=-1) if pixels.ndim == 2 else pixels[..., :3].copy()
    for value in np.unique(mask[mask != 0]).tolist():
        here = mask == value
        mixed = image[here] * (1 - _OPACITY) + np.asarray(colour(int(value))) * _OPACITY
        image[here] = mixed.round().astype(np.uint8)
    return image


def legend(mask: Array) -> tuple[tuple[str, str], ...]:
    """For each value of a mask its CSS colour ("" for 0, which has none) and its share.

    mask: (H, W) integers.
    """
    values, counts = np.unique(mask, return_counts=True)
    return tuple(
        (_css(int(value)), f"{int(value)}: {count / mask.size:.1%}")
        for value, count in zip(values.tolist(), counts.tolist(), strict=True)
    )


def _css(value: int) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour(value)) if value else ""


def image_among(fields: dict[str, Any], encoded: frozenset[str]) -> str | None:
    """The first field that is an image in colours, else the first encoded one."""
    for name, values in fields.items():
        if values.ndim == 3 and (values.shape[2] in (3, 4) or values.shape[0] == 3):
            return name
    return next((name for name in fields if name in encoded and fields[name].ndim == 2), None)
