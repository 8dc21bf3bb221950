"""Pools and interpolation: all but the maxima are products with one small matrix per axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isograd.runtime.pooling import (
    adaptive_avg_pool_in,
    adaptive_max_pool_in,
    avg_pool_in,
    max_pool_in,
)
from isograd.runtime.resizing import interpolate

FUNCTIONS: dict[str, Callable[..., Any]] = {"interpolate": interpolate, "upsample": interpolate}
for _dimensions in (1, 2, 3):
    FUNCTIONS[f"avg_pool{_dimensions}d"] = avg_pool_in(_dimensions)
    FUNCTIONS[f"max_pool{_dimensions}d"] = max_pool_in(_dimensions)
    FUNCTIONS[f"adaptive_avg_pool{_dimensions}d"] = adaptive_avg_pool_in(_dimensions)
    FUNCTIONS[f"adaptive_max_pool{_dimensions}d"] = adaptive_max_pool_in(_dimensions)
