"""Any answer of `isograd compare` as CSV."""

from __future__ import annotations

import math

from isograd.compare.answer import Answer
from isograd.compare.data import COLUMNS, row
from isograd.compare.files.curve_model import CurvesReport
from isograd.compare.files.model import FilesReport
from isograd.report.csv_text import csv_text


def render_csv(report: FilesReport | CurvesReport | Answer) -> str:
    """A row per pair or tensor without a partner, per common step, or per row of the answer."""
    if isinstance(report, FilesReport):
        return csv_text(COLUMNS, (row(found) for found in report.comparisons))
    if isinstance(report, CurvesReport):
        rows = zip(report.steps, report.reference, report.other, report.permille, strict=True)
        names = ("step", "reference", "other", "permille")
        return csv_text(names, ([_shown(value) for value in row] for row in rows))
    return csv_text(report.names, report.plain_rows())


def _shown(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)
