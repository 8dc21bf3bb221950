"""A scan as text: what is supported, what costs most, and file by file."""

from __future__ import annotations

from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isograd.report.text import make_console, write_line, written
from isograd.report.wording import count_text, printable, seconds_text
from isograd.scan.model import ScanReport
from isograd.scan.summary import STATUSES, Cost, Summary

#: Rows of each table; the JSON report has them all.
MOST_COSTS = 10
MOST_FILES = 20
MOST_PROBLEMS = 20
STYLES = {"supported": "green", "differs": "yellow", "missing": "bold red", "unknown": "dim"}


def render_text(
    report: ScanReport, summary: Summary, *, width: int = 100, colour: bool = False
) -> str:
    """The report as lines of text; tables fit the width, in characters."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    write_line(console, head_line(report, summary), "bold")
    write_line(console, knowledge_line(report), "dim")
    _statuses(console, summary)
    _costs(console, summary)
    _files(console, summary)
    _problems(console, report)
    write_line(console, sentence(summary), "bold")
    return written(stream)


def render_line(summary: Summary) -> str:
    """Only the last line of the report."""
    return sentence(summary) + "\n"


def head_line(report: ScanReport, summary: Summary) -> str:
    """What was scanned and how long it took."""
    cached = ", unchanged since the last scan" if report.is_cached else ""
    return (
        f"{printable(report.path)}: {count_text(summary.files, 'file')}, "
        f"{count_text(summary.lines, 'line')}, {seconds_text(report.elapsed_s)} s{cached}"
    )


def knowledge_line(report: ScanReport) -> str:
    """What stands behind the answers."""
    if not report.mindspore:
        return "the knowledge behind this scan was not executed on this or any device"
    return (
        f"executed on torch {report.torch} and MindSpore {report.mindspore}, {report.device}; "
        "check another device with `python -m isograd.knowledge check`"
    )


def sentence(summary: Summary) -> str:
    """The whole answer in one sentence."""
    share, names = summary.share_of_uses, summary.share_of_names
    hazards = sum(summary.hazards.values())
    if share is None or names is None:
        return f"No use of torch was found; {count_text(hazards, 'hazard')}."
    return (
        f"{share:.1%} of uses and {names:.1%} of names are supported as they are; "
        f"{summary.uses['differs']:,} uses differ, {summary.uses['missing']:,} are missing, "
        f"{summary.uses['unknown']:,} are unknown; {count_text(hazards, 'hazard')}."
    )


def cost_text(cost: Cost) -> str:
    """The first sentence of why it costs something."""
    text = printable(cost.text)
    return text if len(text) <= 160 else text[:157] + "…"


def _statuses(console: Console, summary: Summary) -> None:
    table = _table("status", ("uses", "share", "names", "share"))
    uses, names = sum(summary.uses.values()), sum(summary.names.values())
    for status in STATUSES:
        table.add_row(
            Text(status, style=STYLES[status]),
            f"{summary.uses[status]:,}",
            _percent(summary.uses[status], uses),
            f"{summary.names[status]:,}",
            _percent(summary.names[status], names),
        )
    console.print(table)


def _costs(console: Console, summary: Summary) -> None:
    if not summary.costs:
        return
    write_line(console, "What costs most", "bold")
    table = _table("API or hazard", ("uses",))
    table.add_column("status", no_wrap=True)
    table.add_column("why", overflow="fold")
    for cost in summary.costs[:MOST_COSTS]:
        style = STYLES.get(cost.kind, "magenta")
        row = (Text(printable(cost.name)), f"{cost.count:,}", Text(cost.kind, style=style))
        table.add_row(*row, Text(cost_text(cost)))
    console.print(table)


def _files(console: Console, summary: Summary) -> None:
    if not summary.per_file:
        return
    table = _table("file", (*STATUSES, "hazards"))
    for item in summary.per_file[:MOST_FILES]:
        counts = [f"{item.counts[status]:,}" for status in STATUSES]
        table.add_row(Text(printable(item.file)), *counts, f"{item.hazards:,}")
    console.print(table)
    rest = len(summary.per_file) - MOST_FILES
    if rest > 0:
        write_line(console, f"and {count_text(rest, 'file')} more in --json", "dim")
        console.print()


def _problems(console: Console, report: ScanReport) -> None:
    for problem in report.problems[:MOST_PROBLEMS]:
        cell = f" cell {problem.cell}" if problem.cell else ""
        place = f"{printable(problem.file)}{cell}" + (f":{problem.line}" if problem.line else "")
        text = f"{place}: {problem.code}: {printable(problem.message)}. {problem.advice}"
        write_line(console, text, "yellow")
    rest = len(report.problems) - MOST_PROBLEMS
    if rest > 0:
        write_line(console, f"and {count_text(rest, 'problem')} more in --json", "dim")
    if report.problems:
        console.print()


def _table(first: str, numbers: tuple[str, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column(first, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _percent(count: int, total: int) -> str:
    return f"{count / total:.1%}" if total else "–"
