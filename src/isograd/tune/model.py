"""What a study and its trials are, as values, and the report of `isograd tune`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from isograd.report.base import Report

SCHEMA = "isograd/tune/1"
#: A value of a hyper-parameter.
Choice = bool | int | float | str | None


class Direction(str, Enum):
    """Whether a smaller or a greater value of the objective is better."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


class TrialState(str, Enum):
    """How a trial ended."""

    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"


@dataclass(frozen=True)
class Trial:
    """One trial that has ended.

    values: the objective's value, or one for each of several objectives; None where there is none.
    reason: why it was pruned or failed.  elapsed_s: seconds.  run: its folder, where it has one.
    """

    number: int
    state: TrialState
    params: Mapping[str, Choice]
    values: tuple[float, ...] | None
    elapsed_s: float | None
    reason: str = ""
    run: str = ""

    def to_data(self) -> dict[str, Any]:
        """The trial in the contract's JSON."""
        return {
            "number": self.number,
            "state": self.state,
            "reason": self.reason,
            "params": dict(self.params),
            "value": _one_or_all(self.values),
            "seconds": self.elapsed_s,
            "run": self.run or None,
        }


@dataclass(frozen=True)
class Check:
    """What verify said of the port: its verdict, and the verdict of its training stage."""

    case: str
    verdict: str
    training: str


@dataclass(frozen=True)
class TuneReport(Report):
    """The whole answer of `isograd tune`.

    best: the trials that no other is better than: one, or a Pareto front of several objectives.
    importance: the share of each hyper-parameter in the objective's variance, greatest first.
    importance_method: how it was computed, or why it was not.
    """

    study: str
    directions: tuple[Direction, ...]
    objectives: tuple[str, ...]
    trials: tuple[Trial, ...]
    best: tuple[Trial, ...]
    importance: Mapping[str, float] = field(default_factory=dict)
    importance_method: str = ""
    storage: str = ""
    wanted: int = 0
    elapsed_s: float = 0.0
    check: Check | None = None
    notes: tuple[str, ...] = ()

    @property
    def needs_action(self) -> bool:
        """Whether no trial gave a value, or verify says that the port is not the same network."""
        is_wrong = self.check is not None and self.check.verdict != "equivalent"
        return not self.best or is_wrong

    def count(self, state: TrialState) -> int:
        """How many trials ended so."""
        return sum(trial.state is state for trial in self.trials)

    def failed_choices(self) -> list[tuple[str, Choice, int, str]]:
        """Values with which two trials or more ran and all failed, how many, and the last reason.

        None where no trial gave a value: that is no choice's fault.
        """
        tried: dict[tuple[str, str], list[Trial]] = {}
        for trial in self.trials if self.best else ():
            for name, value in trial.params.items():
                tried.setdefault((name, repr(value)), []).append(trial)
        return [
            (name, trials[-1].params[name], len(trials), trials[-1].reason)
            for (name, _), trials in tried.items()
            if len(trials) > 1 and all(one.state is TrialState.FAILED for one in trials)
        ]

    def to_data(self) -> dict[str, Any]:
        """The contract's JSON."""
        best = [trial.to_data() for trial in self.best]
        several = len(self.directions) > 1
        return {
            "schema": SCHEMA,
            "study": self.study,
            "direction": list(self.directions) if several else self.directions[0],
            "objectives": self.objectives,
            "storage": self.storage,
            "trials": [trial.to_data() for trial in self.trials],
            "best": best if several else (best[0] if best else None),
            "failed_choices": [
                {"parameter": name, "value": value, "trials": count, "reason": reason}
                for name, value, count, reason in self.failed_choices()
            ],
            "importance": dict(self.importance),
            "importance_method": self.importance_method,
            "check": None
            if self.check is None
            else {
                "case": self.check.case,
                "verdict": self.check.verdict,
                "training": self.check.training,
            },
            "seconds": self.elapsed_s,
        }


def _one_or_all(values: tuple[float, ...] | None) -> float | list[float] | None:
    if values is None:
        return None
    return values[0] if len(values) == 1 else list(values)
