"""From outcomes of experiments to a named cause, or to none: isograd does not guess."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isograd.diagnose.experiment import Outcome
from isograd.diagnose.hypothesis import Context, FunctionHypothesis
from isograd.diagnose.matched_filter import INTERVAL_DEVIATIONS
from isograd.frameworks.base import FunctionSite, Place, Trial

#: alpha may miss 1 by this much where rounding alone moves it less.
_ALPHA_TOLERANCE = 0.1
#: A projection that rounding alone moves by more than this says nothing.
_LARGEST_DEVIATION = 0.4
#: Of hypotheses that all explain the port, those this much worse than the best are dropped.
_WORSE = 3.0
#: Outcomes that a diagnosis lists.
_MOST_TRIED = 40


@dataclass(frozen=True)
class NamedCause:
    """A cause with what it was drawn from.

    interval: of the estimated number; None where nothing was estimated.
    """

    id: str
    name: str
    text: str
    trial: Trial
    reference: float | str | None
    port: float | str | None
    alpha: float
    alpha_low: float
    alpha_high: float
    interval: tuple[float, float] | None
    alternatives: tuple[str, ...]
    argument: str | None
    ratio: float


@dataclass(frozen=True)
class Tried:
    """One hypothesis as a person may want to see it: at which place, how well it explains.

    reason: why it was not accepted, in words; "" where it was.
    """

    id: str
    text: str
    module: str
    function: str
    ratio: float
    alpha: float
    deviation: float
    accepted: bool
    reason: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The answer for one subject: causes (none: abstained), and what was tried, best first.

    ratios: of all tensors of the subject under the causes.
    """

    causes: tuple[NamedCause, ...]
    tried: tuple[Tried, ...]
    ratio_before: float
    ratio_after: float | None
    ratios: dict[str, float]


def decide(
    outcomes: Sequence[Outcome],
    hypotheses: Mapping[str, FunctionHypothesis],
    context: Context,
    threshold: float,
    ratio_before: float,
) -> Diagnosis:
    """The best accepted outcome as causes; the others that explain as much are alternatives."""
    accepted = [o for o in outcomes if explains(o, threshold)]
    tried = tuple(
        _tried(o, hypotheses, context, why_not(o, threshold)) for o in outcomes[:_MOST_TRIED]
    )
    if not accepted:
        return Diagnosis((), tried, ratio_before, None, {})
    accepted = [o for o in accepted if not _has_vanished(o, hypotheses)] or accepted
    fewest = min(len(o.trials) for o in accepted)
    accepted = [o for o in accepted if len(o.trials) == fewest]
    best = min(o.ratio for o in accepted)
    close = [o for o in accepted if o.ratio <= _WORSE * best + 1.0]
    chosen = min(close, key=lambda o: (_rank(o, hypotheses), o.ratio))
    ids = {hypotheses[t.hypothesis].id for t in chosen.trials}
    ids |= {i for t in chosen.trials for i in hypotheses[t.hypothesis].special_of}
    others = dict.fromkeys(
        hypotheses[t.hypothesis].id
        for o in close
        if o is not chosen
        for t in o.trials
        if hypotheses[t.hypothesis].id not in ids
    )
    causes = tuple(
        _named(chosen, trial, hypotheses, context, tuple(others))
        for trial in sorted(chosen.trials, key=lambda t: _event(t.place, context))
    )
    return Diagnosis(causes, tried, ratio_before, chosen.ratio, chosen.ratios)


def _has_vanished(outcome: Outcome, hypotheses: Mapping[str, FunctionHypothesis]) -> bool:
    """Whether the estimated number is 0 as far as can be told, and 0 makes another function."""
    numbers = [hypotheses[t.hypothesis].number for t in outcome.trials]
    return outcome.floor and any(n is not None and not n.may_vanish for n in numbers)


def explains(outcome: Outcome, threshold: float) -> bool:
    """Whether the port is back in the noise under it, and its error is the hypothesis' change."""
    return not why_not(outcome, threshold)


def why_not(outcome: Outcome, threshold: float) -> str:
    """Why an outcome does not explain the port, in words; "" where it does."""
    tolerance = max(INTERVAL_DEVIATIONS * outcome.deviation, _ALPHA_TOLERANCE)
    speaks = outcome.deviation <= _LARGEST_DEVIATION and math.isfinite(outcome.alpha)
    reasons = []
    if not outcome.ratio <= threshold:
        reasons.append("residual left")
    elif not outcome.confirmed:
        reasons.append("noise not measured anew")
    elif not outcome.gain > 0:
        reasons.append("nothing gained")
    if not speaks:
        reasons.append("projection says nothing")
    elif abs(outcome.alpha - 1.0) > tolerance:
        reasons.append("alpha not 1")
    return ", ".join(reasons)


#: A projection of 1 that rounding alone moves by less than this is no accident (`QUIET_VARIANTS`).
_QUIET_DEVIATION = 0.08
#: A change of the results below that may come from another kernel in float32: their errors reach
#: 1e-6 (docs/thresholds.md, device profile), and rounding afterwards keeps their mean.
_SMALLEST_CHANGE = 2e-6


def explains_quietly(outcome: Outcome) -> bool:
    """Whether a change that magnitudes do not show is in the port's error all the same."""
    return not _why_not_quietly(outcome)


def _why_not_quietly(outcome: Outcome) -> str:
    tolerance = max(INTERVAL_DEVIATIONS * outcome.deviation, _ALPHA_TOLERANCE)
    if not outcome.deviation <= _QUIET_DEVIATION:
        return "projection says nothing"
    if not outcome.change >= _SMALLEST_CHANGE:
        return "no more than another kernel"
    return "" if abs(outcome.alpha - 1.0) <= tolerance else "alpha not 1"


def decide_quietly(
    outcomes: Sequence[Outcome],
    hypotheses: Mapping[str, FunctionHypothesis],
    context: Context,
    ratio_before: float,
) -> Diagnosis:
    """As `decide`, for a port whose error is within the noise."""
    accepted = [o for o in outcomes if explains_quietly(o)]
    tried = tuple(
        _tried(o, hypotheses, context, _why_not_quietly(o)) for o in outcomes[:_MOST_TRIED]
    )
    if not accepted:
        return Diagnosis((), tried, ratio_before, None, {})
    clearest = min(o.deviation for o in accepted)
    close = [o for o in accepted if o.deviation <= _WORSE * clearest]
    chosen = min(close, key=lambda o: (hypotheses[o.trials[0].hypothesis].rank, o.deviation))
    own = hypotheses[chosen.trials[0].hypothesis].id
    ids = [hypotheses[o.trials[0].hypothesis].id for o in close]
    others = tuple(dict.fromkeys(i for i in ids if i != own))
    causes = tuple(
        _named(chosen, trial, hypotheses, context, others)
        for trial in sorted(chosen.trials, key=lambda t: _event(t.place, context))
    )
    return Diagnosis(causes, tried, ratio_before, chosen.ratio, {})


def _rank(outcome: Outcome, hypotheses: Mapping[str, FunctionHypothesis]) -> int:
    return sum(hypotheses[t.hypothesis].rank for t in outcome.trials)


def site_of(place: Place, context: Context) -> FunctionSite | None:
    """The first call at a place."""
    return next((s for s in context.sites if s.place == place), None)


def _event(place: Place, context: Context) -> int:
    site = site_of(place, context)
    return len(context.sites) if site is None else site.event


def _values(
    trial: Trial, hypotheses: Mapping[str, FunctionHypothesis], context: Context
) -> tuple[FunctionHypothesis, float | str | None, float | str | None, str]:
    one = hypotheses[trial.hypothesis]
    site = site_of(trial.place, context)
    reference = None if site is None else _plain(one.reported_reference(site, context))
    port = _plain(one.reported_port(trial.values))
    text = one.text.format(reference=_shown(reference), port=_shown(port), **_words(trial))
    return one, reference, port, text


def _named(
    outcome: Outcome,
    trial: Trial,
    hypotheses: Mapping[str, FunctionHypothesis],
    context: Context,
    alternatives: tuple[str, ...],
) -> NamedCause:
    one, reference, port, text = _values(trial, hypotheses, context)
    reach = INTERVAL_DEVIATIONS * outcome.deviation
    interval = None
    if one.number is not None and outcome.low is not None and outcome.high is not None:
        interval = (outcome.low, outcome.high)
        if outcome.floor:
            text += f" (any number up to {outcome.high:.2g} would explain it)"
            alternatives = (*alternatives, f"{one.id} <= {outcome.high:.2g}")
    return NamedCause(
        one.id,
        one.name,
        text,
        trial,
        reference,
        port,
        outcome.alpha,
        outcome.alpha - reach,
        outcome.alpha + reach,
        interval,
        alternatives,
        one.argument,
        outcome.ratio,
    )


def _tried(
    outcome: Outcome, hypotheses: Mapping[str, FunctionHypothesis], context: Context, reason: str
) -> Tried:
    named = [_values(trial, hypotheses, context) for trial in outcome.trials]
    place = outcome.trials[-1].place
    return Tried(
        " and ".join(one.id for one, *_ in named),
        "; ".join(text for *_, text in named),
        place.module,
        place.function,
        outcome.ratio,
        outcome.alpha,
        outcome.deviation,
        not reason,
        reason,
    )


def _plain(value: object) -> float | str | None:
    if value is None or isinstance(value, (float, int, str)):
        return value
    return str(value)


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _words(trial: Trial) -> dict[str, object]:
    function = trial.place.function
    if function == "module":
        function = trial.place.module or "the network"
    return {
        "function": function,
        **{k: v for k, v in trial.values.items() if k not in ("reference", "port", "function")},
    }
