"""A conversion as one HTML page, original and port side by side: no network, no script."""

from __future__ import annotations

import difflib
from collections import defaultdict
from dataclasses import dataclass

from isograd.convert.model import ConvertReport, FileConversion, Finding
from isograd.report import convert_text
from isograd.report.html import page_template
from isograd.version import __version__

#: Lines around each change, files with source in the page, rows of its table, letters of a line.
CONTEXT = 4
MOST_FILES = 200
MOST_ROWS = 500
LONGEST = 400


@dataclass(frozen=True)
class Row:
    """A line on both sides; kind: "same", "changed", "gap" or "note" (a finding, in `old`)."""

    kind: str
    old_number: int = 0
    old: str = ""
    new_number: int = 0
    new: str = ""
    level: str = ""


@dataclass(frozen=True)
class Listing:
    """One file with both sides."""

    title: str
    anchor: str
    rows: list[Row]


def render_html(report: ConvertReport) -> str:
    """The report as the text of an HTML page; it needs a report that keeps the texts."""
    files = [file for file in report.files if file.uses or file.findings]
    files.sort(key=lambda file: (-len(file.findings), file.file))
    shown = [file for file in files if file.original is not None][:MOST_FILES]
    anchors = {file.file: f"file-{position}" for position, file in enumerate(shown)}
    return page_template("convert.html.jinja").render(
        report=report,
        version=__version__,
        head=convert_text.head_line(report),
        knowledge=convert_text.knowledge_line(report),
        sentence=convert_text.sentence(report),
        costs=convert_text.costs(report)[:MOST_ROWS],
        files=files[:MOST_ROWS],
        left_out=max(0, len(files) - MOST_ROWS),
        listings=[Listing(file.file, anchors[file.file], side_by_side(file)) for file in shown],
        anchors=anchors,
    )


def side_by_side(file: FileConversion) -> list[Row]:
    """The changed lines of a file with a few around them, and its findings at their lines."""
    old, new = _lines(file.original or ""), _lines(file.port or "")
    notes: dict[int, list[Finding]] = defaultdict(list)
    for finding in file.findings:
        notes[finding.line].append(finding)
    rows = [_note(finding) for finding in notes.pop(0, ())]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for position, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if position or group[0][1]:
            rows.append(Row("gap"))
        for tag, a, b, c, d in group:
            rows += _rows(tag, old[a:b], new[c:d], a, c, notes)
    return rows


def _rows(
    tag: str, old: list[str], new: list[str], a: int, c: int, notes: dict[int, list[Finding]]
) -> list[Row]:
    found: list[Row] = []
    for i in range(max(len(old), len(new))):
        left = (a + i + 1, old[i]) if i < len(old) else (0, "")
        right = (c + i + 1, new[i]) if i < len(new) else (0, "")
        found.append(Row("same" if tag == "equal" else "changed", *left, *right))
        found += [_note(finding) for finding in notes.pop(left[0], ()) if left[0]]
    return found


def _note(finding: Finding) -> Row:
    text = " ".join(part for part in (finding.message, finding.advice) if part)
    return Row("note", old=text, level=finding.level.value)


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    return [line if len(line) <= LONGEST else line[:LONGEST] + "…" for line in lines]
