"""A comparison of two loss curves as text, JSON (`isograd/compare-curves/1`) and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from isograd.compare.files.curve_model import LIMIT_PERMILLE, CurvesReport, CurveVerdict, LossLog
from isograd.report.json import plain_value
from isograd.report.text import make_console, write_line, written
from isograd.report.wording import printable

SCHEMA = "isograd/compare-curves/1"
#: Steps of the table, beside the first that is out.
MOST_STEPS = 12


def render_text(report: CurvesReport, *, width: int = 100, colour: bool = False) -> str:
    """The report as lines of text."""
    stream = StringIO()
    console = make_console(stream, width, colour)
    for name, log in (("first", report.first), ("second", report.second)):
        write_line(console, f"{name:<7} {_log_text(log)}", "bold")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("step", "first", "second", "‰"):
        table.add_column(name, justify="right", no_wrap=True)
    for place in shown_places(report):
        value = report.permille[place]
        style = "" if value <= LIMIT_PERMILLE else "red"
        table.add_row(
            f"{report.steps[place]:,}",
            f"{report.reference[place]:.6g}",
            f"{report.other[place]:.6g}",
            Text(f"{value:.3f}", style=style),
        )
    console.print(table)
    for note in notes(report):
        write_line(console, f"Note: {printable(note)}", "dim")
    style = "bold green" if report.verdict is CurveVerdict.AGREE else "bold red"
    write_line(console, sentence(report), style)
    return written(stream)


def render_line(report: CurvesReport) -> str:
    """Only the last line of the report."""
    return sentence(report) + "\n"


def sentence(report: CurvesReport) -> str:
    """The verdict in one sentence."""
    compared = f"{len(report.steps):,} steps compared"
    if report.first_out is None:
        return f"{compared}: {report.explanation}."
    step = report.steps[report.first_out]
    return f"{compared}, the curves part at step {step:,}: {report.explanation}."


def notes(report: CurvesReport) -> list[str]:
    """What else a person should know."""
    found = list(report.notes)
    for number, which in ((report.only_first, "first"), (report.only_second, "second")):
        if number:
            found.append(f"{number:,} steps stand in the {which} log only")
    return found


def shown_places(report: CurvesReport) -> list[int]:
    """The first steps, those around the first that is out, and the last."""
    count = len(report.steps)
    wanted = {0, 1, 2, count - 1}
    if report.first_out is not None:
        wanted.update(range(report.first_out - 1, report.first_out + 2))
    spread = max(1, count // MOST_STEPS)
    wanted.update(range(0, count, spread))
    return sorted(place for place in wanted if 0 <= place < count)


def render_json(report: CurvesReport) -> str:
    """The report as JSON text in ASCII, with null for every number that is not finite."""
    value = {"schema": SCHEMA, **asdict(report), "needs_action": report.needs_action}
    out = report.first_out
    value["first_step_out"] = None if out is None else report.steps[out]
    value["limit_permille"] = LIMIT_PERMILLE
    return json.dumps(plain_value(value), indent=1, allow_nan=False) + "\n"


def render_csv(report: CurvesReport) -> str:
    """One row per common step."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("step", "reference", "other", "permille"))
    for row in zip(report.steps, report.reference, report.other, report.permille, strict=True):
        writer.writerow([value if math.isfinite(value) else repr(value) for value in row])
    return stream.getvalue()


def _log_text(log: LossLog) -> str:
    steps = f"{len(log.steps):,} losses ({log.kind}, {log.series})"
    return f"{printable(log.path)}, {printable(steps)}"
