"""Numbers as levels of colour, from 0 (nothing to see) to 8, on a logarithmic scale."""

from __future__ import annotations

import math

#: Steps of colour above 0.
LEVELS = 8


def log_level(value: float | None, low: float, high: float) -> int | None:
    """0 up to `low`, then 1 to 8 in equal steps of the logarithm up to `high`; None is grey."""
    if value is None:
        return None
    if math.isnan(value) or value >= high:
        return LEVELS
    if value <= low:
        return 0
    share = math.log(value / low) / math.log(high / low)
    return max(1, math.ceil(share * LEVELS))
