"""A document as text for a terminal or a file.

rich draws the tables and the colours; every other line is printed unbroken, so that it can be
searched and copied.  Names are passed as plain text and never read as markup.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from io import StringIO

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from isograd.findings import Finding, Level
from isograd.report import document as d
from isograd.report.excerpt import excerpt
from isograd.report.finding_text import ANSWERS, finding_lines, head_text
from isograd.report.words import cell_text, more_text, printable

#: Entries of a section on the screen; the JSON report has them all.
MOST_ENTRIES = 20
#: Rows and columns of a heat map, and characters of a sparkline.
MOST_COLUMNS = 8
SPARK_WIDTH = 40

_STYLES = {
    d.Tone.PLAIN: "",
    d.Tone.GOOD: "green",
    d.Tone.WARNING: "yellow",
    d.Tone.BAD: "bold red",
    d.Tone.INFO: "magenta",
    d.Tone.FAINT: "dim",
    d.Tone.STRONG: "bold",
}
_OUTCOMES = {
    d.Tone.GOOD: "bold green",
    d.Tone.WARNING: "bold yellow",
    d.Tone.BAD: "bold red",
}
_LEVELS = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.NOTE: "dim"}


@dataclass(frozen=True)
class _Pen:
    """What draws: the console, the folder of the findings' files, the entries of a section."""

    console: Console
    root: str
    most: int


def render_text(
    document: d.Document, *, width: int = 100, colour: bool = False, most: int = MOST_ENTRIES
) -> str:
    """The document as lines of text; tables fit the width, in characters.

    most: entries of a section that are shown; the others are counted.
    """
    stream = StringIO()
    console = _console(stream, width, colour)
    pen = _Pen(console, document.root, most)
    _line(console, printable(document.title), "bold")
    if document.subtitle:
        _line(console, f"  {printable(document.subtitle)}", "dim")
    for section in document.sections:
        if section.medium is not d.Medium.PAGE:
            _section(pen, section)
    for note in document.notes:
        _line(console, f"Note: {printable(note)}", "dim")
    if document.notes:
        console.print()
    style = _OUTCOMES.get(document.outcome.tone, "bold")
    _line(console, printable(document.outcome.sentence), style)
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))


def render_line(document: d.Document) -> str:
    """Only the last line of the text: the outcome."""
    return printable(document.outcome.sentence) + "\n"


def _console(stream: StringIO, width: int, colour: bool) -> Console:
    """A console that draws into a string; names are never read as markup."""
    return Console(
        file=stream,
        width=max(width, 40),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )


def _line(console: Console, text: str, style: str = "") -> None:
    """One line, unbroken, so that it can be searched and copied."""
    console.print(Text(text, style=style), soft_wrap=True)


def _section(pen: _Pen, section: d.Section) -> None:
    console = pen.console
    if section.most is not None and pen.most == MOST_ENTRIES:
        pen = replace(pen, most=section.most)
    if pen.most == 0:
        return
    if section.title:
        _line(console, printable(section.title), "bold")
    left_out = section.more + _draw(section, pen)
    if left_out > 0:
        _line(console, f"  {more_text(left_out)}", "dim")
    if section.note:
        _line(console, f"  {printable(section.note)}", "dim")
    if not isinstance(section, d.Group):
        console.print()


@singledispatch
def _draw(section: d.Section, pen: _Pen) -> int:
    """Draw a section's content; how many of its entries are left out."""
    raise TypeError(f"{type(section).__name__} has no text")


@_draw.register
def _lines(section: d.Lines, pen: _Pen) -> int:
    for line in section.lines[: pen.most]:
        _line(pen.console, f"  {_plain(line)}", _style(line))
    return len(section.lines) - pen.most


@_draw.register
def _facts(section: d.Facts, pen: _Pen) -> int:
    width = max((len(printable(name)) for name, _ in section.pairs), default=0)
    for name, value in section.pairs:
        _line(pen.console, f"  {printable(name):<{width}}  {_plain(value)}", _style(value))
    return 0


@_draw.register
def _table(section: d.Table, pen: _Pen) -> int:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    shown = [at for at, one in enumerate(section.columns) if not one.is_only_on_page]
    for column in (section.columns[at] for at in shown):
        name = f"{column.name}, {column.unit}" if column.unit else column.name
        table.add_column(
            Text(printable(name)),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            overflow="ellipsis" if column.is_cut else "fold",
        )
    for row in section.rows[: pen.most]:
        cells = ((row[at], section.columns[at]) for at in shown)
        # A column that may not wrap keeps its width, and the others would vanish beside it.
        table.add_row(
            *(
                Text(_plain(cell, one.format), _style(cell), no_wrap=one.is_cut or None)
                for cell, one in cells
            )
        )
    pen.console.print(table)
    return len(section.rows) - pen.most


@_draw.register
def _findings(section: d.FindingList, pen: _Pen) -> int:
    for finding in section.findings[: pen.most]:
        _finding(pen, finding)
    return len(section.findings) - pen.most


def _finding(pen: _Pen, finding: Finding) -> None:
    style = _LEVELS[finding.level]
    _line(pen.console, f"  {head_text(finding, pen.root)}", style)
    for line in finding_lines(finding):
        is_answer = line.startswith(ANSWERS)
        _line(pen.console, f"    {line}", "bold" if is_answer and style != "dim" else "")


@_draw.register
def _chart(section: d.Chart, pen: _Pen) -> int:
    unit = f", {section.y.unit}" if section.y.unit else ""
    width = max((len(printable(one.name)) for one in section.series), default=0)
    for one in section.series[: pen.most]:
        finite = [value for value in one.y if value is not None and math.isfinite(value)]
        if not finite:
            continue
        _line(
            pen.console,
            f"  {printable(one.name):<{width}}  {_spark(one.y, section.y.is_log)}  "
            f"{printable(section.y.label)}{unit} {finite[0]:.4g} → {finite[-1]:.4g}, "
            f"least {min(finite):.4g}, greatest {max(finite):.4g}",
        )
    for mark in section.marks:
        axis = section.y if mark.is_level else section.x
        text = f"  {printable(axis.label)} {mark.at:.6g}: {printable(mark.label)}"
        _line(pen.console, text, _STYLES[mark.tone])
    return len(section.series) - pen.most


def _spark(values: Sequence[float | None], is_log: bool) -> str:
    """A curve in one line of block characters; a gap is a blank."""
    scale: Callable[[float], float] = math.log10 if is_log else float
    width = min(SPARK_WIDTH, len(values))
    chosen = [values[round(k * (len(values) - 1) / max(1, width - 1))] for k in range(width)]
    scaled = [
        scale(value)
        if value is not None and math.isfinite(value) and (value > 0 or not is_log)
        else None
        for value in chosen
    ]
    finite = [value for value in scaled if value is not None]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    span = (high - low) or 1.0
    return "".join(
        " " if value is None else "▁▂▃▄▅▆▇█"[min(7, int(8 * (value - low) / span))]
        for value in scaled
    )


@_draw.register
def _code(section: d.Code, pen: _Pen) -> int:
    lines = excerpt(section)[: pen.most]
    for line in lines:
        number = f"{line.number:>6} │ " if line.number else "     ⋮"
        _line(pen.console, number + "".join(printable(part.text) for part in line.parts))
        for mark in line.marks:
            text = "  ".join(printable(part) for part in (mark.label, mark.text) if part)
            _line(pen.console, f"       │   {text}", _STYLES[mark.tone])
    return 0


@_draw.register
def _pair(section: d.CodePair, pen: _Pen) -> int:
    import difflib

    old, new = section.old.splitlines(), section.new.splitlines()
    for line in difflib.unified_diff(old, new, n=section.context, lineterm=""):
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
        _line(pen.console, f"  {printable(line)}", style)
    return 0


@_draw.register
def _tree(section: d.Tree, pen: _Pen) -> int:
    for node in section.nodes[: pen.most]:
        chips = ", ".join(f"{chip.label} {chip.text}" for chip in node.chips)
        depth = node.path.count(".") + bool(node.path)
        name = node.path.rpartition(".")[2] or section.root
        parts = (name, node.kind, node.detail, chips)
        text = "  ".join(printable(part) for part in parts if part)
        _line(pen.console, f"  {'  ' * depth}{text}", "bold red" if node.is_marked else "")
    return len(section.nodes) - pen.most


@_draw.register
def _graph(section: d.Graph, pen: _Pen) -> int:
    for side in section.sides:
        counts = f"{len(side.nodes):,} modules and operations, {len(side.edges):,} connections"
        _line(pen.console, f"  {printable(side.title)}: {counts}")
    return 0


@_draw.register
def _heat_map(section: d.HeatMap, pen: _Pen) -> int:
    shown = section.columns[:MOST_COLUMNS]
    columns = [d.Column("", is_code=True)]
    columns += [d.Column(name, section.unit, is_number=True) for name in shown]
    rows = [
        (name, *values[: len(shown)])
        for name, values in zip(section.rows, section.values, strict=True)
    ]
    return _table(d.Table("", tuple(columns), rows), pen)


@_draw.register
def _mosaic(section: d.Mosaic, pen: _Pen) -> int:
    marked = [name for name, level in section.cells if level is None or level > 0]
    text = f"  {len(marked):,} of {len(section.cells):,} stand out"
    _line(pen.console, text + (f"; the first is {printable(marked[0])}" if marked else ""))
    return 0


@_draw.register
def _pictures(section: d.Pictures, pen: _Pen) -> int:
    for picture in section.pictures[: pen.most]:
        size_kb = len(picture.content) / 1000
        _line(pen.console, f"  {printable(picture.caption)} ({picture.kind}, {size_kb:,.1f} kB)")
    return len(section.pictures) - pen.most


@_draw.register
def _group(section: d.Group, pen: _Pen) -> int:
    for inner in section.sections:
        if inner.medium is not d.Medium.PAGE:
            _section(pen, inner)
    return 0


def _plain(cell: d.Cell, format: str = "") -> str:
    return cell_text(cell.value if isinstance(cell, d.Styled) else cell, format)


def _style(cell: d.Cell) -> str:
    return _STYLES[cell.tone] if isinstance(cell, d.Styled) else ""
