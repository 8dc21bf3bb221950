"""The middle of a watched training: takes what an adapter saw of a step, judges, writes, acts.

Knows no framework.  An adapter asks `is_look_due`, and hands over a `StepRecord` per optimizer
step; at a value that is not finite it hands over the `Origin`.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isograd.errors import IsogradError
from isograd.runs.information import RunState, describe_run
from isograd.runs.writer import RunWriter
from isograd.watch.alerts.rule import Severity
from isograd.watch.judge import Alert, Judge
from isograd.watch.observation import COLUMNS, Look, Network, StepRecord
from isograd.watch.origin import Origin
from isograd.watch.settings import Settings

#: What a person may ask to happen at an alert.
Action = "str | Callable[[Mapping[str, Any]], object]"
#: Statistics of each kind of tensor that are written at a look.
_WRITTEN = {
    "weight": ("abs_mean", "norm", "minimum", "maximum"),
    "output": ("mean", "abs_mean", "norm", "minimum", "maximum", "zero_share"),
}
_ORIGINS = 3


class AlertRaised(IsogradError):  # noqa: N818  # what was raised is an alert, not an error of isograd's
    """An alert, where the action is `raise`; `alert` holds it."""

    def __init__(self, alert: Alert) -> None:
        super().__init__(f"step {alert.first_step}: {alert.message}", alert.advice)
        self.alert = alert


class TrainingStopped(BaseException):
    """Leaves a training at an alert, where the action is `stop`; `watch` ends it."""


@dataclass(frozen=True)
class Options:
    """How a training is watched.

    first, every: the first steps that are all looked at, and the distance of looks after them.
    action: at an alert; a callable gets the alert as the contract's object.
    is_replayed: whether a step whose values are not finite is replayed to find their origin.
    """

    settings: Settings = field(default_factory=Settings)
    first: int = 5
    every: int = 20
    action: str | Callable[[Mapping[str, Any]], object] = "report"
    is_replayed: bool = True


class Session:
    """Judges and writes one watched training."""

    def __init__(self, folder: Path, options: Options, name: str | None = None) -> None:
        """Make the run's folder; UsageError where it cannot be made."""
        self.options = options
        self.writer = RunWriter(folder, describe_run(name or folder.resolve().name, "watch"))
        self._judges: list[Judge] = []
        self._networks: list[Network] = []
        self._origins = 0
        self._known: set[tuple[str, str, str, int]] = set()
        self._is_stopping = False
        self._started = time.time()

    def describe(self, **changes: Any) -> None:
        """Change fields of run.json, as framework, device and seeds."""
        versions = {**self.writer.information.versions, **changes.pop("versions", {})}
        self.writer.describe(versions=versions, **changes)

    def is_look_due(self, step: int) -> bool:
        """Whether tensors are looked at in a step."""
        options = self.options
        return step < options.first or (options.every > 0 and step % options.every == 0)

    @property
    def wants_origin(self) -> bool:
        """Whether the origin of a value that is not finite is still to be found."""
        return self.options.is_replayed and self._origins < _ORIGINS

    def add_network(self, network: Network) -> int:
        """A new optimizer with its parameters; the number by which its steps are recorded."""
        self._judges.append(Judge(network, self.options.settings))
        self._networks.append(network)
        return len(self._judges) - 1

    def origin(self, origin: Origin) -> None:
        """The origin of a value that is not finite."""
        self._origins += 1
        self.writer.alert({"entry": "origin", **origin.to_json()})

    def record(self, lane: int, record: StepRecord, facts: Mapping[str, Any] | None = None) -> None:
        """One step of one optimizer: judge it, write it, act.

        Raises AlertRaised or TrainingStopped as the action says.
        """
        prefix = "" if lane == 0 else f"optimizer_{lane}/"
        self.writer.scalars(record.step, {prefix + k: v for k, v in _scalars(record).items()})
        rows = _statistics(record, self._networks[lane])
        if rows:
            self.writer.statistics(record.step, {prefix + k: v for k, v in rows.items()})
        fresh = []
        for alert in self._judges[lane].judge(record):
            key = (*alert.key, lane)
            if key not in self._known or alert.count & (alert.count - 1) == 0:
                self.writer.alert({"entry": "alert", "lane": lane, **alert.to_json()})
            if key not in self._known:
                self._known.add(key)
                fresh.append(alert)
        for alert in fresh:
            if alert.severity is Severity.ALERT:
                self._act(alert)

    def close(self, error: BaseException | None) -> None:
        """End the run: the alerts as they stand now, and how it ended."""
        for lane, judge in enumerate(self._judges):
            for alert in judge.alerts:
                if alert.count & (alert.count - 1):
                    self.writer.alert({"entry": "alert", "lane": lane, **alert.to_json()})
        if error is None or isinstance(error, TrainingStopped):
            self.writer.close(RunState.COMPLETE)
        else:
            self.writer.close(RunState.FAILED, f"{type(error).__name__}: {error}"[:2000])

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """All alerts so far."""
        return tuple(alert for judge in self._judges for alert in judge.alerts)

    def _act(self, alert: Alert) -> None:
        action = self.options.action
        if callable(action):
            action(alert.to_json())
            return
        sys.stderr.write(f"isograd: step {alert.first_step}: {alert.code}: {alert.message}\n")
        if action == "raise":
            raise AlertRaised(alert)
        if action == "stop":
            raise TrainingStopped(alert.message)


def _scalars(record: StepRecord) -> dict[str, float]:
    found: dict[str, float] = {}
    if record.loss is not None:
        found["loss"] = record.loss
    total = record.total_norm()
    if not math.isnan(total):
        found["gradient_norm"] = total
    for at, rate in enumerate(record.learning_rates):
        found["learning_rate" if at == 0 else f"learning_rate_{at}"] = rate
    if record.scale is not None:
        found["scale"] = record.scale.scale
        found["overflow"] = float(record.scale.is_overflow)
        if record.scale.largest_exponent is not None:
            found["scaled_gradient_exponent"] = float(record.scale.largest_exponent)
    return found


def _statistics(record: StepRecord, network: Network) -> dict[str, float]:
    found: dict[str, float] = {}
    if record.gradient_norms is not None:
        for name, value in zip(network.parameters, record.gradient_norms.tolist(), strict=True):
            if value == value:
                found[f"gradient/{name}/norm"] = value
    if record.look is not None:
        found.update(_of_look(record.look, network))
    return found


def _of_look(look: Look, network: Network) -> dict[str, float]:
    found: dict[str, float] = {}
    tables = {"weight": look.weights}
    if look.activations is not None:
        tables["output"] = look.activations.table
    for kind, table in tables.items():
        if table is None:
            continue
        for column in _WRITTEN[kind]:
            values = table.values[:, COLUMNS.index(column)].tolist()
            found |= {
                f"{kind}/{name}/{column}": value
                for name, value in zip(table.names, values, strict=True)
                if value == value
            }
    if look.update_ratio is not None:
        for name, value in zip(network.parameters, look.update_ratio.tolist(), strict=True):
            if value == value:
                found[f"update/{name}/ratio"] = value
    return found
