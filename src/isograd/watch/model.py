"""The report of `isograd watch`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.report.base import Report
from isograd.runs.information import RunState
from isograd.watch.alerts.rule import Severity
from isograd.watch.judge import Alert

SCHEMA = "isograd/watch/1"


class WatchVerdict(str, Enum):
    """Whether a run is healthy; incomplete where too little was recorded to say so."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True)
class Curve:
    """A series of numbers for a chart.

    steps: int64 of shape (points,); values: float64 of the same shape; low, high: a band, or empty.
    """

    name: str
    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    low: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    high: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class Heat:
    """A statistic by name and step; values: float64 of shape (names, steps), NaN where unknown."""

    title: str
    names: tuple[str, ...]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class LossScale:
    """The history of a loss scale; advice has its numbers.

    overflows: steps whose update was left out; curve: of the scale.
    """

    mode: str
    overflows: tuple[int, ...]
    final: float
    advice: str
    curve: Curve | None = None

    def to_data(self) -> dict[str, Any]:
        """The contract's object."""
        return {
            "mode": self.mode,
            "overflows": list(self.overflows),
            "final": self.final,
            "advice": self.advice,
        }


@dataclass(frozen=True)
class WatchReport(Report):
    """Whether a run is healthy, and what is the matter.

    run: the facts of run.json, or of what else was read; source: what was read.
    first_nonfinite: the contract's object.  notes: what a reader should know of the verdict.
    """

    source: str
    verdict: WatchVerdict
    run: Mapping[str, Any]
    steps: int
    alerts: tuple[Alert, ...]
    first_nonfinite: Mapping[str, Any] | None = None
    loss_scale: LossScale | None = None
    randomness: Mapping[str, Any] | None = None
    curves: tuple[Curve, ...] = ()
    heats: tuple[Heat, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def needs_action(self) -> bool:
        """Whether there is an alert, or the run did not end well."""
        is_broken = self.run.get("state") in (RunState.FAILED.value, RunState.CRASHED.value)
        return self.verdict is WatchVerdict.UNHEALTHY or is_broken

    def to_data(self) -> dict[str, Any]:
        """The contract's JSON."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict.value,
            "run": dict(self.run),
            "steps": self.steps,
            "first_nonfinite": self.first_nonfinite,
            "alerts": [alert.to_json() for alert in self.alerts],
            "loss_scale": None if self.loss_scale is None else self.loss_scale.to_data(),
            "randomness": self.randomness,
            "notes": list(self.notes),
        }

    def with_alerts(self, more: tuple[Alert, ...], **changes: Any) -> WatchReport:
        """The report with further alerts, judged anew."""
        alerts = in_order((*self.alerts, *more))
        return dataclasses.replace(
            self, alerts=alerts, verdict=verdict_of(alerts, self.steps), **changes
        )


def in_order(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Alerts before notices, each in the order of their first steps."""
    return tuple(sorted(alerts, key=lambda a: (a.severity is Severity.NOTICE, a.first_step)))


def verdict_of(alerts: tuple[Alert, ...], steps: int) -> WatchVerdict:
    """Unhealthy for any alert; incomplete where there was no step."""
    if any(alert.severity is Severity.ALERT for alert in alerts):
        return WatchVerdict.UNHEALTHY
    return WatchVerdict.HEALTHY if steps else WatchVerdict.INCOMPLETE
