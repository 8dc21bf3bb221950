"""The matched filter: how much of a hypothesis' change is in the port's error?

For a hypothesis h let D = f64(operation under h) - f64(operation) and e = port - f64(operation).
alpha = <e, D> / <D, D>, weighted by 1/|y|², is 1 where the port computes what h says, 0 where it
does not, whatever else is in e; it works where |e| itself is below the noise.  The same projection
of replicate noise runs tells how far alpha moves by rounding alone.  Measured beforehand
(shared/facts/verdicts.md): 152 of 152 causes of a CNN; GELU by tanh in bfloat16 at z > 800.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isograd.metrics import as_float64, patterns
from isograd.tensors import Array

Vector = NDArray[np.float64]

#: An element counts at least as this share of the typical one, else zeros would decide.
_SMALLEST_WEIGHED = 0.05
#: Half width of an interval in deviations of the replicates.
INTERVAL_DEVIATIONS = 3.0


@dataclass(frozen=True)
class Projection:
    """alpha with the deviation that rounding alone gives it."""

    alpha: float
    deviation: float

    @property
    def interval(self) -> tuple[float, float]:
        """alpha ± three deviations."""
        reach = INTERVAL_DEVIATIONS * self.deviation
        return (self.alpha - reach, self.alpha + reach)

    @property
    def significance(self) -> float:
        """alpha in deviations."""
        return abs(self.alpha) / self.deviation if self.deviation > 0 else math.inf


def weights_of(reference: Mapping[str, Array]) -> dict[str, Vector]:
    """1/|y|² of each element of each tensor, with small elements held up; 0 where not finite.

    reference: any shapes and dtypes.
    returns: the same shapes, float64.
    """
    result = {}
    for key, values in reference.items():
        wide = as_float64(values)
        usable = patterns(wide) == 0
        squares = np.where(usable, np.square(np.where(usable, wide, 0.0)), 0.0)
        typical = float(squares.sum()) / max(1, int(usable.sum()))
        floor = _SMALLEST_WEIGHED**2 * typical + 1e-60
        result[key] = np.where(usable, 1.0 / np.maximum(squares, floor), 0.0)
    return result


def project(
    error: Mapping[str, Array], direction: Mapping[str, Array], weights: Mapping[str, Vector]
) -> float:
    """<error, direction> / <direction, direction> over all tensors that both have.

    error, direction: any shapes and dtypes; a tensor of two shapes is left out.
    weights: the shapes of direction, float64.
    """
    above = below = 0.0
    for key, change in direction.items():
        weight = weights.get(key)
        other = error.get(key)
        if weight is None or other is None or other.shape != change.shape:
            continue
        if weight.shape != change.shape:
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            toward, found = as_float64(change), as_float64(other)
            usable = np.isfinite(toward) & np.isfinite(found) & (np.abs(toward) < 1e30)
            usable &= np.abs(found) < 1e30
            toward, found = np.where(usable, toward, 0.0), np.where(usable, found, 0.0)
            above += float(np.sum(weight * toward * found))
            below += float(np.sum(weight * toward * toward))
    return above / below if below > 0 else math.nan


def subtract(first: Mapping[str, Array], second: Mapping[str, Array]) -> dict[str, Array]:
    """Differences of the tensors that both have in one shape.

    first, second: any shapes and dtypes.
    returns: the shapes of first, float64.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        return {
            key: as_float64(values) - as_float64(second[key])
            for key, values in first.items()
            if key in second and second[key].shape == values.shape
        }


def deviation_of(
    replicates: Sequence[Mapping[str, Array]],
    direction: Mapping[str, Array],
    weights: Mapping[str, Vector],
) -> float:
    """How far rounding alone moves alpha: root mean square over replicate noise runs.

    replicates, direction: any shapes and dtypes; a tensor of two shapes is left out.
    weights: the shapes of direction, float64.
    """
    found = [project(replicate, direction, weights) for replicate in replicates]
    usable = [value for value in found if math.isfinite(value)]
    return math.sqrt(sum(value * value for value in usable) / len(usable)) if usable else 0.0
