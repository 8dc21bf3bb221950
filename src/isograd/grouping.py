"""Findings by cause and by line: what is written once in a port is reported once.

A line that builds a norm runs for every block, so each block differs by it; a person changes it
once.  Pure functions over findings, so that every renderer shows the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from isograd.model import Finding, Severity

#: Two estimates of one number may be this far apart, relative.
_ONE_NUMBER = 0.1
_SEVERITIES = list(Severity)


def by_cause_and_line(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for each source line and cause, in the order of the first of them.

    The first one represents all; it lists the others' modules, and has the worst severity and the
    best established cause of them.  Findings whose line is not known stay apart.
    """
    kept: list[Finding] = []
    for finding in findings:
        place = next((i for i, known in enumerate(kept) if _is_one(known, finding)), None)
        if place is None:
            kept.append(finding)
        else:
            kept[place] = _together(kept[place], finding)
    return tuple(kept)


def modules_of(finding: Finding) -> tuple[str, ...]:
    """All modules that a finding is about, its own first."""
    return finding.modules or (finding.module,)


def _is_one(known: Finding, other: Finding) -> bool:
    if known.code == other.code == "parameter.initialisation":
        return False  # its rows are made by `isograd.verify.initial`
    line, others = _line(known), _line(other)
    if line is None or line != others:
        return False
    if known.cause is None or other.cause is None:
        same = (known.stage, known.code) == (other.stage, other.code)
        return same and known.cause is other.cause
    if known.cause.id != other.cause.id:
        return False
    ours, theirs = known.cause.port, other.cause.port
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=_ONE_NUMBER)
    return ours == theirs


def _line(finding: Finding) -> str | None:
    return finding.fix.where if finding.fix is not None else None


def _together(first: Finding, other: Finding) -> Finding:
    modules = dict.fromkeys((*modules_of(first), *modules_of(other)))
    severity = min(first.severity, other.severity, key=_SEVERITIES.index)
    better = other if _is_proved(other) and not _is_proved(first) else first
    return dataclasses.replace(
        first,
        modules=tuple(modules),
        severity=severity,
        cause=better.cause,
        fix=better.fix,
    )


def _is_proved(finding: Finding) -> bool:
    return finding.cause is not None and finding.cause.proved


def listed(modules: Sequence[str], most: int = 4) -> str:
    """Names with the number of those left out; names of one series share what they have in common.

    >>> listed(["blocks.0.norm", "blocks.1.norm", "blocks.2.norm"])
    'blocks.{0,1,2}.norm'
    """
    series: dict[tuple[str, ...], list[str]] = {}
    for name in modules:
        parts = name.split(".")
        number = next((i for i, part in enumerate(parts) if part.isdigit()), None)
        key = tuple(parts) if number is None else (*parts[:number], "*", *parts[number + 1 :])
        series.setdefault(key, []).append("" if number is None else parts[number])
    shown = [
        ".".join(f"{{{_short(numbers)}}}" if part == "*" else part for part in key)
        if len(numbers) > 1
        else ".".join(numbers[0] if part == "*" else part for part in key)
        for key, numbers in series.items()
    ]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def _short(numbers: Sequence[str]) -> str:
    """``0,1,2``, or ``0..11`` where no number between is missing."""
    values = sorted({int(number) for number in numbers})
    if len(values) > 3 and values == list(range(values[0], values[-1] + 1)):
        return f"{values[0]}..{values[-1]}"
    return ",".join(map(str, values))
