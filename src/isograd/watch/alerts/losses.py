"""The loss against the run's own history: spikes, divergence, standstill, oscillation."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from isograd.watch.alerts.rule import Check, Hit, Limit, Limits, Rule, Severity, Streak, number
from isograd.watch.alerts.training import example, usual_loss
from isograd.watch.observation import Network, StepRecord

#: A median absolute deviation of a normal distribution, as a standard deviation.
_MAD_TO_SIGMA = 1.4826
_WINDOW = 50
#: A learning rate that has risen by this factor in so many steps before a spike is named with it.
_RISE, _RECENT = 3.0, 6


def _finite(record: StepRecord) -> float | None:
    loss = record.loss
    return loss if loss is not None and math.isfinite(loss) else None


def _spike(limits: Limits, network: Network) -> Check:
    deviations, share = number(limits, "deviations"), number(limits, "share")
    descent = number(limits, "descent")
    fewest = int(number(limits, "history"))
    history: deque[float] = deque(maxlen=_WINDOW)
    first: float | None = None
    rates: deque[tuple[int, float]] = deque(maxlen=_RECENT)

    def check(record: StepRecord) -> Iterator[Hit]:
        nonlocal first
        loss = _finite(record)
        rates.append((record.step, max(record.learning_rates, default=math.nan)))
        if loss is None:
            return
        first = loss if first is None else first
        if len(history) >= fewest:
            usual = float(np.median(history))
            spread = _MAD_TO_SIGMA * float(np.median(np.abs(np.array(history) - usual)))
            level = max(abs(usual), float(np.median(np.abs(history))))
            limit = usual + max(deviations * spread, share * level, descent * (first - usual))
            if loss > limit and loss > max(history) + 0.5 * (limit - usual):
                yield Hit(loss, limit, facts={"usual": usual, "rise": _rise(rates)})
                return
        history.append(loss)

    return check


def _rise(rates: Iterable[tuple[int, float]]) -> str:
    """What to say of the learning rate's jump before a spike, empty where there was none."""
    for (_, before), (step, rate) in pairwise(rates):
        if 0.0 < _RISE * before <= rate < math.inf:
            return f"; the learning rate rose from {before:.4g} to {rate:.4g} at step {step}"
    return ""


def _diverges(limits: Limits, network: Network) -> Check:
    factor, streak = number(limits, "factor"), Streak(limits["steps"])
    first: list[float] = []

    def check(record: StepRecord) -> Iterator[Hit]:
        loss = _finite(record)
        if loss is None:
            return
        if not first:
            first.append(abs(loss))
            return
        limit = factor * max(first[0], 1.0)
        if streak.holds("", loss > limit):
            yield Hit(loss, limit, facts={"first": first[0]})

    return check


def _constant(limits: Limits, network: Network) -> Check:
    streak = Streak(limits["steps"])
    before: list[float | None] = [None]

    def check(record: StepRecord) -> Iterator[Hit]:
        loss = _finite(record)
        repeated = record.batch is not None and record.batch.is_repeated
        same = loss is not None and loss == before[0] and loss != 0.0
        before[0] = loss
        if streak.holds("", same):
            why = "on the same batch" if repeated else "although the batches differ"
            yield Hit(loss or 0.0, facts={"why": why})

    return check


def _plateau(limits: Limits, network: Network) -> Check:
    window, share = int(number(limits, "window")), number(limits, "share")
    history: deque[float] = deque(maxlen=2 * window)

    def check(record: StepRecord) -> Iterator[Hit]:
        loss = _finite(record)
        if loss is None:
            return
        history.append(loss)
        if len(history) < 2 * window or record.step % window:
            return
        values = np.array(history)
        early, late = float(values[:window].mean()), float(values[window:].mean())
        noise = float(values.std()) / math.sqrt(window)
        gained = early - late
        if gained < max(share * abs(early), noise):
            yield Hit(gained, share * abs(early), facts={"window": window, "loss": late})

    return check


def _oscillates(limits: Limits, network: Network) -> Check:
    amplitude, share = number(limits, "amplitude"), number(limits, "share")
    window = int(number(limits, "window"))
    history: deque[float] = deque(maxlen=window)

    def check(record: StepRecord) -> Iterator[Hit]:
        loss = _finite(record)
        if loss is None:
            return
        history.append(loss)
        if len(history) < window or record.step % window:
            return
        values = np.array(history)
        changes = np.diff(values)
        turns = changes[:-1] * changes[1:] < 0
        large = np.minimum(np.abs(changes[:-1]), np.abs(changes[1:])) >= amplitude * abs(
            float(values.mean())
        )
        found = float((turns & large).mean())
        gained = float(values[: window // 2].mean() - values[window // 2 :].mean())
        if found >= share and gained < amplitude * abs(float(values.mean())):
            yield Hit(found, share, facts={"window": window})

    return check


def _jump(step: int) -> float:
    return usual_loss(step) if step != 40 else 90.0


def _learned(peak: float) -> Callable[[int], float]:
    """A loss that falls from 1.4 to 0.0015 in some 30 steps, with one peak at step 90."""
    return lambda step: peak if step == 90 else 1.4 * math.exp(-step / 4) + 0.0015


RULES = (
    Rule(
        code="loss.spike",
        severity=Severity.ALERT,
        message="the loss is {value:.4g}; it was about {usual:.4g} before, and {limit:.4g} is the "
        "most that its own variation explains{rise}",
        advice="Look at this step's batch and at the gradients' norm; clip the gradients, or lower "
        "the learning rate.",
        make=_spike,
        source="median and median absolute deviation of the last 50 losses; the factors hold on "
        "the healthy runs of benchmarks/watch",
        peers=("msprobe AnomalyTurbulence",),
        limits=(
            Limit("deviations", 25.0, "standard deviations above the median"),
            Limit("share", 4.0, "at least so many times the median"),
            Limit("descent", 0.2, "at least so much of what the loss came down from its start"),
            Limit("history", 10, "losses before the first judgement"),
        ),
        examples=(
            example("the loss jumps from 1.3 to 90", 45, loss=_jump),
            example("a learned loss rises to half of its start", 100, loss=_learned(0.6)),
        ),
        counterexamples=(
            example("the loss falls with the noise of batches", 200),
            example("a loss near zero doubles", 60, loss=lambda s: 1e-3 * (1 + (s == 40))),
            example("one batch of a learned task is harder", 100, loss=_learned(0.2)),
        ),
    ),
    Rule(
        code="loss.diverging",
        severity=Severity.ALERT,
        message="the loss has risen to {value:.4g}; the first was {first:.4g}",
        advice="Lower the learning rate (by 10 first), warm it up, or clip the gradients.",
        make=_diverges,
        source="AUTOTRAINER (ICSE 2021): losses above 1e3 are abnormal; here relative to the first",
        peers=("AUTOTRAINER abnormal loss",),
        limits=(
            Limit("factor", 20.0, "times the first loss, or 1 where that is less"),
            Limit("steps", 2, "steps in a row"),
        ),
        examples=(example("the loss grows threefold each step", 8, loss=lambda s: 2.0 * 3.0**s),),
        counterexamples=(
            example("the loss falls", 200),
            example("one loss is large", 60, loss=_jump),
        ),
    ),
    Rule(
        code="loss.constant",
        severity=Severity.ALERT,
        message="the loss is exactly {value:.6g} at every step, {why}",
        advice="Nothing is learned: look whether weights change (weight.unchanged), whether the "
        "loss depends on them, and whether a compiled step was traced only once.",
        make=_constant,
        source="two losses of different batches or weights agree to the last bit only by chance",
        limits=(Limit("steps", 8, "steps in a row"),),
        examples=(example("the loss is 2.302585 always", 20, loss=2.302585),),
        counterexamples=(
            example("the loss falls", 60),
            example("the loss has reached zero", 60, loss=0.0),
        ),
    ),
    Rule(
        code="loss.plateau",
        severity=Severity.NOTICE,
        message="over the last {window} steps the loss fell by {value:.3g}, less than {limit:.3g}",
        advice="If the loss is not yet where it should be: raise the learning rate, or look for "
        "vanishing gradients and frozen layers.",
        make=_plateau,
        source="AUTOTRAINER (ICSE 2021), slow convergence: delta = 0.01",
        peers=("AUTOTRAINER slow convergence",),
        limits=(
            Limit("window", 100, "steps that are compared with as many before"),
            Limit("share", 0.01, "of the loss"),
        ),
        examples=(example("the loss stays at 2.3", 301, loss=lambda s: 2.3 + 1e-3 * (s % 7)),),
        counterexamples=(example("the loss falls", 301, loss=lambda s: 2.3 - s / 200),),
    ),
    Rule(
        code="loss.oscillation",
        severity=Severity.NOTICE,
        message="the loss goes up and down in {value:.0%} of the last {window} steps and does not "
        "fall",
        advice="Lower the learning rate, or take larger batches.",
        make=_oscillates,
        source="AUTOTRAINER (ICSE 2021), oscillating loss: zeta = 0.03, eta = 0.2",
        peers=("AUTOTRAINER oscillating loss",),
        limits=(
            Limit("amplitude", 0.03, "of the mean loss"),
            Limit("share", 0.2, "of the steps"),
            Limit("window", 100, "steps"),
        ),
        examples=(example("the loss alternates", 201, loss=lambda s: 1.0 + 0.5 * (s % 2)),),
        counterexamples=(
            example("the loss falls", 201, loss=lambda s: 2.3 - s / 100 + 0.1 * (s % 2)),
        ),
    ),
)
