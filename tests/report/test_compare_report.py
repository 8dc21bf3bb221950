"""Text, JSON and CSV of a comparison, also for hostile names and numbers that are not finite."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from isograd.compare.files.differences import compare_tensors
from isograd.compare.files.model import FilesReport, TensorComparison, TensorVerdict
from isograd.report.compare_html import render_html
from isograd.report.compare_json import COLUMNS, render_csv, render_json
from isograd.report.compare_progress import progress_text
from isograd.report.compare_text import MOST_ROWS, render_text
from isograd.tensors import tensor_value

HOSTILE = "=cmd|'\x1b[31m</script>\u202e[bold]"


def _comparison(name: str, change: float, order: int) -> TensorComparison:
    values = np.ones(4, "f4")
    difference = compare_tensors(tensor_value(values), tensor_value((values + change).astype("f4")))
    verdict = TensorVerdict.DIFFERS if difference.outside else TensorVerdict.IDENTICAL
    return TensorComparison(name, name, verdict, order, "name", difference=difference)


def _report(*comparisons: TensorComparison) -> FilesReport:
    return FilesReport("first", "second", comparisons, elapsed_s=0.5, size_bytes=1000)


def test_the_worst_comes_first() -> None:
    report = _report(*(_comparison(f"t{n}", change, n) for n, change in enumerate((0, 1, 9, 3))))
    text = render_text(report)
    places = [text.index(f"\n {name} ") for name in ("t2", "t3", "t1")]
    assert places == sorted(places)
    assert "First that differs in the order of the first file: t1" in text
    assert "last that agrees before it: t0" in text


def test_many_rows_are_cut_and_said_to_be() -> None:
    report = _report(*(_comparison(f"t{n}", 1.0, n) for n in range(MOST_ROWS + 7)))
    assert "and 7 more in --json and --csv" in render_text(report)


@pytest.mark.parametrize("change", [np.nan, np.inf])
def test_hostile_names_and_numbers(change: float) -> None:
    report = _report(_comparison(HOSTILE, change, 0))
    text = render_text(report)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "NaN" not in render_json(report)
    assert json.loads(render_json(report))["tensors"][0]["reference"] == HOSTILE
    page = render_html(report)
    assert HOSTILE not in page
    assert page.count("</script>") == 0
    assert "level-8" in page
    rows = list(csv.reader(io.StringIO(render_csv(report))))
    assert rows[0] == list(COLUMNS)
    assert len(rows[1]) == len(COLUMNS)
    assert rows[1][1].startswith("'=")


def test_progress_has_rate_and_time_left() -> None:
    line = progress_text(10, 40, 2 * 10**9, 8 * 10**9, 2.0)
    assert line == "compare  10 / 40 pairs, 1.00 GB/s, 6 s left"
