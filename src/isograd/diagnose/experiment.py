"""The experiments behind a diagnosis, next to the reference's tensors in its worker.

A subject (one call alone, or the loss) is run in float64 under each hypothesis; the port's tensors
are compared with each result.  Only numbers leave the worker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isograd.diagnose.common_rounding import without_common_rounding
from isograd.diagnose.estimate import Estimate, estimate
from isograd.diagnose.hypothesis import FunctionHypothesis
from isograd.diagnose.matched_filter import (
    Vector,
    deviation_of,
    project,
    subtract,
    weights_of,
)
from isograd.frameworks.base import FLOAT64, Arithmetic, Place, Tensors, Trial
from isograd.metrics import difference
from isograd.noise.envelope import ISOLATED_VARIANTS, Measured, errors_against, measured
from isograd.tensors import Array, TensorValue

#: More replicates, for what hides below the noise: with t-distributed projections of 14 runs ten
#: deviations are no accident in a thousand trials (4e-7 each).
QUIET_VARIANTS = (
    *ISOLATED_VARIANTS,
    *(Arithmetic(input_noise=True, operator_noise=True, seed=seed) for seed in range(31, 39)),
)
#: A second cause is looked for on top of this many first ones.
_MOST_FIRST = 4
#: Outcomes whose envelope is measured anew under the hypothesis.
_MOST_CONFIRMED = 8
#: How far above the threshold an outcome may be by the old envelope, to be measured anew.
_WORTH_CONFIRMING = 6.0
#: An outcome beyond that is measured anew too where alpha is this close to 1 and the gain great.
_SAME_DIRECTION = 1e-2
_GREAT_GAIN = 3.0
#: A first cause must gain this much to carry a second one (`Outcome.gain`).
_WORTH_COMBINING = 0.1

_RESULTS = ("output.", "input_of.")

#: Runs the subject: trials, arithmetic, with gradients or without.
Run = Callable[[Sequence[Trial], Arithmetic, bool], Tensors]


@dataclass(frozen=True)
class Outcome:
    """What one hypothesis, or two together, would explain.

    trials: with the values that fit best; ratio: worst error over envelope of the wanted tensors
    under it; ratios: of all tensors, where the envelope was measured anew (`confirmed`).
    alpha, deviation: the matched filter's projection of the first trial and its noise.
    low, high: interval of the estimated number, None without one; floor: the number cannot be
    distinguished from any smaller one.  gain: by how many
    factors of e the ratios fell, all tensors together.  change: how much the trials change the
    results, relative to them; measured below the noise only, infinite elsewhere.
    """

    trials: tuple[Trial, ...]
    ratio: float
    alpha: float = math.nan
    deviation: float = 0.0
    confirmed: bool = False
    ratios: dict[str, float] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    floor: bool = False
    gain: float = 0.0
    change: float = math.inf


@dataclass
class Experiment:
    """Tries hypotheses on one subject.

    port: the port's tensors under the reference's names; wanted: the names that must be
    explained; fixed: hypotheses that are granted already; variants: the replicate noise runs.
    limit_s: processor time, so that a busy machine is answered late and not otherwise.
    below_noise: look past the rounding that the port shares with the reference.
    """

    run: Run
    port: Tensors
    wanted: tuple[str, ...]
    hypotheses: dict[str, FunctionHypothesis]
    threshold: float
    limit_s: float = 20.0
    fixed: tuple[Trial, ...] = ()
    variants: tuple[Arithmetic, ...] = ISOLATED_VARIANTS
    below_noise: bool = False
    #: Place → the instruction of the reference's code that calls it.
    origins: Mapping[Place, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._backward = any(key.startswith("gradient.") for key in self.wanted)
        self._deadline = time.process_time() + self.limit_s
        self._start()

    def _start(self) -> None:
        base = self.run(self.fixed, FLOAT64, self._backward)
        runs = [self.run(self.fixed, variant, self._backward) for variant in self.variants]
        found: dict[str, Measured] = measured(errors_against(base, runs))
        self.base = {key: base[key].values for key in self.wanted if key in base}
        self.weights: dict[str, Vector] = weights_of(self.base)
        self.replicates = [
            subtract({k: v.values for k, v in one.items() if k in self.base}, self.base)
            for one in runs
        ]
        self.allowed = {key: found[key].allowed for key in self.base}
        self.unreliable = {key: found[key].unreliable for key in self.base}
        if self.below_noise:
            common = without_common_rounding(self.port, runs[0], self.base)
            if common is not None:
                self.port, self.replicates = common.port, common.replicates
        self.ratio_before = self.ratio(self.base)

    def ratio(self, tensors: dict[str, Array]) -> float:
        """The worst error of the port against these tensors, over the envelope.

        tensors: by name, any shapes and dtypes.
        """
        return max((self._ratio(key, tensors) for key in self.wanted), default=0.0)

    def cost(self, tensors: dict[str, Array]) -> float:
        """The sum of squared ratios: what an estimate makes small.

        tensors: by name, any shapes and dtypes.
        """
        return sum(min(self._ratio(key, tensors), 1e30) ** 2 for key in self.wanted)

    def _ratio(self, key: str, tensors: dict[str, Array]) -> float:
        expected, found = tensors.get(key), self.port.get(key)
        if expected is None or found is None or found.shape != expected.shape:
            return math.inf
        apart = difference(expected, found.values)
        allowed = self.allowed.get(key, 0.0)
        if not allowed > 0 or key not in self.base or self.base[key].shape != expected.shape:
            allowed = max(allowed, 1e-6 * apart.size + 1e-30)
        ratio = apart.error / allowed
        mismatches = max(0, apart.pattern_mismatches - self.unreliable.get(key, 0))
        return max(ratio, math.sqrt(mismatches / max(1, apart.total)) * 2.0**24)

    def try_quietly(self, trials: Sequence[Trial]) -> list[Outcome]:
        """Every trial by its projection and not by magnitudes; the clearest first.

        Alone, and a hypothesis at all its places together: code that is written once is wrong
        wherever it runs, and together the places show where each alone does not.
        """
        found = [*self._each(trials, ()), *self._everywhere(trials)]
        found = [o for o in found if math.isfinite(o.alpha)]
        return sorted(found, key=lambda o: (abs(o.alpha - 1.0) > 0.2, o.deviation))

    def _everywhere(self, trials: Sequence[Trial], first: tuple[Trial, ...] = ()) -> list[Outcome]:
        groups: dict[str, list[Trial]] = {}
        for trial in trials:
            number = self.hypotheses[trial.hypothesis].number
            key = trial.hypothesis if number else f"{trial.hypothesis} {trial.values}"
            if "*" in self.hypotheses[trial.hypothesis].functions:
                # What holds for every function is one fault only where it is one line.
                key += self.origins.get(trial.place) or trial.place.function
            groups.setdefault(key, []).append(trial)
        found = []
        for group in groups.values():
            places = {trial.place for trial in group}
            if 1 < len(group) == len(places) and time.process_time() <= self._deadline:
                outcome = self._at_all(tuple(group), first)
                found += [] if outcome is None else [outcome]
        return found

    def _at_all(self, group: tuple[Trial, ...], first: tuple[Trial, ...]) -> Outcome | None:
        number = self.hypotheses[group[0].hypothesis].number
        if number is None:
            tensors = self._tensors((*first, *group))
            return None if tensors is None else self._outcome((*first, *group), tensors)
        parameter = number.name

        def with_value(value: float) -> tuple[Trial, ...]:
            return (*first, *(_with(trial, parameter, value) for trial in group))

        found = estimate(number, lambda value: self._tensors(with_value(value)), self)
        if found is None:
            return None
        tensors = self._tensors(with_value(found.value))
        if tensors is None:
            return None
        outcome = self._outcome(with_value(found.value), tensors)
        return replace(outcome, low=found.low, high=found.high, floor=found.floor)

    def try_all(self, trials: Sequence[Trial], combine: bool) -> list[Outcome]:
        """Every trial alone; where none explains the port, one at all its places; then two.

        Best first.
        """
        singles = self._sorted(self._each(trials, ()))
        confirmed = self._confirm(singles)
        if any(o.ratio <= self.threshold for o in confirmed if o.confirmed) or not combine:
            return confirmed
        everywhere = self._confirm(self._sorted(self._everywhere(trials)))
        if any(o.ratio <= self.threshold for o in everywhere if o.confirmed):
            return self._sorted([*everywhere, *confirmed])
        pairs: list[Outcome] = []
        promising = sorted(singles, key=lambda o: -o.gain)[:_MOST_FIRST]
        for first in [o for o in promising if o.gain > _WORTH_COMBINING]:
            others = [t for t in trials if not _same(t, first.trials[0])]
            found = self._each(others, first.trials)
            pairs += [self._refined(pair) for pair in self._sorted(found)[:3]]
            beside = [t for t in others if t.place != first.trials[0].place]
            found = self._everywhere(beside, first.trials)
            pairs += [self._refined(several) for several in self._sorted(found)[:3]]
            if time.process_time() > self._deadline:
                break
        return self._sorted([*self._confirm(self._sorted(pairs)), *confirmed])

    def _log_ratio(self, key: str, tensors: dict[str, Array]) -> float:
        return math.log(min(max(self._ratio(key, tensors), 1.0), 1e12))

    @staticmethod
    def _sorted(outcomes: Iterable[Outcome]) -> list[Outcome]:
        return sorted(outcomes, key=lambda o: (not o.confirmed, len(o.trials), o.ratio))

    def _each(self, trials: Sequence[Trial], first: tuple[Trial, ...]) -> list[Outcome]:
        found = []
        for trial in trials:
            if time.process_time() > self._deadline:
                break
            outcome = self._one(trial, first)
            if outcome is not None:
                found.append(outcome)
        return found

    def _one(self, trial: Trial, first: tuple[Trial, ...]) -> Outcome | None:
        number = self.hypotheses[trial.hypothesis].number
        if number is None:
            tensors = self._tensors((*first, trial))
            return None if tensors is None else self._outcome((*first, trial), tensors)

        def at(value: float) -> dict[str, Array] | None:
            return self._tensors((*first, _with(trial, number.name, value)))

        found: Estimate | None = estimate(number, at, self)
        if found is None:
            return None
        best = _with(trial, number.name, found.value)
        tensors = self._tensors((*first, best))
        if tensors is None:
            return None
        outcome = self._outcome((*first, best), tensors)
        return replace(outcome, low=found.low, high=found.high, floor=found.floor)

    def _refined(self, found: Outcome) -> Outcome:
        """The numbers of several trials, each given the others in turn, until none moves."""
        groups = self._numbers(found.trials)
        if len(found.trials) < 2 or not groups or found.ratio <= self.threshold:
            return found
        best = found
        for _ in range(4):
            before = best.ratio
            for group in groups:
                if time.process_time() > self._deadline:
                    return best
                mine = tuple(t for t in best.trials if any(_same(t, one) for one in group))
                others = tuple(t for t in best.trials if t not in mine)
                again = self._one(mine[0], others) if len(mine) == 1 else self._at_all(mine, others)
                if again is not None and again.ratio < best.ratio:
                    best = again
            if best.ratio <= self.threshold or best.ratio > 0.98 * before:
                break
        return best

    def _numbers(self, trials: Sequence[Trial]) -> list[tuple[Trial, ...]]:
        """The trials with a number, those with one number at several places together."""
        groups: dict[str, tuple[Trial, ...]] = {}
        for trial in trials:
            if self.hypotheses[trial.hypothesis].number is not None:
                key = f"{trial.hypothesis} {trial.values}"
                groups[key] = (*groups.get(key, ()), trial)
        return list(groups.values())

    def _tensors(self, trials: Sequence[Trial]) -> dict[str, Array] | None:
        """The subject in float64 under trials; None where it cannot be computed so."""
        try:
            found = self.run((*self.fixed, *trials), FLOAT64, self._backward)
        except Exception:  # a hypothesis that does not fit the shapes is no hypothesis
            return None
        return {key: found[key].values for key in self.wanted if key in found}

    def _outcome(self, trials: tuple[Trial, ...], tensors: dict[str, Array]) -> Outcome:
        alpha, deviation = self.projection(tensors)
        before = sum(self._log_ratio(key, self.base) for key in self.wanted)
        after = sum(self._log_ratio(key, tensors) for key in self.wanted)
        ratio = self.ratio(tensors)
        change = self._change(tensors) if self.below_noise else math.inf
        return Outcome(trials, ratio, alpha, deviation, gain=before - after, change=change)

    def _change(self, tensors: dict[str, Array]) -> float:
        """The greatest relative change of a result; what alters shapes changes everything."""
        found = 0.0
        for key, changed in tensors.items():
            own = self.base.get(key)
            if own is None or own.shape != changed.shape:
                return math.inf
            apart = difference(own, changed)
            found = max(found, apart.error / apart.size if apart.size > 0 else math.inf)
        return found

    def projection(self, tensors: dict[str, Array]) -> tuple[float, float]:
        """alpha of the change to these tensors, and how far rounding alone moves it.

        Written as 1 + <port - changed, D> / <D, D>, which is the same and also holds where the
        change alters shapes (D is then the changed result itself).

        tensors: by name, any shapes and dtypes.
        """
        direction: dict[str, Array] = {}
        for key, changed in tensors.items():
            own = self.base.get(key)
            same = own is not None and own.shape == changed.shape
            direction[key] = _apart(changed, own) if same and own is not None else changed
        weights = self.weights
        if any(key not in weights or weights[key].shape != t.shape for key, t in tensors.items()):
            weights = weights_of(tensors)
        rest = subtract({k: v.values for k, v in self.port.items()}, tensors)
        alpha = 1.0 + project(rest, direction, weights)
        return alpha, deviation_of(self.replicates, direction, weights)

    def _confirm(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Measure the envelope anew under the best outcomes, with all tensors."""
        result, count = [], 0
        for outcome in outcomes:
            near = outcome.ratio <= _WORTH_CONFIRMING * self.threshold or _is_direction(outcome)
            if near and count < _MOST_CONFIRMED:
                count += 1
                outcome = self.confirmed(outcome)
            result.append(outcome)
        return self._sorted(result)

    def confirmed(self, outcome: Outcome) -> Outcome:
        """The outcome with the ratios of all tensors under an envelope of its own."""
        trials = (*self.fixed, *outcome.trials)
        for backward in (True, False):
            try:
                base = self.run(trials, FLOAT64, backward)
                runs = (self.run(trials, variant, backward) for variant in ISOLATED_VARIANTS)
                found = measured(errors_against(base, runs))
            except Exception:  # noqa: S112 - gradients do not exist where shapes are changed
                continue
            break
        else:
            return outcome
        ratios = {key: _ratio_of(self.port.get(key), expected) for key, expected in found.items()}
        # a cause of wrong gradients alone leaves the results as they are
        forward = [k for k in ratios if k.startswith(_RESULTS) and k in self.port]
        judged = (*self.wanted, *(forward if self._backward else ()))
        worst = max((ratios.get(key, math.inf) for key in judged), default=0.0)
        return replace(outcome, ratio=worst, ratios=ratios, confirmed=True)


def _ratio_of(port: TensorValue | None, expected: Measured) -> float:
    if port is None or port.shape != expected.values.shape:
        return math.inf
    apart = difference(expected.values, port.values)
    mismatches = max(0, apart.pattern_mismatches - expected.unreliable)
    ratio = apart.error / expected.allowed if expected.allowed > 0 else math.inf
    if apart.error == 0.0:
        ratio = 0.0
    return max(ratio, math.sqrt(mismatches / max(1, apart.total)) * 2.0**24)


def _is_direction(outcome: Outcome) -> bool:
    """Whether the port's error is what a hypothesis changes, though more is left than noise was.

    A change may make the function worse conditioned: then the envelope is wider under it.
    """
    return abs(outcome.alpha - 1.0) <= _SAME_DIRECTION and outcome.gain >= _GREAT_GAIN


def _with(trial: Trial, parameter: str, value: Any) -> Trial:
    return replace(trial, values={**trial.values, parameter: value})


def _same(first: Trial, second: Trial) -> bool:
    return first.place == second.place and first.hypothesis == second.hypothesis


def _apart(first: Array, second: Array) -> Array:
    """The difference of two arrays; masks and positions count as numbers."""
    if np.iscomplexobj(first) or np.iscomplexobj(second):
        return np.subtract(first, second)
    with np.errstate(invalid="ignore"):
        return np.subtract(first, second, dtype=np.float64)
