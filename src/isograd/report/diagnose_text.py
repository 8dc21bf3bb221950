"""The evidence of `isograd diagnose` as text for a terminal or a file."""

from __future__ import annotations

from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from isograd.model import CallDiagnosis, DiagnoseReport, ListedModule, StageDiagnosis
from isograd.report import diagnose_wording as diagnosed
from isograd.report import wording
from isograd.report.text import VERDICT_STYLES, make_console, write_line, written
from isograd.report.wording import printable

#: Tensors of a call and hypotheses of a stage that are listed; the JSON report has them all.
MOST_TENSORS = 12
MOST_ATTEMPTS = 12
#: Calls that are shown in full; what differs comes first.
MOST_CALLS = 4


def render_text(report: DiagnoseReport, *, width: int = 100, colour: bool = False) -> str:
    """The report as lines of text; tables fit the width, in characters."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    write_line(console, f"{printable(report.case)}, seed {report.seed}", "bold")
    for name, side in (("reference", report.reference), ("port", report.port)):
        write_line(console, f"  {name:<10} {wording.side_text(side)}")
    console.print()
    write_line(console, diagnosed.subject_text(report), "bold")
    console.print()
    _calls(console, report)
    _findings(console, report)
    for note in report.notes:
        write_line(console, f"Note: {printable(note)}", "dim")
    if report.notes:
        console.print()
    write_line(console, diagnosed.sentence(report), VERDICT_STYLES[report.verdict])
    return written(stream)


def render_verdict(report: DiagnoseReport) -> str:
    """Only the last line of the report."""
    return diagnosed.sentence(report) + "\n"


def render_list(modules: tuple[ListedModule, ...], *, width: int, colour: bool) -> str:
    """The modules that `--module` takes."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    longest = max((len(printable(module.name)) for module in modules), default=0)
    for module in modules:
        calls = "" if module.calls == 1 else f", called {module.calls:,} times"
        write_line(console, f"{printable(module.name):<{longest}}  {printable(module.kind)}{calls}")
    return written(stream)


def _calls(console: Console, report: DiagnoseReport) -> None:
    ordered = sorted(report.calls, key=lambda c: (not c.stages, not c.differs))
    for call in ordered[:MOST_CALLS]:
        _call(console, report, call)
    rest = len(ordered) - MOST_CALLS
    if rest > 0:
        write_line(console, f"and {wording.count_text(rest, 'call')} more in --json", "dim")
        console.print()


def _call(console: Console, report: DiagnoseReport, call: CallDiagnosis) -> None:
    style = "bold red" if call.differs else ""
    differs = ": differs" if call.differs else ""
    write_line(console, f"{diagnosed.call_title(report, call)}{differs}", style)
    if call.failure:
        write_line(console, f"  could not be judged: {printable(call.failure)}", "bold yellow")
    if call.note:
        write_line(console, f"  {printable(call.note)}")
    if call.tensors:
        console.print(_tensors(call))
        _more(console, len(call.tensors) - MOST_TENSORS)
    else:
        console.print()
    for stage in call.stages:
        _stage(console, report, stage)


def _tensors(call: CallDiagnosis) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("stage", no_wrap=True)
    table.add_column("tensor", overflow="fold")
    table.add_column("differing", justify="right", overflow="fold")
    table.add_column("error", justify="right", no_wrap=True)
    table.add_column("noise", justify="right", no_wrap=True)
    for tensor in diagnosed.shown_tensors(call, MOST_TENSORS):
        style = "bold" if tensor.differs else "dim"
        cells = [Text(cell) for cell in diagnosed.tensor_cells(tensor)]
        table.add_row(tensor.stage.value, *cells, style=style)
    return table


def _stage(console: Console, report: DiagnoseReport, stage: StageDiagnosis) -> None:
    if stage.attempts:
        write_line(console, diagnosed.attempts_title(stage), "bold")
        console.print(_attempts(report, stage))
        _more(console, len(stage.attempts) - MOST_ATTEMPTS)
    for line in diagnosed.outcome_lines(stage):
        is_answer = line.startswith(("cause:", "fix:", "strongest hypothesis:"))
        write_line(console, f"  {line}", "bold" if is_answer else "")
    console.print()


def _attempts(report: DiagnoseReport, stage: StageDiagnosis) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", expand=True)
    table.add_column("hypothesis", overflow="fold", ratio=3)
    table.add_column("where", overflow="fold", ratio=1)
    table.add_column("alpha", no_wrap=True)
    table.add_column("residual", justify="right", no_wrap=True)
    table.add_column("accepted", no_wrap=True)
    for attempt in stage.attempts[:MOST_ATTEMPTS]:
        style = "bold" if attempt.is_named else "" if attempt.accepted else "dim"
        table.add_row(
            Text(f"{printable(attempt.id)}\n  {printable(attempt.text)}"),
            Text(diagnosed.attempt_place(report, attempt)),
            Text(diagnosed.alpha_text(attempt)),
            Text(diagnosed.residual_text(attempt)),
            Text(diagnosed.standing(attempt, stage).replace(", ", ",\n  ")),
            style=style,
        )
    return table


def _findings(console: Console, report: DiagnoseReport) -> None:
    for finding in report.findings:
        write_line(console, wording.headline(finding), "bold red" if finding.diverges else "")
        for line in wording.explanation(finding, is_first=False):
            write_line(console, f"  {line}")
    if report.findings:
        console.print()


def _more(console: Console, number: int) -> None:
    if number > 0:
        write_line(console, f"  and {number:,} more in --json", "dim")
        console.print()
