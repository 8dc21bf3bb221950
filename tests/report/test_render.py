"""Documents as text, page and SARIF: every kind of section, and names that are hostile."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re

import pytest

from isograd.findings import Finding, Fix, Level, Location, Rule
from isograd.report import document as d
from isograd.report.chart_data import MOST_POINTS, chart_json, chosen_positions
from isograd.report.csv_text import csv_text
from isograd.report.excerpt import excerpt, side_by_side
from isograd.report.finding_text import head_text, location_text
from isograd.report.levels import log_level
from isograd.report.render_html import render_html
from isograd.report.render_sarif import render_sarif
from isograd.report.render_text import render_line, render_text
from isograd.report.tree import tree_rows

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m[bold]"
FINDING = Finding(
    "weight.nonfinite",
    Level.ERROR,
    f"1 of 9 elements is NaN {HOSTILE}",
    "alert",
    Location(f"net{HOSTILE}.py", 54, 3, f"layer{HOSTILE}", 7, "forward"),
    (f"evidence {HOSTILE}",),
    "Lower the learning rate.",
    Fix(f"eps=1e-5 {HOSTILE}", "net.py:54"),
)
AXES = (d.Axis(f"step {HOSTILE}"), d.Axis("loss", "nat"))
SECTIONS = {
    "lines": d.Lines("Lines", [HOSTILE, d.Styled(HOSTILE, d.Tone.BAD)]),
    "facts": d.Facts("Facts", [(HOSTILE, HOSTILE), ("seed", 3)]),
    "table": d.Table(
        "Table",
        (d.Column(HOSTILE, is_code=True), d.Column("self", "s", True, ".2f", has_bar=True)),
        [(HOSTILE, 0.25), (d.Styled("b", link="there"), d.Styled(1.0, d.Tone.GOOD, level=3))],
    ),
    "findings": d.FindingList("Findings", [FINDING]),
    "chart": d.Chart(
        "Chart",
        d.ChartKind.LINE,
        *AXES,
        [d.Series(HOSTILE, [1, 2, 3], [0.5, math.nan, 0.25])],
        [d.ChartMark(2, HOSTILE)],
    ),
    "code": d.Code("Code", f"x = 1\n{HOSTILE}\n", marks=[d.CodeMark(1, 1, 1, label=HOSTILE)]),
    "pair": d.CodePair("Pair", f"a\n{HOSTILE}\n", "a\nb\n", [d.CodeMark(2, text=HOSTILE)]),
    "tree": d.Tree("Tree", [d.TreeNode(f"a.{HOSTILE}", HOSTILE, HOSTILE, 3)]),
    "heat map": d.HeatMap("Heat", [HOSTILE], [HOSTILE], [[1.5]], levels=[[4]]),
    "mosaic": d.Mosaic("Mosaic", [(HOSTILE, 3), ("fine", 0)]),
    "pictures": d.Pictures("Pictures", [d.Picture(HOSTILE, b"\x89PNG", "image/png")]),
    "group": d.Group("Group", [d.Lines("Inner", [HOSTILE])], is_folded=True),
}


def _document(*sections: d.Section, **more: object) -> d.Document:
    outcome = d.Outcome("found", f"Something was found {HOSTILE}.", d.Tone.BAD)
    return d.Document(f"isograd verb {HOSTILE}", outcome, sections, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", SECTIONS)
def test_every_section_is_safe_on_a_page(kind: str) -> None:
    page = render_html(_document(SECTIONS[kind], notes=[HOSTILE], subtitle=HOSTILE))
    assert page.count("<script") == page.count("</script") == 1
    assert "<img src=x" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert SECTIONS[kind].title in page


@pytest.mark.parametrize("kind", SECTIONS)
def test_every_section_is_safe_as_text(kind: str) -> None:
    text = render_text(_document(SECTIONS[kind], notes=[HOSTILE]), width=100)
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert SECTIONS[kind].title in text
    assert text.endswith(render_line(_document()))


def test_the_policy_of_a_page_allows_its_one_script_alone() -> None:
    for sections in ((), (SECTIONS["chart"],)):
        page = render_html(_document(*sections))
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
        script = re.search(r'<script type="module">(.*)</script>', page, re.DOTALL)
        assert policy is not None
        assert script is not None
        digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy[1]
        assert policy[1].startswith("default-src 'none';")
        assert ("uPlot" in script[1].split('"use strict";\n(function')[0]) == bool(sections)


def test_sections_are_drawn_where_they_belong() -> None:
    sections = [
        d.Lines("Everywhere", ["x"]),
        d.Lines("Terminal", ["x"], medium=d.Medium.TEXT),
        d.Lines("Page", ["x"], medium=d.Medium.PAGE),
    ]
    page, text = render_html(_document(*sections)), render_text(_document(*sections))
    assert ["<h2>Terminal" in page, "<h2>Page" in page] == [False, True]
    assert ["Terminal" in text, "Page" in text] == [True, False]


def test_what_is_left_out_is_counted() -> None:
    lines = d.Lines("Names", [f"name{k}" for k in range(25)], more=5)
    text = render_text(_document(lines))
    assert "name19" in text
    assert "name20" not in text
    assert "and 10 more in --json" in text
    assert "name24" in render_text(_document(lines), most=100)
    many = d.Table("Many", (d.Column("n", is_number=True),), [(k,) for k in range(1003)])
    assert "and 3 more in --json" in render_html(_document(many))


def test_long_lists_are_built_only_as_far_as_they_are_drawn() -> None:
    built: list[int] = []

    def build(number: int) -> str:
        built.append(number)
        return f"line {number}"

    render_text(_document(d.Lines("Lazy", d.Lazy(range(100_000), build))))
    assert len(built) == 20


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        pytest.param(Location("a.py", 3, 7), "src/a.py:3:7", id="file, line, column"),
        pytest.param(Location("a.py", 3), "src/a.py:3", id="file and line"),
        pytest.param(Location("a.ipynb", 3, 7, cell=2), "src/a.ipynb:cell 2:3:7", id="notebook"),
        pytest.param(Location(module="net.fc"), "net.fc", id="module"),
        pytest.param(Location(module=""), "the whole network", id="the root"),
        pytest.param(
            Location("a.py", 3, 7, "net.fc", 40, "forward"),
            "net.fc (forward, step 40, src/a.py:3:7)",
            id="all",
        ),
        pytest.param(Location(step=1200), "step 1,200", id="step"),
        pytest.param(Location(), "", id="nothing"),
    ],
)
def test_a_location_in_words(location: Location, expected: str) -> None:
    assert location_text(location, "src") == expected


def test_a_finding_begins_with_its_place_and_code() -> None:
    finding = Finding("hook", Level.WARNING, "the hook is skipped", location=Location("a.py", 3))
    assert head_text(finding) == "a.py:3: hook the hook is skipped"


def test_sarif_has_levels_places_and_help() -> None:
    findings = [
        Finding("hook", Level.WARNING, "skipped", "", Location("dir/a b.py", 3, 7), advice="Do."),
        Finding("other", Level.NOTE, "seen", location=Location(module="fc")),
    ]
    rules = [Rule("hook", "Hooks are skipped.", "Return the value.", "https://example.org/hook")]
    value = json.loads(render_sarif(_document(d.FindingList("All", findings), rules=rules)))
    (run,) = value["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("hook", "warning")
    assert result["message"]["text"] == "skipped Do."
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "dir/a%20b.py"
    assert place["region"] == {"startLine": 3, "startColumn": 7}
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["helpUri"] == "https://example.org/hook"
    assert rule["help"]["text"] == "Return the value."


def test_a_chart_goes_to_its_script_as_plain_numbers() -> None:
    x = d.Axis("epoch", categories=("a", "b", "c", "d"))
    y = d.Axis("loss", "nat", is_log=True)
    values = [2.0, math.nan, 0.0, math.inf]
    chart = d.Chart("", d.ChartKind.LINE, x, y, [d.Series("s", [0, 1, 2, 3], values)])
    value = json.loads(chart_json(chart))
    assert value["series"][0] == {"name": "s", "x": [0, 1, 2, 3], "y": [2.0, None, None, None]}
    assert value["y"] == {"label": "loss, nat", "log": True, "categories": []}
    page = render_html(_document(chart))
    attribute = re.search(r'data-chart="([^"]*)"', page)
    assert attribute is not None
    assert json.loads(html.unescape(attribute[1])) == value


def test_a_long_curve_keeps_its_extremes_and_gaps() -> None:
    values = [float(k % 10) for k in range(100_000)]
    values[31_415], values[27_182], values[55_555] = 1e6, -1e6, math.nan
    chosen = chosen_positions(values)
    assert len(chosen) <= MOST_POINTS + 2
    assert {0, 31_415, 27_182, 55_555, 99_999} <= set(chosen)
    assert chosen == sorted(chosen)


def test_a_tree_adds_what_lies_above_and_shows_the_worst_below() -> None:
    rows = tree_rows([d.TreeNode("a.b.c", level=5), d.TreeNode("a.d", level=0)])
    assert [row.node.path for row in rows] == ["", "a", "a.b", "a.b.c", "a.d"]
    assert [row.below_level for row in rows] == [5, 5, 5, None, None]
    assert sum(row.closes for row in rows) == 2 + 1


def test_a_deep_tree_is_drawn() -> None:
    node = d.TreeNode(".".join(["m"] * 3000), level=8)
    assert render_html(_document(d.Tree("Deep", [node]))).count("<details") == 3000


@pytest.mark.parametrize(
    ("value", "level"),
    [
        pytest.param(None, None, id="unknown is grey"),
        pytest.param(1.0, 0, id="noise"),
        pytest.param(1.01, 1, id="just above"),
        pytest.param(100.0, 4, id="half way"),
        pytest.param(1e9, 8, id="beyond"),
        pytest.param(math.nan, 8, id="NaN is the worst"),
    ],
)
def test_levels_of_colour(value: float | None, level: int | None) -> None:
    assert log_level(value, 1.0, 1e4) == level


def test_an_excerpt_shows_marks_with_the_lines_around() -> None:
    text = "\n".join(f"line {k}" for k in range(1, 21))
    code = d.Code("", text, marks=[d.CodeMark(10, 1, 4, label="here")], context=1)
    assert [line.number for line in excerpt(code)] == [0, 9, 10, 11]
    assert [part.text for part in excerpt(code)[2].parts] == ["line", " 10"]


def test_two_texts_side_by_side_line_up() -> None:
    old = "\n".join("abcdefghijk")
    rows = side_by_side(d.CodePair("", old, old.replace("e", "E\nF"), [d.CodeMark(5)], context=1))
    shown = [(row.kind, row.old, row.new) for row in rows]
    assert shown == [
        ("gap", "", ""), ("same", "d", "d"), ("changed", "e", "E"), ("mark", "", ""),
        ("changed", "", "F"), ("same", "f", "f"),
    ]  # fmt: skip


def test_no_cell_of_a_table_is_a_formula() -> None:
    text = csv_text(("name", "shape", "none"), [("=cmd|x", (2, 3), None)])
    assert text == "name,shape,none\n'=cmd|x,2 3,\n"


def test_only_pictures_and_sounds_are_embedded() -> None:
    pictures = [d.Picture("a", b"x", "image/svg+xml"), d.Picture("b", b"x", "image/png")]
    page = render_html(_document(d.Pictures("P", pictures)))
    assert "svg+xml" not in page
    assert "data:image/png;base64,eA==" in page


def test_numbers_that_are_not_finite_sort_without_breaking_the_order() -> None:
    rows = [(math.inf,), (math.nan,), (1.5,)]
    page = render_html(_document(d.Table("T", (d.Column("x", is_number=True),), rows)))
    assert re.findall(r'data-sort="([^"]*)"', page) == ["Infinity", "1.5"]


def test_a_long_cell_that_is_cut_leaves_the_other_columns_their_width() -> None:
    columns = (d.Column("stage"), d.Column("verdict"), d.Column("detail", is_cut=True))
    table = d.Table("Stages", columns, [("parameters", "equivalent", "word " * 40)])
    text = render_text(d.Document("x", d.Outcome("a", "b"), (table,)), width=80)
    row = next(line for line in text.splitlines() if line.startswith("parameters"))
    assert "equivalent   word word" in row
    assert row.endswith("…")
