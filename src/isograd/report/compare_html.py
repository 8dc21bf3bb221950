"""A comparison of two sets of tensors as one HTML page with a heat map, safe for any name."""

from __future__ import annotations

import math

from isograd import __version__
from isograd.compare.files.model import FilesReport, TensorComparison
from isograd.report import compare_text
from isograd.report.html import page_template

#: Cells of the heat map and rows of the table; the JSON report has them all.
MOST_CELLS = 5000
MOST_ROWS = 500
#: Relative error of the first level of colour above "identical"; each further level is ten times.
_FIRST_LEVEL = -7


def render_html(report: FilesReport) -> str:
    """The report as the text of an HTML page."""
    first = report.first_differing
    worst = compare_text.worst(report)
    return page_template("compare.html.jinja").render(
        report=report,
        version=__version__,
        sentence=compare_text.sentence(report),
        effort=compare_text.effort(report),
        first=first is not None,
        first_name="" if first is None else compare_text.pair_name(first),
        explanation=[] if first is None else compare_text.explanation(first),
        cells=[_cell(found) for found in report.comparisons[:MOST_CELLS]],
        cells_left=max(0, len(report.comparisons) - MOST_CELLS),
        rows=[_row(found) for found in worst[:MOST_ROWS]],
        rows_left=max(0, len(worst) - MOST_ROWS),
    )


def level(found: TensorComparison) -> str:
    """The colour of a tensor: 0 identical, 1 to 8 by its relative error, none without one."""
    difference = found.difference
    if difference is None:
        return "none"
    if difference.is_identical:
        return "0"
    if difference.pattern_mismatches or not math.isfinite(difference.relative_error):
        return "8"
    if difference.relative_error == 0.0:
        return "1"
    power = math.floor(math.log10(difference.relative_error))
    return str(min(8, max(1, power - _FIRST_LEVEL + 1)))


def _cell(found: TensorComparison) -> dict[str, str]:
    error = "" if found.difference is None else f" {found.difference.relative_error:.3g}"
    name = compare_text.pair_name(found)
    return {"level": level(found), "text": f"{name}: {found.verdict.value}{error}"}


def _row(found: TensorComparison) -> dict[str, str]:
    difference = found.difference
    row = {
        "name": compare_text.pair_name(found),
        "verdict": found.verdict.value,
        "detail": found.detail,
        **dict.fromkeys(("error", "greatest", "at", "outside"), ""),
    }
    if difference is not None:
        row["error"] = compare_text.number(difference.relative_error)
        row["greatest"] = compare_text.number(difference.greatest_absolute)
        row["at"] = compare_text.place(difference.greatest_absolute_index)
        row["outside"] = f"{difference.outside:,}"
    return row
