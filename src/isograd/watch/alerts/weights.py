"""Weights and what the optimizer does to them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isograd.watch.alerts.rule import Check, Hit, Limit, Limits, Rule, Severity, Streak, number
from isograd.watch.alerts.training import NETWORK, PARAMETERS, example, look, table
from isograd.watch.observation import Network, ScaleFacts, StepRecord


def _steps_for_real(record: StepRecord) -> bool:
    """Whether the step was meant to move weights."""
    return not record.is_skipped and any(rate > 0.0 for rate in record.learning_rates)


def _unchanged(limits: Limits, network: Network) -> Check:
    streak, free = Streak(limits["looks"]), Streak(limits["looks"])
    known: dict[str, None] = {}

    def check(record: StepRecord) -> Iterator[Hit]:
        look_, norms = record.look, record.gradient_norms
        if look_ is not None and _steps_for_real(record):
            known.update(dict.fromkeys(look_.unheld))
            for name in known:  # no optimizer holds these
                if free.holds(name, name in look_.unheld):
                    yield Hit(0.0, module=name.rpartition(".")[0], tensor=name)
        if look_ is None or look_.unchanged is None or not _steps_for_real(record):
            return
        for at in np.flatnonzero(network.trains & (network.axes >= 2)).tolist():
            has_gradient = norms is None or bool(norms[at] > 0.0)
            name = network.parameters[at]
            if streak.holds(name, bool(look_.unchanged[at]) and has_gradient):
                yield Hit(0.0, module=network.module(at), tensor=name)

    return check


def _ratios(
    record: StepRecord, network: Network
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Update ratios of the matrices that were not zero to begin with."""
    look_ = record.look
    if look_ is None or look_.update_ratio is None or not _steps_for_real(record):
        return np.empty(0)
    chosen = network.trains & (network.axes >= 2) & np.isfinite(look_.update_ratio)
    found: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = look_.update_ratio[chosen]
    return found


def _too_large(limits: Limits, network: Network) -> Check:
    streak, limit = Streak(limits["looks"]), number(limits, "ratio")

    def check(record: StepRecord) -> Iterator[Hit]:
        ratios = _ratios(record, network)
        middle = float(np.median(ratios)) if ratios.size else 0.0
        if ratios.size and streak.holds("", middle > limit):
            rate = max(record.learning_rates)
            yield Hit(middle, limit, facts={"rate": rate, "greatest": float(ratios.max())})

    return check


def _too_small(limits: Limits, network: Network) -> Check:
    streak, limit = Streak(limits["looks"]), number(limits, "ratio")

    def check(record: StepRecord) -> Iterator[Hit]:
        ratios = _ratios(record, network)
        if ratios.size and streak.holds("", float(np.median(ratios)) < limit):
            yield Hit(float(np.median(ratios)), limit)

    return check


def _initial(limits: Limits, network: Network) -> Check:
    is_first = [True]

    def check(record: StepRecord) -> Iterator[Hit]:
        weights = record.look.weights if record.look else None
        if weights is None or not is_first[0]:
            return
        is_first[0] = False
        low, high = weights.column("minimum"), weights.column("maximum")
        for at in np.flatnonzero((low == high) & (network.axes >= 2)).tolist():
            name = network.parameters[at]
            yield Hit(float(low[at]), module=network.module(at), tensor=name)

    return check


def _large(limits: Limits, network: Network) -> Check:
    limit, steps = number(limits, "largest"), Streak(limits["looks"])

    def check(record: StepRecord) -> Iterator[Hit]:
        weights = record.look.weights if record.look else None
        if weights is None:
            return
        size = np.fmax(np.abs(weights.column("minimum")), np.abs(weights.column("maximum")))
        size[(network.axes < 2)[: len(size)]] = 0.0
        for at in np.flatnonzero(size > limit).tolist():
            if steps.holds(network.parameters[at], True):
                name = network.parameters[at]
                yield Hit(float(size[at]), limit, network.module(at), name)

    return check


def _rate_differs(limits: Limits, network: Network) -> Check:
    streak, tolerance = Streak(limits["steps"]), number(limits, "tolerance")

    def check(record: StepRecord) -> Iterator[Hit]:
        pairs = zip(record.learning_rates, record.expected_rates, strict=False)
        off = [(a, e) for a, e in pairs if abs(a - e) > tolerance * max(abs(a), abs(e))]
        if streak.holds("", bool(off)):
            actual, expected = off[0]
            yield Hit(actual, expected)

    return check


def _rate_zero(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["steps"])

    def check(record: StepRecord) -> Iterator[Hit]:
        is_zero = bool(record.learning_rates) and not any(record.learning_rates)
        if streak.holds("", is_zero):
            yield Hit(0.0, facts={"steps": int(number(limits, "steps"))})

    return check


def _decay(limits: Limits, network: Network) -> Check:
    is_first = [True]

    def check(record: StepRecord) -> Iterator[Hit]:
        vectors = network.axes < 2
        if is_first[0] and vectors.any() and network.decayed[vectors].all():
            yield Hit(float(vectors.sum()), facts={"all": len(network.parameters)})
        is_first[0] = False

    return check


_SKIPPED = ScaleFacts(65536.0, is_overflow=True)
_SAME = np.array([True, False, False, False, False])

RULES = (
    Rule(
        code="weight.unchanged",
        severity=Severity.ALERT,
        message="{tensor} gets a gradient and stays the same to the last bit",
        advice="Its updates are lost: a float16 or bfloat16 weight rounds small ones away (keep a "
        "float32 master copy), or the optimizer holds another copy of the parameter, or none. Set "
        "requires_grad to False where it is not to learn.",
        make=_unchanged,
        source="MindInsight debugger, condition weight_not_changed, made exact; its rtol = 1e-5 "
        "would call a warm-up's small updates unchanged",
        peers=("MindInsight WNC",),
        limits=(Limit("looks", 4, "looks in a row"),),
        examples=(
            example("a layer never moves", 6, look=look(unchanged=_SAME)),
            example("no optimizer holds it", 6, look=look(unheld=("other.weight",))),
        ),
        counterexamples=(
            example("all layers move", 9),
            example(
                "the learning rate is zero", 9, look=look(unchanged=_SAME), learning_rates=(0.0,)
            ),
            example(
                "updates are left out by the scaler", 9, look=look(unchanged=_SAME), scale=_SKIPPED
            ),
            example(
                "a parameter that no optimizer holds changes now and then",
                9,
                look=lambda s: look(unheld=("other.weight",) if s % 3 else ()),
            ),
            # The adapter leaves these out: tests/watch/test_unheld.py.
            example(
                "optimizers hold less than half of a network's matrices, as if a head were trained",
                9,
                look=look(unheld=()),
            ),
        ),
    ),
    Rule(
        code="weight.update_ratio",
        severity=Severity.ALERT,
        message="half of the weights change by more than {value:.2g} of their size per step "
        "(learning rate {rate:g})",
        advice="Lower the learning rate; about 1e-3 of a weight per step is usual.",
        make=_too_large,
        source="MindInsight debugger, weight_change_too_large: 1 in its recommended set (0.1 by "
        "default), here for the median of all matrices",
        peers=("MindInsight WCL",),
        limits=(
            Limit("ratio", 0.5, "mean |change| / mean |weight|, median over the matrices"),
            Limit("looks", 2, "looks in a row"),
        ),
        examples=(example("weights double", 4, look=look(update_ratio=np.full(5, 1.2))),),
        counterexamples=(
            example("updates are 1e-3 of the weights", 9),
            example(
                "a layer that starts at zero",
                9,
                look=look(update_ratio=np.array([1e-3, 1e-3, 1e-3, 1e-3, 3.0])),
            ),
        ),
    ),
    Rule(
        code="weight.update_too_small",
        severity=Severity.NOTICE,
        message="half of the weights change by less than {limit:.0e} of their size per step",
        advice="Raise the learning rate, unless the run is at its end.",
        make=_too_small,
        source="MindInsight debugger, weight_change_too_small (1e-4 there, which a usual "
        "fine-tuning undercuts)",
        peers=("MindInsight WCS",),
        limits=(
            Limit("ratio", 1e-7, "mean |change| / mean |weight|, median over the matrices"),
            Limit("looks", 5, "looks in a row"),
        ),
        examples=(example("updates are 1e-9", 8, look=look(update_ratio=np.full(5, 1e-9))),),
        counterexamples=(example("updates are 1e-3", 9),),
    ),
    Rule(
        code="weight.initialization",
        severity=Severity.NOTICE,
        message="all elements of {tensor} are {value:g} when training begins",
        advice="Equal units stay equal. Zero is meant in the last layer of a residual branch or in "
        "a low-rank adapter; elsewhere initialise at random.",
        make=_initial,
        source="MindInsight debugger, condition weight_initialization: 100 % zeros",
        peers=("MindInsight WI",),
        examples=(
            example(
                "a matrix is zero",
                1,
                look=look(
                    weights=table(PARAMETERS, minimum=(0, -1, -1, -1, -1), maximum=(0, 1, 1, 1, 1))
                ),
            ),
        ),
        counterexamples=(example("weights are random", 3),),
    ),
    Rule(
        code="weight.large",
        severity=Severity.NOTICE,
        message="an element of {tensor} has grown to {value:.3g}",
        advice="Add weight decay or normalisation where the loss suffers.",
        make=_large,
        source="AUTOTRAINER (ICSE 2021): max |w| > 5 is large; ours leaves embeddings room",
        peers=("MindInsight WL",),
        limits=(Limit("largest", 50.0, "magnitude"), Limit("looks", 3, "looks")),
        examples=(
            example("an element is 80", 5, look=look(weights=table(PARAMETERS, maximum=80.0))),
        ),
        counterexamples=(example("weights are small", 9),),
    ),
    Rule(
        code="learning_rate.differs",
        severity=Severity.ALERT,
        message="the optimizer's learning rate is {value:g}; its schedule says {limit:g}",
        advice="Something else sets the rate after the scheduler, or the scheduler holds another "
        "optimizer.",
        make=_rate_differs,
        source="the scheduler's own last rate",
        limits=(Limit("tolerance", 1e-6, "relative"), Limit("steps", 3, "steps in a row")),
        examples=(
            example("the schedule says 1e-4", 5, learning_rates=(1e-3,), expected_rates=(1e-4,)),
        ),
        counterexamples=(
            example("there is no schedule", 9),
            example("they agree", 9, learning_rates=(1e-3,), expected_rates=(1e-3,)),
        ),
    ),
    Rule(
        code="learning_rate.zero",
        severity=Severity.ALERT,
        message="the learning rate has been zero for {steps} steps",
        advice="A schedule has ended before the training, or its warm-up never begins.",
        make=_rate_zero,
        source="no weight can change",
        limits=(Limit("steps", 20, "steps in a row"),),
        examples=(example("the schedule has ended", 30, learning_rates=(0.0,)),),
        counterexamples=(
            example("a warm-up begins at zero", 30, learning_rates=lambda s: (1e-4 * s,)),
        ),
    ),
    Rule(
        code="optimizer.decay",
        severity=Severity.NOTICE,
        message="weight decay is applied to all {all} parameters, {value:.0f} biases and "
        "normalisation weights among them",
        advice="Give those a group of their own with weight_decay=0; most recipes do.",
        make=_decay,
        source="the recipes of BERT, GPT-2, ResNet (He et al. 2019, bag of tricks): no bias decay",
        examples=(
            example(
                "one group for all",
                2,
                network=type(NETWORK)(
                    PARAMETERS, NETWORK.axes, NETWORK.trains, np.ones(5, dtype=bool)
                ),
            ),
        ),
        counterexamples=(example("vectors are left out", 2),),
    ),
)
