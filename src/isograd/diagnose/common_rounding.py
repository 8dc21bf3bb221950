"""Takes the rounding that port and reference have in common out of the port's error.

Coarse arithmetic rounds most results of port and reference to the same numbers, where both round
at the same places.  There the port is better compared with the reference's own run than with
float64: a change d moves a result to the next number, one unit u away, with probability |d|/u and
in its own direction, so that port minus reference is d in the mean with a variance of u·|d| per
element, where the distance to float64 has u²/12 at each rounding (Widrow and Kollár, Quantization
Noise, 2008, on dither).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isograd.frameworks.base import Tensors
from isograd.metrics import Float64, as_float64
from isograd.tensors import Array, TensorValue

#: From this share of results that are equal to the bit on, the places of rounding are the same:
#: rounding once more, by e of half a unit at most, leaves 1 - mean|e| = 0.75 of them.
_MOSTLY_EQUAL = 0.8
_REPLICATES = 16


@dataclass(frozen=True)
class CommonRounding:
    """The port without the rounding that it shares with the reference.

    port: float64, the exact results and what the port differs by from the reference's own run;
    replicates: errors of the same size without a direction (float64), for the filter's deviation.
    """

    port: dict[str, TensorValue]
    replicates: list[dict[str, Array]]


def without_common_rounding(
    port: Tensors, native: Tensors, base: Mapping[str, Array]
) -> CommonRounding | None:
    """The port beside the reference's own run, or None where too few results are equal to the bit.

    A replicate has the signs of whole rows (the last axis) exchanged at random, so that errors
    which a row has in common, as behind a normalisation, stay together (the wild bootstrap by
    clusters: Cameron, Gelbach and Miller 2008).
    port, native: by name, any shapes and dtypes.
    base: the same shapes, float64: the exact results.
    """
    equal = total = 0
    apart: dict[str, Float64] = {}
    for key, exact in base.items():
        ours, theirs = native.get(key), port.get(key)
        if ours is None or theirs is None or not ours.is_floating or not theirs.is_floating:
            continue
        if not ours.shape == theirs.shape == exact.shape:
            return None
        difference = _difference(ours.values, theirs.values)
        equal += int(np.count_nonzero(difference == 0.0))
        total += difference.size
        apart[key] = difference
    if total == 0 or equal < _MOSTLY_EQUAL * total:
        return None
    shifted = {
        key: TensorValue(as_float64(base[key]) + difference, "float64")
        for key, difference in apart.items()
    }
    return CommonRounding({**port, **shifted}, _without_direction(apart))


def _difference(first: Array, second: Array) -> Float64:
    """second - first in float64, 0 where both hold the same, NaN and Inf among it."""
    wide, other = as_float64(first), as_float64(second)
    with np.errstate(invalid="ignore"):
        same = (wide == other) | (np.isnan(wide) & np.isnan(other))
        return np.where(same, 0.0, other - wide)


def _without_direction(errors: Mapping[str, Float64]) -> list[dict[str, Array]]:
    generator = np.random.default_rng(0)
    replicates = []
    for _ in range(_REPLICATES):
        replicate: dict[str, Array] = {}
        for key, error in errors.items():
            rows = (*error.shape[:-1], 1) if error.ndim > 1 else error.shape
            signs = generator.integers(0, 2, size=rows) * 2.0 - 1.0
            replicate[key] = error * signs
        replicates.append(replicate)
    return replicates
