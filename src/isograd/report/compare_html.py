"""A comparison of two sets of tensors as one HTML page with heat maps and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from isograd.compare.files.model import FilesReport, TensorComparison
from isograd.report import compare_text
from isograd.report.html import page_template
from isograd.version import __version__

#: Cells of the overview, rows of the heat map and of the table, and histograms; the JSON report
#: has them all.
MOST_CELLS = 5000
MOST_LAYERS = 400
MOST_ROWS = 500
MOST_HISTOGRAMS = 40
#: Relative error of the first level of colour above "identical"; each further level is ten times.
_FIRST_LEVEL = -7
#: Ulps of the first level above 0, in powers of ten.
_FIRST_ULPS = 0
#: Size of a histogram, in CSS pixels, and the most bars that it has.
BAR_WIDTH, BAR_HEIGHT, MOST_BARS = 10, 60, 64

MEASURES = (
    "relative error", "greatest ÷ size", "1 − cosine", "unequal", "outside", "ulps of 99 %",
)  # fmt: skip


def render_html(report: FilesReport) -> str:
    """The report as the text of an HTML page."""
    first = report.first_differing
    worst = compare_text.worst(report)
    counted = [found for found in worst if found.difference and found.difference.histogram]
    shown = [found for found in report.comparisons if found.difference is not None]
    return page_template("compare.html.jinja").render(
        report=report,
        version=__version__,
        sentence=compare_text.sentence(report),
        effort=compare_text.effort(report),
        notes=compare_text.notes(report),
        first=first is not None and not report.is_consecutive,
        first_name="" if first is None else compare_text.pair_name(first),
        explanation=[] if first is None else compare_text.explanation(first),
        order="execution order" if report.knows_order else "the order of the first file",
        cells=[_cell(found) for found in report.comparisons[:MOST_CELLS]],
        cells_left=max(0, len(report.comparisons) - MOST_CELLS),
        measures=MEASURES,
        layers=[_layer(found) for found in shown[:MOST_LAYERS]],
        layers_left=max(0, len(shown) - MOST_LAYERS),
        rows=[_row(found) for found in worst[:MOST_ROWS]],
        rows_left=max(0, len(worst) - MOST_ROWS),
        bar_height=BAR_HEIGHT,
        total=_bars(_added(counted)),
        histograms=[_histogram(found) for found in counted[:MOST_HISTOGRAMS]],
        ranks=report.ranks if len(report.ranks) > 1 else (),
        between=[compare_text.sentence(within) for within in report.between],
    )


def level(found: TensorComparison) -> str:
    """The colour of a tensor: 0 identical, 1 to 8 by its relative error, none without one."""
    difference = found.difference
    if difference is None:
        return "none"
    if difference.is_identical:
        return "0"
    if difference.pattern_mismatches:
        return "8"
    return _level_of(difference.relative_error) if difference.relative_error else "1"


def _level_of(value: float | None, first: int = _FIRST_LEVEL) -> str:
    if value is None:
        return "none"
    if value <= 0.0:
        return "0"
    if not math.isfinite(value):
        return "8"
    return str(min(8, max(1, math.floor(math.log10(value)) - first + 1)))


def _cell(found: TensorComparison) -> dict[str, str]:
    error = "" if found.difference is None else f" {found.difference.relative_error:.3g}"
    name = compare_text.pair_name(found)
    return {"level": level(found), "text": f"{name}: {found.verdict.value}{error}"}


def _layer(found: TensorComparison) -> dict[str, Any]:
    """One row of the heat map: a level and a number for each measure."""
    difference = found.difference
    assert difference is not None
    size = difference.reference_norm / math.sqrt(difference.finite) if difference.finite else 0.0
    if difference.is_identical:
        typical = 0.0
    else:
        typical = difference.greatest_absolute / size if size else math.inf
    total = max(1, difference.total)
    angle = None if difference.cosine is None else 1.0 - difference.cosine
    values = (
        difference.relative_error, typical, angle, difference.unequal / total,
        difference.outside / total,
    )  # fmt: skip
    cells = [{"level": _level_of(value), "text": compare_text.number(value)} for value in values]
    ulps = None if difference.ulps is None else float(difference.ulps[2])
    cells.append({"level": _level_of(ulps, _FIRST_ULPS), "text": compare_text.number(ulps)})
    return {"name": compare_text.pair_name(found), "cells": cells}


def _histogram(found: TensorComparison) -> dict[str, Any]:
    difference = found.difference
    assert difference is not None
    return {"name": compare_text.pair_name(found), **_bars(difference.histogram or ())}


def _added(comparisons: Sequence[TensorComparison]) -> tuple[tuple[int, int], ...]:
    """The histogram of all tensors together."""
    counts: dict[int, int] = {}
    for found in comparisons:
        for power, count in (found.difference and found.difference.histogram) or ():
            counts[power] = counts.get(power, 0) + count
    return tuple(sorted(counts.items()))


def _bars(histogram: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Bars by powers of two, their heights by the logarithm of how many elements there are."""
    if not histogram:
        return {"bars": [], "width": 0, "low": "", "high": ""}
    highest = max(power for power, _ in histogram)
    lowest = max(min(power for power, _ in histogram), highest - MOST_BARS + 1)
    counts: dict[int, int] = {}
    for power, count in histogram:
        counts[max(power, lowest)] = counts.get(max(power, lowest), 0) + count
    most = math.log10(max(counts.values()) + 1)
    bars = [
        {
            "x": (power - lowest) * BAR_WIDTH,
            "height": round(BAR_HEIGHT * math.log10(count + 1) / most, 1),
            "text": f"2^{power} to 2^{power + 1}: {count:,}",
        }
        for power, count in sorted(counts.items())
    ]
    return {
        "bars": bars,
        "width": (highest - lowest + 1) * BAR_WIDTH,
        "low": f"{2.0 ** max(lowest, -1074):.1e}",
        "high": f"{2.0 ** min(highest + 1, 1023):.1e}",
    }


def _row(found: TensorComparison) -> dict[str, str]:
    difference = found.difference
    row = {
        "name": compare_text.pair_name(found),
        "verdict": found.verdict.value,
        "detail": found.detail,
        **dict.fromkeys(("error", "greatest", "at", "outside", "ulps"), ""),
    }
    if difference is not None:
        row["error"] = compare_text.number(difference.relative_error)
        row["greatest"] = compare_text.number(difference.greatest_absolute)
        row["at"] = compare_text.place(difference.greatest_absolute_index)
        row["outside"] = f"{difference.outside:,}"
        row["ulps"] = compare_text.ulps(difference)
    return row
