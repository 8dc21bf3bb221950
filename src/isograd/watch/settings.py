"""Thresholds and actions from `isograd.toml` or `[tool.isograd]` of pyproject.toml.

[watch]                                  # in pyproject.toml: [tool.isograd.watch]
action = "report"                        # or stop, raise
[watch.alerts."gradient.exploding"]
largest = 1e4                            # a threshold of the rule
severity = "notice"                      # or alert
enabled = true
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isograd.errors import UsageError
from isograd.watch.alerts.library import BY_CODE
from isograd.watch.alerts.rule import Limits, Rule, Severity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ACTIONS = ("report", "stop", "raise")
Action = "str | Callable[[Mapping[str, Any]], None]"


@dataclass(frozen=True)
class RuleSettings:
    """What a person set for a rule."""

    limits: Mapping[str, float] = field(default_factory=dict)
    severity: Severity | None = None
    is_enabled: bool = True


@dataclass(frozen=True)
class Settings:
    """How a training is watched.

    rules: by code; action: at an alert.
    """

    rules: Mapping[str, RuleSettings] = field(default_factory=dict)
    action: str = "report"

    def limits(self, rule: Rule) -> Limits:
        """A rule's thresholds, as set or by default."""
        given = self.rules.get(rule.code, RuleSettings()).limits
        return {limit.name: given.get(limit.name, limit.default) for limit in rule.limits}

    def severity(self, rule: Rule) -> Severity:
        """A rule's severity, as set or by default."""
        return self.rules.get(rule.code, RuleSettings()).severity or rule.severity

    def is_active(self, rule: Rule) -> bool:
        """Whether a rule is checked: enabled, and with a threshold where it has none by default."""
        if not self.rules.get(rule.code, RuleSettings()).is_enabled:
            return False
        return not rule.is_asked_for or any(v is not None for v in self.limits(rule).values())


def find_settings(folder: Path) -> Settings:
    """The nearest settings in `isograd.toml` or pyproject.toml; UsageError where they are wrong."""
    for parent in (folder.resolve(), *folder.resolve().parents):
        for name, keys in (
            ("isograd.toml", ("watch",)),
            ("pyproject.toml", ("tool", "isograd", "watch")),
        ):
            path = parent / name
            if not path.is_file():
                continue
            found: Any = _read(path)
            for key in keys:
                found = found.get(key) if isinstance(found, dict) else None
            if found is not None:
                return from_table(found, str(path))
    return Settings()


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}", "Mend the file.") from error


def from_table(table: Any, where: str) -> Settings:
    """Settings from a table of TOML or JSON; UsageError names the key that is wrong."""
    _require(isinstance(table, dict), f"{where}: watch is no table", "Write [watch].")
    unknown = sorted(set(table) - {"action", "alerts"})
    _require(not unknown, f"{where}: watch has no key {unknown and unknown[0]!r}",
             "The keys are action and alerts.")  # fmt: skip
    action = table.get("action", "report")
    _require(action in ACTIONS, f"{where}: action {action!r} is unknown",
             f"Give one of {', '.join(ACTIONS)}.")  # fmt: skip
    alerts = table.get("alerts", {})
    _require(isinstance(alerts, dict), f"{where}: watch.alerts is no table", "Write tables.")
    return Settings({code: _rule(code, given, where) for code, given in alerts.items()}, action)


def _rule(code: str, given: Any, where: str) -> RuleSettings:
    rule = BY_CODE.get(code)
    if rule is None:
        raise UsageError(f"{where}: there is no alert {code!r}", "docs/alerts.md names all.")
    _require(isinstance(given, dict), f"{where}: {code} is no table", "Write a table.")
    names = [limit.name for limit in rule.limits]
    limits: dict[str, float] = {}
    for name, value in given.items():
        if name in ("severity", "enabled"):
            continue
        _require(name in names, f"{where}: {code} has no threshold {name!r}",
                 f"It has {', '.join(names) or 'none'}.")  # fmt: skip
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        _require(is_number, f"{where}: {code}.{name} is no number", "Give a number.")
        limits[name] = float(value)
    severity, enabled = given.get("severity"), given.get("enabled", True)
    severities = [one.value for one in Severity]
    _require(severity is None or severity in severities,
             f"{where}: {code}.severity is unknown", "Give alert or notice.")  # fmt: skip
    _require(
        isinstance(enabled, bool), f"{where}: {code}.enabled is no bool", "Give true or false."
    )
    return RuleSettings(limits, None if severity is None else Severity(severity), enabled)


def _require(condition: bool, what: str, advice: str) -> None:
    if not condition:
        raise UsageError(what, advice)
