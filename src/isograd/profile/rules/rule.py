"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.model import Profile
from isograd.profile.whatif.changes import Change

#: Nothing below this share of the step is claimed (the issue's bound for healthy runs).
CLAIM_SHARE = 0.05


@dataclass(frozen=True)
class WhatIf:
    """Predicted step after the change: seconds, and between which values it lies."""

    step_s: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Tried:
    """A measured step after the change; whether verify's tolerance still holds, None unknown."""

    step_s: float
    equivalent: bool | None
    setting: str


@dataclass(frozen=True)
class ProfileFinding:
    """seconds: per step that could be won; share: of the step. where: `file.py:line`."""

    code: str
    seconds: float
    share: float
    message: str
    advice: str
    what_if: WhatIf | None = None
    where: str | None = None
    culprit: str = ""
    module: str | None = None
    tried: Tried | None = None
    is_note: bool = False


@dataclass(frozen=True)
class Example:
    """A profile with what the rule says of it: `expected` occurs in the message; "" for silence."""

    name: str
    profile: Callable[[], Profile]
    expected: str = ""


@dataclass(frozen=True)
class Rule:
    """check: findings of an analysis. source: where its threshold comes from.

    needs_operators: it reads times of operators per step, and is silent where they are not known.
    """

    code: str
    question: str
    source: str
    check: Callable[[Analysis], Iterable[ProfileFinding]]
    examples: tuple[Example, ...]
    counterexamples: tuple[Example, ...]
    needs_operators: bool = False


def claim(
    analysis: Analysis,
    code: str,
    seconds: float,
    message: str,
    advice: str,
    *,
    where: str | None = None,
    culprit: str = "",
    module: str | None = None,
    least_share: float = CLAIM_SHARE,
    change: Change | None = None,
) -> list[ProfileFinding]:
    """One finding where `seconds` of the step could be won, none below `least_share` of it.

    change: what the advice does, where the step after it can be predicted by its dependencies; what
    runs beside something longer wins nothing then, and is a note.
    """
    seconds = min(seconds, analysis.step_s)  # operators are timed in other steps than the step
    if not analysis.share(seconds) > least_share:
        return []
    hidden = False
    if change is not None and analysis.model is not None:
        won = analysis.step_s - analysis.model.predict(change)
        hidden = not analysis.share(won) > CLAIM_SHARE
        seconds = 0.0 if hidden else won
    if hidden:
        message += " It runs beside something longer, so that the step would stay as it is."
    what_if = predict(analysis, seconds)
    share = analysis.share(seconds)
    found = ProfileFinding(
        code, seconds, share, message, advice, what_if, where, culprit, module, is_note=hidden
    )
    return [found]


#: One-sided error of a prediction beside the noise: a share of what is removed (docs/profile.md).
PREDICTION_ERROR = 0.15


def predict(analysis: Analysis, seconds: float) -> WhatIf:
    """The step without `seconds`, which lie on its critical path."""
    step = max(analysis.step_s - seconds, 0.0)
    margin = 2.0 * min(analysis.noise_s, analysis.step_s / 2) + PREDICTION_ERROR * seconds
    return WhatIf(step, (max(step - margin, 0.0), min(step + margin, analysis.step_s)))


def milliseconds(seconds: float) -> str:
    """Seconds as text in the unit that suits."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.0f} µs"
