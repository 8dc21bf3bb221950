"""What `isograd compare` does besides tensors: loss curves, and questions to earlier results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from isograd.cli.outputs import STANDARD_OUTPUT, write_json
from isograd.cli.screen import show
from isograd.errors import UsageError
from isograd.files import write_text

_STEPS = re.compile(r"(\d*):(\d*)")


def compare_curves(
    inputs: Sequence[str],
    outputs: dict[str, Path | None],
    steps: str | None,
    series: str | None,
    quiet: bool,
) -> int:
    """Compare two logs and write what is asked for; the exit status."""
    from isograd.compare.files.curves import compare_logs
    from isograd.report import compare_curves as curves

    first, second = (Path(name) for name in inputs)
    report = compare_logs(first, second, _span(steps), series)
    if (json_file := outputs["json"]) is not None:
        write_json(json_file, curves.render_json(report))
    if (csv_file := outputs["csv"]) is not None:
        write_json(csv_file, curves.render_csv(report))
    if (html_file := outputs["html"]) is not None:
        from isograd.report.compare_curves_html import render_html

        write_text(html_file, render_html(report))
    show(
        lambda width, colour: (
            curves.render_line(report)
            if quiet
            else curves.render_text(report, width=width, colour=colour)
        ),
        to_error=STANDARD_OUTPUT in outputs.values(),
    )
    return 1 if report.needs_action else 0


def _span(steps: str | None) -> tuple[int, int | None] | None:
    """The first and the last step, both included."""
    if steps is None:
        return None
    found = _STEPS.fullmatch(steps)
    if found is None or steps == ":":
        raise UsageError(f"--steps {steps!r} is no span of steps", "Write FIRST:LAST, as 1:100.")
    first, last = int(found[1] or 0), int(found[2]) if found[2] else None
    if last is not None and last < first:
        raise UsageError(f"--steps {steps} holds no step", "Write FIRST:LAST, as 1:100.")
    return first, last


def ask(question: str, inputs: Sequence[str], outputs: dict[str, Path | None]) -> int:
    """Answer a question to Parquet files as text, JSON or CSV; the exit status."""
    from isograd.report import compare_answer
    from isograd.report.compare_parquet import answer

    if not inputs:
        raise UsageError("--sql is given without a file", "Name a file that --parquet wrote.")
    names, rows = answer(question, [Path(name) for name in inputs])
    if (json_file := outputs["json"]) is not None:
        write_json(json_file, compare_answer.render_json(names, rows))
    if (csv_file := outputs["csv"]) is not None:
        write_json(csv_file, compare_answer.render_csv(names, rows))
    show(
        lambda width, colour: compare_answer.render_text(names, rows, width=width, colour=colour),
        to_error=STANDARD_OUTPUT in outputs.values(),
    )
    return 0
