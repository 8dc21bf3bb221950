"""A report that a verb wrote as JSON, drawn again: outcome, findings, tables, whatever the verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isograd.findings import Finding, Fix, Level, Location
from isograd.report.document import (
    Cell,
    Column,
    Document,
    Facts,
    FindingList,
    Outcome,
    Section,
    Table,
    Tone,
)

#: Verdicts after which nothing needs to be done, those that ask for it, and those in between.
#: Others, such as what limits a step, are neither good nor bad.
_GOOD = frozenset("equivalent healthy same sound balanced best".split())
_BAD = frozenset("divergent unhealthy differs unsound".split())
_OPEN = frozenset("incomplete skipped unknown".split())
#: Lists whose entries are findings.
_FINDINGS = ("findings", "alerts", "hazards")
_ERRORS = frozenset("effective masked alert error".split())
_NOTES = frozenset("equivalent below-noise note notice".split())
#: Rows of a table that a page gets; the file has them all.
_MOST_ROWS = 2_000


def report_document(data: Mapping[str, Any], title: str) -> Document:
    """The document of a report's JSON; what is not known is drawn as facts and tables."""
    sections: list[Section] = []
    facts: list[tuple[str, Cell]] = []
    verdict = _word(data)
    for name, value in data.items():
        if name in ("schema", "verdict") or value in (None, [], {}):
            continue
        if name in _FINDINGS and isinstance(value, list):
            sections.append(FindingList(_title(name), [as_finding(one) for one in value]))
        elif isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
            sections.append(_table(name, value))
        elif isinstance(value, Mapping):
            sections += _of_mapping(name, value)
        else:
            facts.append((_title(name), _cell(value)))
    if facts:
        sections.append(Facts("Facts", pairs=facts))
    return Document(title=title, outcome=_outcome(data, verdict), sections=sections)


def _word(data: Mapping[str, Any]) -> str:
    found = data.get("verdict")
    if isinstance(found, str):
        return found
    return "best" if data.get("best") else ""


def _outcome(data: Mapping[str, Any], verdict: str) -> Outcome:
    findings = [one for name in _FINDINGS for one in _listed(data, name)]
    count = f"{len(findings):,} finding{'s' * (len(findings) > 1)}" if findings else "no finding"
    if not verdict:
        return Outcome("report", f"{count[0].upper()}{count[1:]}.", Tone.PLAIN)
    tones = ((_GOOD, Tone.GOOD), (_OPEN, Tone.WARNING), (_BAD, Tone.BAD))
    tone = next((tone for words, tone in tones if verdict in words), Tone.PLAIN)
    return Outcome(verdict, f"{verdict[:1].upper()}{verdict[1:]}: {count}.", tone)


def _listed(data: Mapping[str, Any], name: str) -> list[Any]:
    found = data.get(name)
    return found if isinstance(found, list) else []


def as_finding(found: Any) -> Finding:
    """A finding of any verb's JSON."""
    one = found if isinstance(found, Mapping) else {"message": str(found)}
    severity = str(one.get("severity") or one.get("level") or "")
    level = Level.ERROR if severity in _ERRORS else Level.WARNING
    level = Level.NOTE if severity in _NOTES else level
    cause = one.get("cause")
    evidence = [
        f"{key}: {one[key]}"
        for key in ("ratio", "value", "limit", "count", "source", "note")
        if one.get(key) not in (None, "")
    ]
    if isinstance(cause, Mapping):
        proved = " (proved)" if cause.get("proved") else ""
        evidence.append(f"cause: {cause.get('id', '')}{proved}")
    return Finding(
        code=str(one.get("code", "")),
        level=level,
        message=str(one.get("message", "")),
        severity=severity,
        location=_location(one),
        evidence=tuple(evidence),
        advice=str(one.get("advice") or ""),
        fix=_fix(one.get("fix")),
    )


def _location(one: Mapping[str, Any]) -> Location:
    file, line = str(one.get("file") or ""), one.get("line")
    where = one.get("where")
    if not file and isinstance(where, str):
        file, _, number = where.rpartition(":")
        line = int(number) if number.isdecimal() else None
        file = file or where
    step = one.get("step", one.get("first_step"))
    return Location(
        file=file,
        line=line if isinstance(line, int) else None,
        column=one.get("column") if isinstance(one.get("column"), int) else None,
        module=one.get("module") if isinstance(one.get("module"), str) else None,
        step=step if isinstance(step, int) else None,
        stage=str(one.get("stage") or ""),
    )


def _fix(found: Any) -> Fix | None:
    if not isinstance(found, Mapping) or not found.get("text"):
        return None
    where = found.get("where")
    return Fix(str(found["text"]), str(where) if where else None)


def _of_mapping(name: str, value: Mapping[str, Any]) -> list[Section]:
    """A nested object: its plain entries as facts, its lists of objects as tables."""
    plain = [(_title(key), _cell(part)) for key, part in value.items() if not _is_table(part)]
    sections: list[Section] = [Facts(_title(name), pairs=plain)] if plain else []
    sections += [
        FindingList(f"{_title(name)}: {key}", [as_finding(one) for one in part])
        if key in _FINDINGS
        else _table(f"{name}: {key}", part)
        for key, part in value.items()
        if _is_table(part)
    ]
    return sections


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    shown = rows[:_MOST_ROWS]
    names = list(dict.fromkeys(key for row in shown for key in row))
    numbers = {key for key in names if all(_is_number(row.get(key)) for row in shown)}
    columns = [
        Column(_title(key), is_number=key in numbers, format=".6g" if key in numbers else "")
        for key in names
    ]
    cells = [[_cell(row.get(key)) for key in names] for row in shown]
    return Table(_title(name), columns=columns, rows=cells, more=len(rows) - len(shown))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return ", ".join(str(_cell(one)) for one in value[:20]) + (" …" if len(value) > 20 else "")
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_cell(part)}" for key, part in list(value.items())[:20])
    return str(value)


def _title(name: str) -> str:
    return name[:1].upper() + name[1:].replace("_", " ")
