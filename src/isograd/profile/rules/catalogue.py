"""All rules, in the order in which a reader meets them, and their application."""

from __future__ import annotations

from collections.abc import Iterable

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.rules import communication, data, host, operators, steps
from isograd.profile.rules.rule import ProfileFinding, Rule


def all_rules() -> tuple[Rule, ...]:
    """Every rule."""
    return (*data.RULES, *host.RULES, *operators.RULES, *communication.RULES, *steps.RULES)


def apply_rules(analysis: Analysis) -> tuple[ProfileFinding, ...]:
    """Findings of all rules, most time first; notes last. The same line is claimed once."""
    rules = [r for r in all_rules() if analysis.is_per_step or not r.needs_operators]
    found = [one for rule in rules for one in rule.check(analysis)]
    found.sort(key=lambda finding: (finding.is_note, -finding.seconds))
    return tuple(_once(found))


def _once(found: list[ProfileFinding]) -> Iterable[ProfileFinding]:
    seen: set[tuple[str, str | None]] = set()
    for finding in found:
        key = (finding.code, finding.where or finding.culprit)
        if key not in seen:
            seen.add(key)
            yield finding
