"""Estimates a hypothesis's numbers from the port's error, and says how well they are known.

Gauss-Newton on the scale on which a number is naturally changed (learning rates by factors,
averages by the odds of their share).  The interval comes from the noise tracks: each track's
deviation is projected on the derivative as if it were the port's error.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from isograd.diagnose.hypothesis import Number, Scale
from isograd.diagnose.update.problem import Part, RuleOf, Updates, cost_of
from isograd.frameworks.rules import Rule
from isograd.metrics import Float64

_ROUNDS = 15
_STEP = 1e-6
#: How many spreads of the noise tracks (three of them) the interval reaches to either side.
_SPREADS = 3.0
#: A round value is taken where its worst ratio is as good as this, or as the estimate's.
_GOOD_RATIO = 1.5
_MAY_BE_ZERO = ("weight_decay", "momentum", "dampening", "lr_decay", "first_square", "beta1")


@dataclass(frozen=True)
class Fit:
    """The best numbers of a hypothesis; worst: greatest ratio under them."""

    values: tuple[float, ...]
    cost: float
    worst: float


def _values(numbers: tuple[Number, ...], place: Float64) -> tuple[float, ...]:
    return tuple(u.from_scale(float(p)) for u, p in zip(numbers, place, strict=True))


def fit(
    part: Part,
    rule_of: RuleOf,
    numbers: tuple[Number, ...],
    start: tuple[float, ...] | None = None,
) -> Fit:
    """The numbers with the least error; without a start the best of the grid is one."""
    if not numbers:
        residual = part.residual(rule_of(()))
        return Fit((), cost_of(residual), part.worst(residual))
    if start is None:
        points = list(itertools.product(*(u.grid for u in numbers)))
        costs = [cost_of(part.residual(rule_of(p))) for p in points]
        start = points[int(np.argmin(costs))]
    place = np.array([u.to_scale(v) for u, v in zip(numbers, start, strict=True)])
    place = _descend(part, rule_of, numbers, place)
    values = _values(numbers, place)
    residual = part.residual(rule_of(values))
    return Fit(values, cost_of(residual), part.worst(residual))


def _descend(part: Part, rule_of: RuleOf, numbers: tuple[Number, ...], place: Float64) -> Float64:
    residual = part.residual(rule_of(_values(numbers, place)))
    cost, damping = cost_of(residual), 1e-6
    for _ in range(_ROUNDS):
        if not math.isfinite(cost):
            return place
        slopes = derivative(part, rule_of, numbers, place)
        square = slopes.T @ slopes
        if not np.isfinite(square).all() or not np.diag(square).all():
            return place
        down = slopes.T @ residual.reshape(-1)
        for _ in range(6):
            try:
                move = np.linalg.solve(square + damping * np.diag(np.diag(square)), down)
            except np.linalg.LinAlgError:
                return place
            move = np.clip(move, -2.0, 2.0)
            there = part.residual(rule_of(_values(numbers, place + move)))
            if cost_of(there) < cost:
                break
            damping = max(damping * 30.0, 1e-4)
        else:
            return place
        gained = 1.0 - cost_of(there) / cost
        place, residual, cost = place + move, there, cost_of(there)
        damping /= 10.0
        if gained < 1e-4 or np.abs(move).max() < 1e-10:
            return place
    return place


def derivative(part: Part, rule_of: RuleOf, numbers: tuple[Number, ...], place: Float64) -> Float64:
    """The derivative of the trajectory in units of the envelope, by finite differences.

    place: (numbers,) float64, on the scales of the numbers.
    returns: (steps * elements, numbers) float64.
    """
    here = part.simulate(rule_of(_values(numbers, place)))
    columns = []
    for i, number in enumerate(numbers):
        moved = place.copy()
        step = _STEP if number.scale is not Scale.LINEAR else _STEP * max(abs(place[i]), 1e-6)
        moved[i] += step
        there = part.simulate(rule_of(_values(numbers, moved)))
        columns.append(part.weighted(there - here).reshape(-1) / step)
    return np.stack(columns, axis=1)


def deviations(part: Part, updates: Updates, rule: Rule) -> list[Float64]:
    """What the noise tracks make of a rule, against float64, in units of the envelope.

    returns: (steps, elements) float64, one per noise track.
    """
    found = updates.measure(dict.fromkeys(part.names, rule), keep=True)
    runs, i = [], 0
    while f"deviation.{i}.{part.names[0]}" in found:
        gaps = [
            found[f"deviation.{i}.{n}"].values[:, p]
            for n, p in zip(part.names, part.picks, strict=True)
        ]
        runs.append(part.weighted(np.concatenate(gaps, axis=1).astype(np.float64)))
        i += 1
    return runs


def intervals(
    part: Part,
    rule_of: RuleOf,
    numbers: tuple[Number, ...],
    values: tuple[float, ...],
    noise: list[Float64],
) -> list[tuple[float, float]]:
    """Between which values each number lies, as far as rounding lets it be known.

    noise: (steps, elements) float64, as `deviations` returns it.
    """
    if not numbers:
        return []
    place = np.array([u.to_scale(v) for u, v in zip(numbers, values, strict=True)])
    slopes = derivative(part, rule_of, numbers, place)
    usable = np.isfinite(slopes).all() and slopes.any(axis=0).all()
    found = []
    inverse = np.linalg.pinv(slopes) if usable else None
    for i, number in enumerate(numbers):
        half = 40.0
        if inverse is not None:
            half = _SPREADS * max(abs(float(inverse[i] @ run.reshape(-1))) for run in noise)
        low, high = (number.from_scale(place[i] + s * half) for s in (-1, 1))
        # A framework stores the number itself in float32.
        own = 1.2e-7 * (1.0 if number.scale is Scale.LOGIT else abs(values[i]))
        found.append((min(low, values[i] - own), max(high, values[i] + own)))
    return found


def rounded(
    part: Part,
    rule_of: RuleOf,
    numbers: tuple[Number, ...],
    found: Fit,
    shown: tuple[float, ...],
    known: list[tuple[float, float]],
) -> tuple[float, ...]:
    """The numbers as a person would write them, where such explain the port as well.

    shown: what one unit of each number means in the message (the reference's learning rate
    for a factor on it), so that round means round to the reader.  After one number is rounded
    those behind it are estimated again.
    """
    limit = max(_GOOD_RATIO, 1.2 * found.worst)
    values = found.values
    for i, number in enumerate(numbers):
        for candidate in _round_values(number, values[i] * shown[i]):
            value = candidate / shown[i]
            near = known[i][0] <= value <= known[i][1] or bool(number.usual)
            if not near:
                continue
            held = (*values[:i], value)

            def rest_of(rest: tuple[float, ...], held: tuple[float, ...] = held) -> Rule:
                return rule_of((*held, *rest))

            rest = fit(part, rest_of, numbers[i + 1 :], values[i + 1 :])
            if rest.worst <= limit:
                values = (*held, *rest.values)
                break
    return values


def _round_values(number: Number, value: float) -> list[float]:
    """From the most usual to the most exact."""
    size = abs(value)
    nearest = sorted(number.usual, key=lambda u: abs(math.log(u / size)) if size > 0 else u)
    found = [0.0] if number.name in _MAY_BE_ZERO else []
    found += [u for u in nearest if size > 0 and 1e-4 < u / size < 1e4]
    for digits in range(1, 7):
        written = float(f"{value:.{digits - 1}e}")
        if number.scale is not Scale.LOGIT or 0.0 < written < 1.0:
            found.append(written)
    return found


def explained_share(
    part: Part, rule: Rule, noise: list[Float64]
) -> tuple[float, tuple[float, float]]:
    """How much of the change that a rule makes is in the port's error, and its interval.

    noise: (steps, elements) float64, as `deviations` returns it.
    """
    with np.errstate(all="ignore"):
        change = part.weighted(part.simulate(rule) - part.simulate(part.rule)).reshape(-1)
        size = float(change @ change)
        if not size > 0 or not math.isfinite(size):
            return 1.0, (1.0, 1.0)
        error = part.residual(part.rule).reshape(-1)
        share = float(error @ change) / size
        half = _SPREADS * max(abs(float(run.reshape(-1) @ change)) / size for run in noise)
    return share, (share - half, share + half)
