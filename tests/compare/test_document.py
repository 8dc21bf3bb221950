"""Text, JSON and CSV of a comparison, also for hostile names and numbers that are not finite."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from isograd.compare.data import COLUMNS
from isograd.compare.document import document
from isograd.compare.files.curve_model import LossLog
from isograd.compare.files.curves import compare_curves
from isograd.compare.files.differences import compare_tensors
from isograd.compare.files.model import FilesReport, TensorComparison
from isograd.compare.files.verdicts import TensorVerdict
from isograd.compare.parquet import answer, parquet_bytes
from isograd.compare.table import render_csv
from isograd.errors import UsageError
from isograd.report.render_html import render_html
from isograd.report.render_text import MOST_ENTRIES, render_text
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
    text = render_text(document(report))
    places = [text.index(f"\n{name} ") for name in ("t2", "t3", "t1")]
    assert places == sorted(places)
    assert "First that differs in the order of the first file: t1" in text
    assert "last that agrees before it: t0" in text


def test_many_rows_are_cut_and_said_to_be() -> None:
    report = _report(*(_comparison(f"t{n}", 1.0, n) for n in range(MOST_ENTRIES + 7)))
    assert "and 7 more in --json" in render_text(document(report))


@pytest.mark.parametrize("change", [np.nan, np.inf])
def test_hostile_names_and_numbers(change: float) -> None:
    report = _report(_comparison(HOSTILE, change, 0))
    text = render_text(document(report))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "NaN" not in report.to_json()
    assert json.loads(report.to_json())["tensors"][0]["reference"] == HOSTILE
    page = render_html(document(report))
    assert HOSTILE not in page
    assert page.count("</script>") == 1, "only the page's own"
    assert "level-8" in page
    rows = list(csv.reader(io.StringIO(render_csv(report))))
    assert rows[0] == list(COLUMNS)
    assert len(rows[1]) == len(COLUMNS)
    assert rows[1][COLUMNS.index("reference")].startswith("'=")


def test_the_page_has_a_heat_map_and_histograms() -> None:
    report = _report(*(_comparison(f"t{n}", change, n) for n, change in enumerate((0, 0.25, 9, 3))))
    page = render_html(document(report))
    assert page.count('class="chart small"') == 4, "one for each of three tensors, and one of all"
    assert "&#34;x&#34;:[-2.0],&#34;y&#34;:[4.0]" in page
    assert page.count('number heat level-0"') >= 6
    loads = re.findall(r"""(?:src|href)=["'](?!#)[^"']*|url\([^)]*|@import[^;]*""", page)
    assert loads == []


def test_ranks_have_a_table() -> None:
    report = _report(_comparison("rank0/a", 0, 0), _comparison("rank1/a", 2, 1))
    assert [(rank.rank, rank.identical, rank.differing) for rank in report.ranks] == [
        (0, 1, 0), (1, 0, 1),
    ]  # fmt: skip
    assert "first that differs" in render_text(document(report))
    value = json.loads(report.to_json())
    assert value["ranks"][1]["counts"]["differs"] == 1
    assert value["ranks"][1]["first_differing"] == "rank1/a"
    assert "rank1/a" in render_html(document(report))


def test_parquet_and_questions(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    comparisons = [_comparison(f"rank{n}/{HOSTILE}", n, n) for n in range(3)]
    missing = TensorComparison("alone", "", TensorVerdict.MISSING, 3)
    file = tmp_path / "re'sult.parquet"
    file.write_bytes(parquet_bytes(_report(*comparisons, missing)))
    found = answer(
        "select rank, reference, verdict, greatest_absolute, ulps[5], "
        'histogram_powers, shape_other from result order by "order"',
        [file],
    )
    names, rows = found.names, found.rows
    assert names[:3] == ("rank", "reference", "verdict")
    assert rows[0][:4] == (0, comparisons[0].reference, "identical", 0.0)
    assert rows[2][0] == 2
    assert rows[2][5] == [1]
    assert rows[3][3:] == (None, None, None, [])
    joined = answer("select count(*) from result join result2 using (reference)", [file, file])
    assert joined.rows == ((4,),)
    for question, words in (
        ("select nothing from result", "cannot be answered"),
        ("select * from read_csv('/etc/passwd')", "disabled"),
    ):
        with pytest.raises(UsageError, match=words):
            answer(question, [file])
    (tmp_path / "text").write_text("hello")
    with pytest.raises(UsageError, match="no Parquet file"):
        answer("select 1", [tmp_path / "text"])


def test_a_question_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"isograd\[sql\]"):
        answer("select 1", [Path("x")])


@pytest.mark.parametrize("count", [1, 3, 5000])
def test_the_page_of_loss_curves(count: int) -> None:
    steps = tuple(range(1, count + 1))
    losses = tuple(2.0 / step for step in steps)
    others = tuple(math.nan if step == 3 else 2.2 / step for step in steps)
    name = "<script>alert(1)</script>"
    sides = (LossLog(name, "text", "loss", steps, values) for values in (losses, others))
    page = render_html(document(compare_curves(*sides)))
    assert "<script>" not in page
    assert page.count('class="chart"') == 2
    assert "nan" not in page.lower().split("<script")[0].replace("nan</td>", "")
