"""A report as text for a terminal or a file.

rich draws the tables and the colours; every other line is printed unbroken, so that it can be
searched and copied.  Names are passed as plain text and never read as markup.
"""

from __future__ import annotations

from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isograd.model import Cause, StageVerdict, Verdict, VerifyReport
from isograd.report import wording
from isograd.report.first_screen import shown
from isograd.report.wording import printable

#: Characters of the table of stages beside its last column.
_BESIDE_DETAIL = 50
_STAGE_STYLES = {
    StageVerdict.EQUIVALENT: "green",
    StageVerdict.DIVERGENT: "bold red",
    StageVerdict.SKIPPED: "dim",
    StageVerdict.ERROR: "bold yellow",
}
VERDICT_STYLES = {
    Verdict.EQUIVALENT: "bold green",
    Verdict.DIVERGENT: "bold red",
    Verdict.INCOMPLETE: "bold yellow",
}


def render_text(report: VerifyReport, *, width: int = 100, colour: bool = False) -> str:
    """The report as one screen of text; tables fit the width, in characters."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    _sides(console, report)
    _stages(console, report)
    _first(console, report)
    fits = shown(report)
    _further(console, report, fits.findings)
    _initial(console, report, fits.initial)
    _gaps(console, report, fits.gaps)
    if report.losses is not None and fits.losses:
        write_line(console, wording.losses_sentence(report.losses))
        console.print()
    _notes(console, report, fits.notes)
    left_out = fits.left_out(report)
    if left_out:
        write_line(console, left_out, "dim")
        console.print()
    write_line(console, wording.verdict_sentence(report), VERDICT_STYLES[report.verdict])
    return written(stream)


def render_verdict(report: VerifyReport) -> str:
    """Only the last line of the report."""
    return wording.verdict_sentence(report) + "\n"


def make_console(stream: StringIO, width: int, colour: bool) -> Console:
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


def written(stream: StringIO) -> str:
    """What a console has drawn, without blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))


def write_line(console: Console, text: str, style: str = "") -> None:
    """One line, unbroken, so that it can be searched and copied."""
    console.print(Text(text, style=style), soft_wrap=True)


def _sides(console: Console, report: VerifyReport) -> None:
    write_line(console, f"{printable(report.case)}, seed {report.seed}", "bold")
    for name, side in (("reference", report.reference), ("port", report.port)):
        write_line(console, f"  {name:<10} {wording.side_text(side)}")
        if side is not None and side.changed:
            write_line(
                console, f"  {'':<10} set for the run: {printable('; '.join(side.changed))}", "dim"
            )


def _stages(console: Console, report: VerifyReport) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("checked", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("detail", no_wrap=True)
    room = max(console.width - _BESIDE_DETAIL, 16)
    for result in report.stages:
        table.add_row(
            result.stage.value,
            Text(result.verdict.value, style=_STAGE_STYLES[result.verdict]),
            f"{result.checked:,}",
            wording.seconds_text(result.elapsed_s),
            Text(_cut(printable(result.detail), room)),
        )
    console.print(table)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _first(console: Console, report: VerifyReport) -> None:
    first = wording.first_finding(report)
    if first is None:
        return
    write_line(console, wording.headline(first), "bold red")
    for line in wording.explanation(first, is_first=True):
        _explained(console, f"  {line}", first.cause)
    console.print()


def _explained(console: Console, line: str, cause: Cause | None, style: str = "") -> None:
    """A line below a headline: cause and fix stand out, the cause's id stands back."""
    is_answer = line.lstrip().startswith(("cause:", "fix:", "look at:"))
    text = Text(line, style="bold" if is_answer and not style else style)
    if cause is not None and is_answer:
        shown = wording.id_text(cause)
        at = line.rfind(shown)
        if at >= 0:
            text.stylize("not bold dim", at, at + len(shown))
    console.print(text, soft_wrap=True)


def _further(console: Console, report: VerifyReport, most: int) -> None:
    findings = wording.further_findings(report)
    if not findings or not most:
        return
    write_line(console, wording.further_title(report), "bold")
    for stage, group in wording.by_stage(findings[:most]).items():
        write_line(console, f"  {stage.value}")
        for finding in group:
            style = "" if finding.diverges else "dim"
            line, *why = wording.summary_lines(finding)
            write_line(console, f"    {line}", style)
            for part in why:
                _explained(console, f"      {part}", finding.cause, style)
    _more(console, len(findings) - most)
    console.print()


def _initial(console: Console, report: VerifyReport, most: int) -> None:
    findings = wording.initial_findings(report)
    if not findings or not most:
        return
    write_line(console, wording.INITIAL_TITLE, "bold")
    for finding in findings[:most]:
        write_line(console, f"  {wording.initial_line(finding)}", "dim")
    _more(console, len(findings) - most)
    console.print()


def _gaps(console: Console, report: VerifyReport, most: int) -> None:
    if not report.gaps or not most:
        return
    write_line(console, "Gaps: this could not be compared", "bold yellow")
    for gap in report.gaps[:most]:
        write_line(console, f"  {gap.stage.value}: {printable(gap.what)}: {printable(gap.why)}")
    _more(console, len(report.gaps) - most)
    console.print()


def _more(console: Console, number: int) -> None:
    if number > 0:
        write_line(console, f"  and {number:,} more in --json and --html", "dim")


def _notes(console: Console, report: VerifyReport, most: int) -> None:
    for note in report.notes[:most]:
        write_line(console, f"Note: {printable(note)}", "dim")
    if most:
        _more(console, len(report.notes) - most)
        console.print()
