"""Runs all rules over the steps of a training, and gathers what they say into alerts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isograd.watch.alerts.library import RULES
from isograd.watch.alerts.rule import Check, Hit, Rule, Severity
from isograd.watch.observation import Network, StepRecord
from isograd.watch.settings import Settings

#: A rule speaks for so many tensors by name; what lies beyond is counted into the last.
_MOST_PER_RULE = 20


@dataclass(frozen=True)
class Alert:
    """A condition that held, from its first step to its last.

    value: of the first step; limit: what it was held against; where: `file:line`, if known.
    """

    code: str
    severity: Severity
    first_step: int
    last_step: int
    count: int
    module: str
    tensor: str
    value: float
    limit: float | None
    source: str
    message: str
    advice: str
    where: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two occurrences one alert."""
        return self.code, self.module, self.tensor

    def to_json(self) -> dict[str, Any]:
        """The contract's object; numbers that JSON lacks are texts."""
        found = dataclasses.asdict(self)
        found["severity"] = self.severity.value
        for name in ("value", "limit"):
            found[name] = plain_number(found[name])
        return found


def plain_number(value: float | None) -> float | str | None:
    """A number as JSON has it: NaN and the infinities as texts."""
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def from_plain(value: Any) -> float:
    """The number behind `plain_number`; NaN for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


class Judge:
    """Judges one step after the other."""

    def __init__(self, network: Network, settings: Settings) -> None:
        self._settings = settings
        self._checks: list[tuple[Rule, Check]] = [
            (rule, rule.make(settings.limits(rule), network))
            for rule in RULES
            if settings.is_active(rule)
        ]
        self._alerts: dict[tuple[str, str, str], Alert] = {}

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """All alerts so far, in the order of their first steps."""
        return tuple(self._alerts.values())

    def judge(self, record: StepRecord) -> list[Alert]:
        """The alerts of one step, each with its count so far; new ones have the count 1."""
        found: dict[tuple[str, str, str], Alert] = {}
        for rule, check in self._checks:
            for hit in check(record):
                alert = self._note(rule, hit, record.step)
                found[alert.key] = alert
        return list(found.values())

    def _note(self, rule: Rule, hit: Hit, step: int) -> Alert:
        key = (rule.code, hit.module, hit.tensor)
        known = self._alerts.get(key)
        if known is None:
            same = [one for one in self._alerts.values() if one.code == rule.code]
            known = same[-1] if len(same) >= _MOST_PER_RULE else None
        if known is None:
            alert = self._make(rule, hit, step)
        else:
            alert = dataclasses.replace(known, last_step=step, count=known.count + 1)
        self._alerts[alert.key] = alert
        return alert

    def _make(self, rule: Rule, hit: Hit, step: int) -> Alert:
        facts = {
            "value": hit.value,
            "limit": hit.limit,
            "module": hit.module or "the network",
            "tensor": hit.tensor,
            **(hit.facts or {}),
        }
        return Alert(
            code=rule.code,
            severity=self._settings.severity(rule),
            first_step=step,
            last_step=step,
            count=1,
            module=hit.module,
            tensor=hit.tensor,
            value=hit.value,
            limit=hit.limit,
            source=rule.source,
            message=rule.message.format(**facts),
            advice=rule.advice.format(**facts),
        )


def worst(alerts: tuple[Alert, ...]) -> Iterator[Alert]:
    """Alerts before notices, each in the order of their first steps."""
    yield from (one for one in alerts if one.severity is Severity.ALERT)
    yield from (one for one in alerts if one.severity is Severity.NOTICE)
