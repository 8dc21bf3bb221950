"""A comparison of two loss curves, and an answer to a question in SQL, as documents."""

from __future__ import annotations

from isograd.compare.answer import Answer
from isograd.compare.files.curve_model import LIMIT_PERMILLE, CurvesReport, LossLog
from isograd.report.document import (
    Axis,
    Cell,
    Chart,
    ChartKind,
    ChartMark,
    Column,
    Document,
    Lazy,
    Medium,
    Outcome,
    Series,
    Styled,
    Table,
    Tone,
)
from isograd.report.words import cell_text

#: Steps of a loss curve that are listed, beside those around the first that is out.
MOST_STEPS = 12


def curves_document(report: CurvesReport) -> Document:
    """Two loss curves, their relative difference, and where they part."""
    marks = []
    if report.first_out is not None:
        marks.append(ChartMark(report.steps[report.first_out], "the curves part"))
    limit = ChartMark(LIMIT_PERMILLE, f"limit {LIMIT_PERMILLE:g} ‰", Tone.GOOD, is_level=True)
    columns = [
        Column("step", is_number=True),
        Column("first", is_number=True, format=".6g"),
        Column("second", is_number=True, format=".6g"),
        Column("difference", "‰", is_number=True, format=".3f"),
    ]
    losses = [
        Series(report.first.path, report.steps, report.reference),
        Series(report.second.path, report.steps, report.other),
    ]
    apart = [Series("difference", report.steps, report.permille)]
    step, permille = Axis("step"), Axis("relative difference", "‰", is_log=True)
    chart = Chart("Losses", ChartKind.LINE, step, Axis("loss"), losses, marks, medium=Medium.PAGE)
    notes = list(report.notes)
    for number, which in ((report.only_first, "first"), (report.only_second, "second")):
        if number:
            notes.append(f"{number:,} steps stand in the {which} log only")
    return Document(
        title=f"isograd compare {report.first.path} {report.second.path}",
        subtitle=f"{_log_text(report.first)}; {_log_text(report.second)}",
        outcome=Outcome(
            report.verdict.value,
            _curves_sentence(report),
            Tone.BAD if report.needs_action else Tone.GOOD,
        ),
        sections=[
            chart,
            Chart(
                "Relative difference",
                ChartKind.LINE,
                step,
                permille,
                apart,
                [limit, *marks],
                medium=Medium.PAGE,
            ),
            Table("Steps", columns, [_step(report, place) for place in _shown_places(report)]),
        ],
        notes=notes,
    )


def _curves_sentence(report: CurvesReport) -> str:
    compared = f"{len(report.steps):,} steps compared"
    if report.first_out is None:
        return f"{compared}: {report.explanation}."
    step = report.steps[report.first_out]
    return f"{compared}, the curves part at step {step:,}: {report.explanation}."


def _log_text(log: LossLog) -> str:
    return f"{log.path}: {len(log.steps):,} losses ({log.kind}, {log.series})"


def _step(report: CurvesReport, place: int) -> tuple[Cell, ...]:
    value = report.permille[place]
    tone = Tone.PLAIN if value <= LIMIT_PERMILLE else Tone.BAD
    return (
        report.steps[place],
        report.reference[place],
        report.other[place],
        Styled(value, tone),
    )


def _shown_places(report: CurvesReport) -> list[int]:
    """The first steps, those around the first that is out, and the last."""
    count = len(report.steps)
    wanted = {0, 1, 2, count - 1}
    if report.first_out is not None:
        wanted.update(range(report.first_out - 1, report.first_out + 2))
    spread = max(1, count // MOST_STEPS)
    wanted.update(range(0, count, spread))
    return sorted(place for place in wanted if 0 <= place < count)


def answer_document(answer: Answer) -> Document:
    """A table."""
    columns = [Column(name) for name in answer.names]
    rows = Lazy(answer.rows, lambda row: tuple(_database_text(value) for value in row))
    count = len(answer.rows)
    return Document(
        title=answer.question,
        outcome=Outcome("answered", f"{count:,} row{'' if count == 1 else 's'}.", Tone.GOOD),
        sections=[Table("", columns, rows)],
    )


def _database_text(value: object) -> str:
    if value is None or isinstance(value, (str, int, float)):
        return cell_text(value)
    return str(value)
