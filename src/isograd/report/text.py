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

from isograd.model import Cause, LossCurves, StageVerdict, Verdict, VerifyReport
from isograd.report import wording
from isograd.report.wording import printable

#: Further findings that are listed; the JSON report has them all.
MOST_FINDINGS = 20
#: Steps of the loss curves that are listed, and gaps and notes.
MOST_STEPS = 10
MOST_GAPS = 20

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
    """The report as lines of text; tables fit the width, in characters."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    _sides(console, report)
    _stages(console, report)
    _first(console, report)
    _further(console, report)
    _gaps(console, report)
    _losses(console, report.losses)
    _notes(console, report)
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
    table.add_column("detail", overflow="fold")
    for result in report.stages:
        table.add_row(
            result.stage.value,
            Text(result.verdict.value, style=_STAGE_STYLES[result.verdict]),
            f"{result.checked:,}",
            wording.seconds_text(result.elapsed_s),
            Text(printable(result.detail)),
        )
    console.print(table)


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
    is_answer = line.lstrip().startswith(("cause:", "fix:"))
    text = Text(line, style="bold" if is_answer and not style else style)
    if cause is not None and is_answer:
        shown = wording.id_text(cause)
        at = line.rfind(shown)
        if at >= 0:
            text.stylize("not bold dim", at, at + len(shown))
    console.print(text, soft_wrap=True)


def _further(console: Console, report: VerifyReport) -> None:
    findings = wording.further_findings(report)
    if not findings:
        return
    write_line(console, wording.further_title(report), "bold")
    for stage, group in wording.by_stage(findings[:MOST_FINDINGS]).items():
        write_line(console, f"  {stage.value}")
        for finding in group:
            style = "" if finding.diverges else "dim"
            line, *why = wording.summary_lines(finding)
            write_line(console, f"    {line}", style)
            for part in why:
                _explained(console, f"      {part}", finding.cause, style)
    _more(console, len(findings) - MOST_FINDINGS)
    console.print()


def _gaps(console: Console, report: VerifyReport) -> None:
    if not report.gaps:
        return
    write_line(console, "Gaps: this could not be compared", "bold yellow")
    for gap in report.gaps[:MOST_GAPS]:
        write_line(console, f"  {gap.stage.value}: {printable(gap.what)}: {printable(gap.why)}")
    _more(console, len(report.gaps) - MOST_GAPS)
    console.print()


def _more(console: Console, number: int) -> None:
    if number > 0:
        write_line(console, f"  and {number:,} more in --json", "dim")


def _losses(console: Console, losses: LossCurves | None) -> None:
    if losses is None or not losses.reference:
        return
    write_line(console, "Loss, each side training on its own", "bold")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("step", "reference", "port", "‰"):
        table.add_column(name, justify="right", no_wrap=True)
    for step in wording.shown_steps(losses, MOST_STEPS):
        is_out = losses.first_step_out is not None and step >= losses.first_step_out
        table.add_row(
            str(step),
            f"{losses.reference[step]:.6f}",
            f"{losses.port[step]:.6f}",
            Text(f"{losses.relative_permille[step]:.3f}", style="red" if is_out else ""),
        )
    console.print(table)
    write_line(console, wording.parting_text(losses))
    console.print()


def _notes(console: Console, report: VerifyReport) -> None:
    for note in report.notes:
        write_line(console, f"Note: {printable(note)}", "dim")
    if report.notes:
        console.print()
