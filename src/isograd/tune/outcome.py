"""How one trial ended, before the study knows it."""

from __future__ import annotations

from dataclasses import dataclass

from isograd.tune.model import TrialState


@dataclass(frozen=True)
class TrialOutcome:
    """values: None unless the trial is complete; reason: why it is not."""

    state: TrialState
    values: tuple[float, ...] | None = None
    reason: str = ""


def failed(reason: str) -> TrialOutcome:
    """A trial that gives no value."""
    return TrialOutcome(TrialState.FAILED, None, reason)
