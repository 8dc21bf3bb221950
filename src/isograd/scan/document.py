"""A scan as a document: what is supported, what costs most, and every place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from isograd.findings import Finding, Level, Location, Rule
from isograd.report.document import (
    Cell,
    Code,
    CodeMark,
    Column,
    Document,
    FindingList,
    Lazy,
    Medium,
    Outcome,
    Section,
    Styled,
    Table,
    Tone,
)
from isograd.report.words import count_text, seconds_text
from isograd.scan.hazards import CATALOG
from isograd.scan.listing import read_lines
from isograd.scan.model import Answer, FileScan, Hazard, Problem, ScanReport
from isograd.scan.static_graph import PREFIX, static_rules
from isograd.scan.summary import STATUSES, Summary, unread

#: Costs that are listed, files with source in a page, and lines above which a page shows only the
#: surroundings of findings.
MOST_COSTS = 10
MOST_FILES = 400
MOST_LINES = 20_000
CONTEXT = 2
TONES = {
    "supported": Tone.GOOD,
    "differs": Tone.WARNING,
    "missing": Tone.BAD,
    "unknown": Tone.FAINT,
    "hazard": Tone.INFO,
}
_LEVELS = {"missing": Level.ERROR, "differs": Level.WARNING, "unknown": Level.NOTE}
_ORDER = list(Level)
_NAME = re.compile(r"[\w.]+")
_MAPPING = "https://www.mindspore.cn/docs/en/r2.7.1/note/api_mapping/pytorch_api_mapping.html"
_GUIDE = (
    "https://www.mindspore.cn/docs/en/r2.4.10/migration_guide/model_development/model_and_cell.html"
)
_STATIC_GRAPH = "https://www.mindspore.cn/docs/en/master/features/compile/graph_construction.html"
_STATUS_RULES = {
    "missing": "MindSpore has no counterpart of this API of torch.",
    "differs": "MindSpore's counterpart of this API of torch behaves differently.",
    "unknown": "isograd could not tell what this is, or has no knowledge of it.",
}


def document(report: ScanReport) -> Document:
    """The scan for a terminal and for SARIF: the worst findings of all files first."""
    summary = report.summary
    findings = sorted(_findings(report), key=_worst_first)
    return Document(
        title=f"isograd scan {report.path}",
        subtitle=f"{_head(report, summary)}; {_knowledge(report)}",
        outcome=Outcome("scanned", sentence(report), _tone(report)),
        sections=[
            _statuses(summary),
            *_costs(summary),
            FindingList("Findings", Lazy(findings, partial(_build, report)), medium=Medium.TEXT),
        ],
        notes=_notes(report),
        rules=list(_rules()),
        root=_root(report),
    )


def page(report: ScanReport) -> Document:
    """The scan for a page: the counts of each file, and its source with marks."""
    summary = report.summary
    anchors = {scan.file: f"file-{position}" for position, scan in enumerate(report.files)}
    columns = [Column("file", is_code=True)]
    columns += [Column(name, is_number=True) for name in (*STATUSES, "hazards")]
    files: list[tuple[Cell, ...]] = [
        (
            Styled(one.file, link=anchors[one.file]),
            *(one.counts[status] for status in STATUSES),
            one.hazards,
        )
        for one in summary.per_file
    ]
    shown = {one.file for one in summary.per_file[:MOST_FILES]}
    context = None if summary.lines <= MOST_LINES else CONTEXT
    listings = [
        listing
        for scan in report.files
        if scan.file in shown
        for listing in _listings(report, scan, anchors[scan.file], context)
    ]
    is_short = len(listings) <= 3
    plain = document(report)
    problems = [_build(report, one) for one in _problems(report)]
    return replace(
        plain,
        sections=[
            *plain.sections[:-1],
            *([FindingList("Not scanned as it is", problems)] if problems else ()),
            Table("Files", columns, files),
            *(replace(listing, is_folded=not is_short) for listing in listings),
        ],
    )


def sentence(report: ScanReport) -> str:
    """The whole answer in one sentence, and what could not be read."""
    return " ".join(part for part in (_counts(report), _unread(unread(report))) if part)


def _counts(report: ScanReport) -> str:
    summary = report.summary
    share, names = summary.share_of_uses, summary.share_of_names
    hazards = count_text(sum(summary.hazards.values()), "hazard")
    if report.suppressed:
        hazards += f"; {_ignored(report)}"
    if share is None or names is None:
        if unread(report) and not report.files:
            return ""  # nothing was read, so that nothing is known of torch
        return f"No use of torch was found; {hazards}."
    return (
        f"{share:.1%} of uses and {names:.1%} of names are supported as they are; "
        f"{summary.uses['differs']:,} uses differ, {summary.uses['missing']:,} are missing, "
        f"{summary.uses['unknown']:,} are unknown; {hazards}."
    )


def _ignored(report: ScanReport) -> str:
    return f"{count_text(report.suppressed, 'finding')} ignored by comments or options"


def _unread(problems: list[Problem]) -> str:
    """The first file, or part of one, that could not be read: where, and why."""
    if not problems:
        return ""
    first = problems[0]
    cell = f" cell {first.cell}" if first.cell else ""
    line = f":{first.line}" if first.line else ""
    more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    return f"Not read: {first.file}{cell}{line}: {first.message.rstrip('.')}{more}."


def _tone(report: ScanReport) -> Tone:
    return Tone.WARNING if report.needs_action else Tone.GOOD


def _head(report: ScanReport, summary: Summary) -> str:
    cached = ", unchanged since the last scan" if report.is_cached else ""
    return (
        f"{count_text(summary.files, 'file')}, {count_text(summary.lines, 'line')}, "
        f"{seconds_text(report.elapsed_s)} s{cached}"
    )


def _knowledge(report: ScanReport) -> str:
    if not report.mindspore:
        return "the knowledge behind this scan was not executed on this or any device"
    return (
        f"executed on torch {report.torch} and MindSpore {report.mindspore}, {report.device}; "
        "check another device with `python -m isograd.knowledge check`"
    )


def _notes(report: ScanReport) -> list[str]:
    notes = []
    if report.suppressed:
        notes.append(_ignored(report))
    if report.skipped:
        first = ", ".join(report.skipped[:3]) + (" …" if len(report.skipped) > 3 else "")
        notes.append(
            f"{count_text(len(report.skipped), 'path')} skipped because git ignores "
            f"it or --exclude names it: {first}"
        )
    return notes


def _root(report: ScanReport) -> str:
    """What stands before a file's name, so that it opens from here."""
    path = Path(report.path)
    folder = path if path.is_dir() else path.parent
    return "" if folder == Path() else str(folder)


def _statuses(summary: Summary) -> Table:
    uses, names = sum(summary.uses.values()), sum(summary.names.values())
    columns = (
        Column("status"),
        Column("uses", is_number=True),
        Column("share", is_number=True, format=".1%"),
        Column("names", is_number=True),
        Column("share", is_number=True, format=".1%"),
    )
    rows = [
        (
            Styled(status, TONES[status]),
            summary.uses[status],
            summary.uses[status] / uses if uses else None,
            summary.names[status],
            summary.names[status] / names if names else None,
        )
        for status in STATUSES
    ]
    return Table("Uses of torch", columns, rows)


def _costs(summary: Summary) -> list[Section]:
    columns = (
        Column("API or hazard", is_code=True),
        Column("uses", is_number=True),
        Column("status"),
        Column("why"),
    )
    rows = [
        (cost.name, cost.count, Styled(cost.kind, TONES[cost.kind]), _short(cost.text))
        for cost in summary.costs[:MOST_COSTS]
    ]
    return [Table("What costs most", columns, rows)] if rows else []


def _short(text: str) -> str:
    return text if len(text) <= 160 else text[:157] + "…"


#: (level, file, cell, line, column, what): a finding before its words are made.
_Raw = tuple[Level, str, int, int, int, object]


def _findings(report: ScanReport) -> Iterator[_Raw]:
    """Everything but supported uses; of tens of thousands only those that are drawn are built."""
    for scan in report.files:
        for use in scan.uses:
            if use.answer.status != "supported":
                level = _LEVELS[use.answer.status]
                yield (level, scan.file, use.cell, use.line, use.column, use.answer)
        for hazard in scan.hazards:
            level = Level.NOTE if hazard.device else Level.WARNING
            level = Level.ERROR if hazard.is_silent else level
            yield (level, scan.file, hazard.cell, hazard.line, 0, hazard)
    yield from _problems(report)


def _problems(report: ScanReport) -> Iterator[_Raw]:
    for problem in report.problems:
        yield (Level.ERROR, problem.file, problem.cell, problem.line, 0, problem)


def _worst_first(raw: _Raw) -> tuple[int, bool, str, int, int, int]:
    level, file, cell, line, column, what = raw
    return (_ORDER.index(level), isinstance(what, Answer), file, cell, line, column)


def _build(report: ScanReport, raw: _Raw) -> Finding:
    level, file, cell, line, column, what = raw
    where = Location(file, max(line, 1), column or None, cell=cell)
    if isinstance(what, Answer):
        target = f" MindSpore: {what.target}." if what.target else ""
        note = f" {what.note.rstrip('.')}." if what.note else ""
        message = f"{what.api}: {what.status}.{target}{note}"
        return Finding(f"api-{what.status}", level, message, location=where, advice=what.advice)
    code = what.code if isinstance(what, Hazard) else f"file-{what.code}"  # type: ignore[attr-defined]
    message, advice = what.message, what.advice  # type: ignore[attr-defined]
    return Finding(code, level, message, location=where, advice=advice)


def _rules() -> Iterator[Rule]:
    for status, text in _STATUS_RULES.items():
        yield Rule(f"api-{status}", text, "The message names the counterpart.", _MAPPING)
    for code, rule in CATALOG.items():
        yield Rule(code, rule.message.replace("{api}", "this API"), rule.advice, _GUIDE)
    for static in static_rules():
        yield Rule(PREFIX + static.code, static.message, static.advice, _STATIC_GRAPH)


def _listings(report: ScanReport, scan: FileScan, anchor: str, context: int | None) -> list[Code]:
    """One file, or each cell of a notebook, as marked source; it is read again."""
    found = []
    for cell, lines in read_lines(Path(report.path), scan.file).items():
        marks = list(_marks(scan, cell, lines))
        if cell and not marks:
            continue
        title = f"{scan.file}, cell {cell}" if cell else scan.file
        found.append(
            Code(
                title,
                "\n".join(line.rstrip("\r\n") for line in lines),
                marks=marks,
                context=context,
                anchor=f"{anchor}-{cell}" if cell > 1 else anchor,
            )
        )
    return found


def _marks(scan: FileScan, cell: int, lines: list[str]) -> Iterator[CodeMark]:
    seen = set()
    for use in scan.uses:
        if use.cell != cell or not 0 < use.line <= len(lines):
            continue
        answer = use.answer
        name = _NAME.match(lines[use.line - 1], use.column - 1)
        label = text = ""
        if answer.status != "supported" and (use.line, answer) not in seen:
            seen.add((use.line, answer))
            label = f"{answer.api} → {answer.target}" if answer.target else answer.api
            text = " ".join(part for part in (answer.note, answer.advice) if part)
        length = len(name.group()) if name is not None else 0
        yield CodeMark(use.line, use.column, length, TONES[answer.status], label, text)
    for hazard in scan.hazards:
        if hazard.cell == cell:
            label = f"{hazard.code}: {hazard.message}"
            yield CodeMark(hazard.line, tone=Tone.INFO, label=label, text=hazard.advice)
