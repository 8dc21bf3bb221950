"""Gradients that vanish, explode, or do not arrive."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from isograd.watch.alerts.rule import Check, Hit, Limit, Limits, Rule, Severity, Streak, number
from isograd.watch.alerts.training import example, look
from isograd.watch.observation import Floats, Network, StepRecord


def _matrices(network: Network) -> list[int]:
    """Parameters that tell of the layers: those with two axes or more that train.

    Vectors are left out: the gradient of a bias before a normalisation is rounding alone.
    """
    return [int(at) for at in np.flatnonzero((network.axes >= 2) & network.trains)]


def _usable(record: StepRecord) -> Floats | None:
    if record.is_skipped or record.gradient_norms is None:
        return None
    if record.gradient_nonfinite is not None and record.gradient_nonfinite.any():
        return None
    return record.gradient_norms


def _vanishing(limits: Limits, network: Network) -> Check:
    chosen, streak = _matrices(network), Streak(limits["steps"])
    ratio, small = number(limits, "ratio"), number(limits, "first_norm")

    def check(record: StepRecord) -> Iterator[Hit]:
        norms = _usable(record)
        if norms is None or len(chosen) < 2:
            return
        values = [(at, float(norms[at])) for at in chosen if norms[at] > 0.0]
        if len(values) < 2:
            return
        (at, first), (_, last) = values[0], values[-1]
        greatest = max(value for _, value in values)
        if streak.holds("", first < ratio * greatest and first < small and last > first):
            yield Hit(
                first,
                small,
                module=network.module(at),
                tensor=network.parameters[at],
                facts={"ratio": first / greatest, "greatest": greatest},
            )

    return check


def _exploding(limits: Limits, network: Network) -> Check:
    streak, factor = Streak(limits["steps"]), number(limits, "factor")
    largest = number(limits, "largest")
    history: list[float] = []

    def check(record: StepRecord) -> Iterator[Hit]:
        norms = _usable(record)
        total = record.total_norm() if norms is not None else math.nan
        if norms is None or not math.isfinite(total):
            return
        usual = float(np.median(history)) if len(history) >= 10 else math.inf
        limit = min(largest, max(factor * usual, 1.0))
        if streak.holds("", total > limit):
            at = int(np.nanargmax(norms))
            name = network.parameters[at]
            yield Hit(total, limit, network.module(at), name, {"share": float(norms[at]) / total})
        else:
            history.append(total)
            del history[:-200]

    return check


def _zero(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["steps"])
    called = np.zeros(len(network.parameters), dtype=bool)

    def check(record: StepRecord) -> Iterator[Hit]:
        if record.look is not None and record.look.called is not None:
            called[:] |= record.look.called
        norms = _usable(record)
        if norms is None:
            return
        absent = record.gradient_absent
        gone = (norms == 0.0) if absent is None else (norms == 0.0) | absent
        is_alive = bool((norms[~gone] > 0.0).any())
        for at in _matrices(network):
            name = network.parameters[at]
            if streak.holds(name, bool(gone[at]) and (is_alive or gone.all())) and called[at]:
                how = "None" if absent is not None and absent[at] else "exactly zero"
                yield Hit(0.0, 0.0, network.module(at), name, {"how": how})

    return check


def _unused(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["steps"])

    def check(record: StepRecord) -> Iterator[Hit]:
        look_ = record.look
        if look_ is None or look_.called is None or record.gradient_absent is None:
            return
        norms = record.gradient_norms
        none = record.gradient_absent | (norms == 0.0 if norms is not None else False)
        for at in np.flatnonzero(network.trains).tolist():
            name = network.parameters[at]
            if streak.holds(name, bool(none[at]) and not look_.called[at]):
                yield Hit(0.0, module=network.module(at), tensor=name)
                return

    return check


def _spike(limits: Limits, network: Network) -> Check:
    factor, history = number(limits, "factor"), []  # type: ignore[var-annotated]  # of floats

    def check(record: StepRecord) -> Iterator[Hit]:
        total = record.total_norm()
        if not math.isfinite(total) or record.is_skipped:
            return
        usual = float(np.mean(history)) if len(history) >= 20 else math.inf
        if total > factor * usual:
            yield Hit(total, factor * usual, facts={"usual": usual})
        history.append(total)
        del history[:-100]

    return check


def _accumulated(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["steps"])

    def check(record: StepRecord) -> Iterator[Hit]:
        if streak.holds("", record.is_accumulated):
            yield Hit(1.0)

    return check


def _repeated(limits: Limits, network: Network) -> Check:
    seen = [0]

    def check(record: StepRecord) -> Iterator[Hit]:
        seen[0] += record.is_repeated
        if record.is_repeated and seen[0] >= number(limits, "steps"):
            yield Hit(float(seen[0]))

    return check


_VANISHED = np.array([1e-7, 1e-8, 1e-4, 1e-5, 0.5])
_NO_FIRST = np.array([True, False, False, False, False])
_ABSENT = np.array([np.nan, 0.05, 0.4, 0.05, 0.6])

RULES = (
    Rule(
        code="gradient.vanishing",
        severity=Severity.ALERT,
        message="the gradient of the first layer, {tensor}, has norm {value:.2e}, {ratio:.1e} of "
        "the greatest",
        advice="Sigmoids and tanhs in a deep stack do this: take ReLU or GELU, normalise, add "
        "residual connections, or initialise larger.",
        make=_vanishing,
        source="AUTOTRAINER (ICSE 2021): beta_1 = 1e-3 (ratio), beta_2 = 1e-4 (norm of the first)",
        peers=("AUTOTRAINER vanishing gradient", "MindInsight GV"),
        limits=(
            Limit("ratio", 1e-3, "first layer's norm over the greatest"),
            Limit("first_norm", 1e-4, "norm of the first layer's gradient"),
            Limit("steps", 3, "steps in a row"),
        ),
        examples=(example("the first layer's gradient is 1e-7", 5, gradient_norms=_VANISHED),),
        counterexamples=(
            example("gradients are alike", 60),
            example(
                "all gradients are small, at a minimum",
                9,
                gradient_norms=_VANISHED[:1] * np.ones(5),
            ),
            example(
                "a bias before a normalisation has no gradient but rounding",
                9,
                gradient_norms=np.array([0.5, 1e-9, 0.4, 1e-9, 0.6]),
            ),
            example(
                "the first step of layers that start at zero",
                5,
                gradient_norms=lambda s: _VANISHED if s == 0 else np.full(5, 0.5),
            ),
        ),
    ),
    Rule(
        code="gradient.exploding",
        severity=Severity.ALERT,
        message="the gradients' norm is {value:.3g}, more than {limit:.3g}; {tensor} has "
        "{share:.0%} of it",
        advice="Clip the gradients' norm (1.0 is usual), lower the learning rate, and look at "
        "recurrent weights and at layers without normalisation.",
        make=_exploding,
        source="the run's own median; 1e6 is AUTOTRAINER's 1e3 of an abnormal loss, squared",
        peers=("AUTOTRAINER exploding gradient", "MindInsight GL"),
        limits=(
            Limit("factor", 1000.0, "times the median of the steps before"),
            Limit("largest", 1e6, "norm of all gradients, from the first step on"),
            Limit("steps", 2, "steps in a row"),
        ),
        examples=(
            example("the norm is 1e8", 5, gradient_norms=np.full(5, 1e8)),
            example(
                "the norm grows from 1 to 1e5",
                30,
                gradient_norms=lambda s: np.full(5, 0.4 if s < 20 else 1e5),
            ),
        ),
        counterexamples=(
            example("norms are usual", 60),
            example(
                "one step's norm is large",
                60,
                gradient_norms=lambda s: np.full(5, 1.0 + 40 * (s == 30)),
            ),
            example("a summed loss has norms of 5e3", 60, gradient_norms=np.full(5, 5e3)),
        ),
    ),
    Rule(
        code="gradient.zero",
        severity=Severity.ALERT,
        message="the gradient of {tensor} is {how}, although its module is called",
        advice="Something stops the gradient behind this module: detach, no_grad, stop_gradient, "
        "an argmax, or activations that are dead. If the layer is meant to stay, take it out of "
        "the optimizer.",
        make=_zero,
        source="a matrix whose module takes part has a gradient of exactly zero only where the "
        "graph is cut or all its outputs are dead",
        peers=("MindInsight TZ",),
        limits=(Limit("steps", 5, "steps in a row"),),
        examples=(
            example(
                "the first layer gets no gradient",
                6,
                gradient_norms=_ABSENT,
                gradient_absent=_NO_FIRST,
            ),
            example("the first layer's is zero", 6, gradient_norms=np.array([0, 0, 1, 1, 1.0])),
        ),
        counterexamples=(
            example("all gradients arrive", 60),
            example(
                "one step has no gradient", 9, gradient_norms=lambda s: np.full(5, float(s != 4))
            ),
            example(
                "the layer is not used",
                9,
                gradient_norms=_ABSENT,
                gradient_absent=_NO_FIRST,
                look=look(called=~_NO_FIRST),
            ),
        ),
    ),
    Rule(
        code="parameter.unused",
        severity=Severity.NOTICE,
        message="{tensor} is in the optimizer, and its module is never called",
        advice="Leave it out of the optimizer, or call the module.",
        make=_unused,
        source="the module's calls",
        limits=(Limit("steps", 3, "looks in a row"),),
        examples=(
            example(
                "a head is not used",
                4,
                gradient_absent=_NO_FIRST,
                gradient_norms=_ABSENT,
                look=look(called=~_NO_FIRST),
            ),
        ),
        counterexamples=(example("all modules are called", 9),),
    ),
    Rule(
        code="gradient.spike",
        severity=Severity.NOTICE,
        message="the gradients' norm is {value:.3g}; its mean before was {usual:.3g}",
        advice="One such step is common; clip the gradients where they come often.",
        make=_spike,
        source="msprobe, AnomalyTurbulence: value > (1 + threshold) × historical mean",
        peers=("msprobe AnomalyTurbulence",),
        limits=(Limit("factor", 10.0, "times the mean of the last 100 steps"),),
        examples=(
            example(
                "the norm is 50 once",
                40,
                gradient_norms=lambda s: np.full(5, 50.0 if s == 30 else 0.4),
            ),
        ),
        counterexamples=(example("norms are usual", 60),),
    ),
    Rule(
        code="gradient.accumulated",
        severity=Severity.ALERT,
        message="the backward pass adds to the gradients of the step before, which the update has "
        "used already",
        advice="Call optimizer.zero_grad() once per step, before backward().",
        make=_accumulated,
        source="gradients that were not touched between the update and the next backward pass",
        limits=(Limit("steps", 3, "steps in a row"),),
        examples=(example("zero_grad is missing", 5, is_accumulated=lambda s: s > 0),),
        counterexamples=(
            example("gradients are zeroed", 9),
            example("once they are not", 9, is_accumulated=lambda s: s == 4),
        ),
    ),
    Rule(
        code="update.repeated",
        severity=Severity.ALERT,
        message="the optimizer steps again on gradients that it has used ({value:.0f} times)",
        advice="Call optimizer.step() once per backward pass; a scaler's step() calls it too.",
        make=_repeated,
        source="two updates without a backward pass between them",
        limits=(Limit("steps", 2, "times"),),
        examples=(example("step() is called twice", 5, is_repeated=lambda s: s % 2 == 1),),
        counterexamples=(
            example("step() is called once", 9),
            example("once it is called twice", 9, is_repeated=lambda s: s == 4),
        ),
    ),
)
