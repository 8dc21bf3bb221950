"""Estimates a number of a hypothesis (an eps, a slope, a scale) from the port's tensors.

From the best of a grid, Gauss-Newton steps along the projection of the port's error on the
derivative; the interval is that projection's spread over replicate noise runs.  A round number
within the interval is preferred, because people write round numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from isograd.diagnose.hypothesis import Number, Scale
from isograd.diagnose.matched_filter import (
    INTERVAL_DEVIATIONS,
    Vector,
    deviation_of,
    project,
    subtract,
)
from isograd.frameworks.base import Tensors
from isograd.metrics import as_float64
from isograd.tensors import Array

_MOST_STEPS = 12
#: Difference on the search's scale for derivatives; float64 runs leave room for a small one.
_STEP = 1e-3
_LARGEST_MOVE = 1.5
#: A rounded number may make the worst ratio this many times as large, if beyond the noise.
_ALIKE = 1.5
_NOISE = 0.4
#: Half an interval wider than this on a logarithmic scale (a factor of two) says little.
_WIDE = 0.7
#: Two numbers closer than this (relative) are one.
_SMALLEST_INTERVAL = 2e-6


class Judge(Protocol):
    """What an estimate needs of an experiment."""

    port: Tensors
    weights: dict[str, Vector]
    replicates: list[dict[str, Array]]
    threshold: float

    def cost(self, tensors: dict[str, Array]) -> float:
        """The sum of squared ratios.

        tensors: by name, the shapes of the reference's tensors, any dtypes.
        """
        ...

    def ratio(self, tensors: dict[str, Array]) -> float:
        """The worst ratio.

        tensors: by name, the shapes of the reference's tensors, any dtypes.
        """
        ...


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; floor: no smaller number can be distinguished from it."""

    value: float
    low: float
    high: float
    floor: bool = False


def estimate(
    number: Number, at: Callable[[float], dict[str, Array] | None], judge: Judge
) -> Estimate | None:
    """The number under which the port is explained best; None where none can be computed."""
    start = _best_of_grid(number, at, judge)
    if start is None:
        return None
    place, cost = start
    derivative: dict[str, Array] = {}
    for _ in range(_MOST_STEPS):
        here = at(number.from_scale(place))
        beside = at(number.from_scale(place + _STEP))
        if here is None or beside is None:
            return None
        derivative = {k: as_float64(v) / _STEP for k, v in subtract(beside, here).items()}
        rest = subtract({k: v.values for k, v in judge.port.items()}, here)
        move = project(rest, derivative, judge.weights)
        if not math.isfinite(move):
            break
        move = max(-_LARGEST_MOVE, min(_LARGEST_MOVE, move))
        moved = _line_search(number, at, judge, place, move, cost)
        if moved is None:
            break
        step, cost = moved
        place += step
        if abs(step) < 1e-7:
            break
    spread = deviation_of(judge.replicates, derivative, judge.weights)
    reach = max(INTERVAL_DEVIATIONS * spread, _smallest(number, place))
    low, high = number.from_scale(place - reach), number.from_scale(place + reach)
    if number.scale is Scale.LOG and not reach <= _WIDE:
        vague = _near_zero(number, at, judge)
        if vague is not None:
            return vague
    exact = number.from_scale(place)
    value = _preferred(number, exact, low, high)
    if value != exact and _is_worse(value, exact, at, judge):
        value = exact
    return Estimate(value, low, high)


def _is_worse(
    value: float, exact: float, at: Callable[[float], dict[str, Array] | None], judge: Judge
) -> bool:
    """Whether a rounded number leaves more of the port unexplained than rounding errors do."""
    tensors, best = at(value), at(exact)
    if tensors is None or best is None:
        return tensors is None
    return judge.ratio(tensors) > max(_ALIKE * judge.ratio(best), _NOISE * judge.threshold)


def _best_of_grid(
    number: Number, at: Callable[[float], dict[str, Array] | None], judge: Judge
) -> tuple[float, float] | None:
    found = []
    for value in number.grid:
        tensors = at(value)
        if tensors is not None:
            found.append((judge.cost(tensors), number.to_scale(value)))
    if not found:
        return None
    cost, place = min(found)
    return place, cost


def _line_search(
    number: Number,
    at: Callable[[float], dict[str, Array] | None],
    judge: Judge,
    place: float,
    move: float,
    cost: float,
) -> tuple[float, float] | None:
    """The first of move, move/2, … that makes the cost smaller."""
    for _ in range(6):
        tensors = at(number.from_scale(place + move))
        if tensors is not None:
            found = judge.cost(tensors)
            if found < cost:
                return move, found
        move /= 4
    return None


def _smallest(number: Number, place: float) -> float:
    return _SMALLEST_INTERVAL * (1.0 if number.scale is Scale.LOG else max(abs(place), 1e-3))


def _preferred(number: Number, value: float, low: float, high: float) -> float:
    """A number of the grid, else the roundest one, within the interval."""
    for known in number.grid:
        if low <= known <= high:
            return known
    return rounded(value, low, high)


def rounded(value: float, low: float, high: float) -> float:
    """The number with the fewest digits within an interval; the value itself to 7 digits else."""
    for digits in range(1, 7):
        short = float(f"{value:.{digits - 1}e}")
        if low <= short <= high:
            return short
    return float(f"{value:.6e}")


def _near_zero(
    number: Number, at: Callable[[float], dict[str, Array] | None], judge: Judge
) -> Estimate | None:
    """The number on a linear scale, where it is so small that its logarithm is unknown.

    An eps far below the variance enters linearly; what its interval holds besides it are numbers
    that nobody can tell apart on these data.
    """
    unit = number.grid[0]
    none, beside = at(1e-6 * min(number.grid)), at(unit)
    if none is None or beside is None:
        return None
    derivative = {k: as_float64(v) / unit for k, v in subtract(beside, none).items()}
    rest = subtract({k: v.values for k, v in judge.port.items()}, none)
    value = project(rest, derivative, judge.weights)
    reach = INTERVAL_DEVIATIONS * deviation_of(judge.replicates, derivative, judge.weights)
    if not (math.isfinite(value) and math.isfinite(reach)) or value + reach <= 0:
        return None
    low, high = max(0.0, value - reach), value + reach
    return Estimate(_preferred(number, max(value, high / 10), low, high), low, high, low == 0.0)
