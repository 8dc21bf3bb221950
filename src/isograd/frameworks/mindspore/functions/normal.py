"""Normalisations, composed: mean and variance in two passes, statistics updated as in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isograd.runtime.norms import (
    batch_norm,
    channels,
    instance_norm,
    layer_norm,
    normalize,
    rms_norm,
    scaled,
    standardised,
)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    grouped = input.reshape(input.shape[0], num_groups, -1)
    found = standardised(grouped, (2,), eps).reshape(input.shape)
    return scaled(found, weight, bias, channels(input))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
    "instance_norm": instance_norm,
    "normalize": normalize,
}
