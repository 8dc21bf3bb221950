"""What a dropout did in an experiment: how many independent draws, and how many of them dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from isograd.frameworks.base import DropoutSite

#: Channels of the experiment, 600 × 600: with 318,500 draws on each side a difference of one
#: percentage point at the most variable rate, 1/2, is found with probability 0.999 at a false-alarm
#: rate of 1e-6, because (4.89 + 3.09)² · 2 · 1/4 / 0.01² = 318,500.
PROBE_CHANNELS = (600, 600)


def probe_shape(spatial: int) -> tuple[int, ...]:
    """The shape of the experiment's input: rows, channels, and two places along each axis."""
    return (*PROBE_CHANNELS, *[2] * spatial)


def site_of(module: str, occurrence: int, dropped: Any, scale: float) -> DropoutSite:
    """What an experiment showed; dropped: boolean, rows × channels × places.

    An axis along which nothing changes shares one draw: a channel of Dropout2d is one draw, not
    one for each of its places.
    """
    mask = np.asarray(dropped)
    share = float(mask.mean())
    drawn = mask
    for axis in range(mask.ndim):
        first = drawn.take([0], axis)
        if np.array_equal(np.broadcast_to(first, drawn.shape), drawn):
            drawn = first
    count = drawn.size
    if share in (0.0, 1.0):  # nothing shows what was drawn together
        count = mask.shape[0]
    return DropoutSite(module, occurrence, share, scale, count)
