"""A scan as one HTML page with the source annotated: no network, no script, safe for any name."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from isograd.report import scan_text
from isograd.report.html import page_template
from isograd.scan.listing import read_lines
from isograd.scan.model import FileScan, ScanReport, Use
from isograd.scan.summary import STATUSES, Summary
from isograd.version import __version__

#: Above so many lines only the surroundings of findings are shown, in lines.
MOST_LINES = 20_000
CONTEXT = 2
#: Files with source in the page; the tables and the JSON report have them all.
MOST_FILES = 400
#: Longest part of a line that is shown, in characters.
LONGEST = 400
_NAME = re.compile(r"[\w.]+")
_ORDER = ("missing", "differs", "unknown", "supported")


@dataclass(frozen=True)
class Segment:
    """A piece of a line; status is empty where it is no use."""

    text: str
    status: str = ""


@dataclass
class Line:
    """A line of source with what is said about it; number 0 stands for lines left out."""

    number: int
    segments: list[Segment] = field(default_factory=list)
    notes: list[tuple[str, str, str]] = field(default_factory=list)
    status: str = ""


@dataclass(frozen=True)
class Listing:
    """One file, or one cell of a notebook, as the page shows it."""

    title: str
    anchor: str
    lines: list[Line]


def render_html(report: ScanReport, summary: Summary) -> str:
    """The report as the text of an HTML page; reads the scanned files again for their source."""
    wanted = {item.file for item in summary.per_file[:MOST_FILES]}
    is_whole = summary.lines <= MOST_LINES
    listings: list[Listing] = []
    for position, scan in enumerate(report.files):
        if scan.file in wanted:
            listings += _listings(Path(report.path), scan, position, is_whole)
    return page_template("scan.html.jinja").render(
        report=report,
        summary=summary,
        version=__version__,
        head=scan_text.head_line(report, summary),
        knowledge=scan_text.knowledge_line(report),
        sentence=scan_text.sentence(summary),
        statuses=STATUSES,
        costs=summary.costs[: scan_text.MOST_COSTS],
        listings=listings,
        left_out=max(0, len(summary.per_file) - MOST_FILES),
        anchors={scan.file: f"file-{position}" for position, scan in enumerate(report.files)},
    )


def _listings(root: Path, scan: FileScan, position: int, is_whole: bool) -> list[Listing]:
    uses: dict[int, dict[int, list[Use]]] = defaultdict(lambda: defaultdict(list))
    notes: dict[int, dict[int, list[tuple[str, str, str]]]] = defaultdict(lambda: defaultdict(list))
    for use in scan.uses:
        uses[use.cell][use.line].append(use)
    for hazard in scan.hazards:
        notes[hazard.cell][hazard.line].append((hazard.code, hazard.message, hazard.advice))
    listings = []
    for cell, lines in read_lines(root, scan.file).items():
        if cell and not uses[cell] and not notes[cell]:
            continue
        title = f"{scan.file}, cell {cell}" if cell else scan.file
        anchor = f"file-{position}-{cell}" if cell else f"file-{position}"
        shown = [
            _line(number, text, uses[cell].get(number, []), notes[cell].get(number, []))
            for number, text in enumerate(lines, 1)
        ]
        listings.append(Listing(title, anchor, shown if is_whole else _excerpt(shown)))
    return listings


def _line(number: int, text: str, uses: list[Use], hazards: list[tuple[str, str, str]]) -> Line:
    line = Line(number)
    text = text[:LONGEST] + ("…" if len(text) > LONGEST else "")
    position = 0
    for use in sorted(uses, key=lambda item: item.column):
        start = use.column - 1
        found = _NAME.match(text, start)
        if found is not None and start >= position:
            line.segments.append(Segment(text[position:start]))
            line.segments.append(Segment(found.group(), use.answer.status))
            position = found.end()
    line.segments.append(Segment(text[position:]))
    line.segments = [
        Segment(segment.text.replace("\t", "    ").rstrip("\r\n"), segment.status)
        for segment in line.segments
    ]
    seen = set()
    for use in uses:
        answer = use.answer
        if answer.status == "supported" or answer in seen:
            continue
        seen.add(answer)
        target = f" → {answer.target}" if answer.target else ""
        more = " ".join(part for part in (answer.note, answer.advice) if part)
        line.notes.append((answer.status, f"{answer.api}{target}", more))
    line.notes += [("hazard", f"{code}: {message}", advice) for code, message, advice in hazards]
    kinds = [use.answer.status for use in uses]
    line.status = next((status for status in _ORDER if status in kinds), "")
    return line


def _excerpt(lines: list[Line]) -> list[Line]:
    """Lines with something to say, and a few around them."""
    kept: set[int] = set()
    for position, line in enumerate(lines):
        if line.notes:
            kept.update(range(max(0, position - CONTEXT), min(len(lines), position + CONTEXT + 1)))
    found: list[Line] = []
    before = -1
    for position in sorted(kept):
        if position != before + 1:
            found.append(Line(0))
        found.append(lines[position])
        before = position
    return found
