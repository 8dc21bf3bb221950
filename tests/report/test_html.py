"""The report as a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from isograd import __version__
from isograd.model import ModuleRatio, Stage, VerifyReport
from isograd.report.levels import LEVELS
from isograd.report.render_html import render_html
from isograd.report.tree import tree_rows
from isograd.verify.document import document
from isograd.verify.module_tree import module_nodes, ratio_level

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Balance(HTMLParser):
    """Fails where a tag is closed that is not the innermost open one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _parse(page: str) -> Balance:
    balance = Balance()
    balance.feed(page)
    balance.close()
    assert balance.open == []
    return balance


def _plain(page: str) -> str:
    """The page without what every page has: style, script and version."""
    page = re.sub(r"(<(style|script)[^>]*>).*?(</\2>)", r"\1…\3", page, flags=re.DOTALL)
    page = re.sub(r"sha256-[^']*", "sha256-…", page)
    return page.replace(f"isograd {__version__}", "isograd VERSION")


@pytest.mark.parametrize("name", ["equivalent", "divergent", "incomplete"])
def test_page_is_the_golden_one(
    name: str, request: pytest.FixtureRequest, check_golden: Callable[[str, str], None]
) -> None:
    page = render_html(document(request.getfixturevalue(f"{name}_report")))
    _parse(page)
    check_golden(f"{name}.html", _plain(page))


def test_page_needs_no_network(divergent_report: VerifyReport) -> None:
    page = _plain(render_html(document(divergent_report)))
    assert not re.search(r"https?://|url\(|@import|src=|href=", page)


def test_hostile_names_stay_text(hostile_report: VerifyReport) -> None:
    page = render_html(document(hostile_report))
    parsed = _parse(page)
    assert page.count("<script") == 1
    assert not any(attribute.startswith("on") for attribute in parsed.attributes)
    assert "&lt;script&gt;" in page
    assert not any(character in page for character in "\x1b\u202e\ud800")
    page.encode("utf-8")


def test_deep_names_do_not_exhaust_the_stack(equivalent_report: VerifyReport) -> None:
    name = ".".join(["a"] * 3000)
    report = replace(equivalent_report, modules=(ModuleRatio(name, "K", None, Stage.FORWARD, 2.0),))
    _parse(render_html(document(report)))


def test_tree_holds_the_modules_between_and_their_worst(divergent_report: VerifyReport) -> None:
    rows = {row.node.path: row for row in tree_rows(module_nodes(divergent_report))}
    assert list(rows) == [
        "",
        "conv1",
        "layer1",
        "layer1.0",
        "layer1.0.bn1",
        "layer1.0.relu",
        "fc",
        "encoder",
        "encoder.layer",
        "encoder.layer.3",
        "encoder.layer.3.attn",
    ]
    assert rows["layer1"].node.level is None
    assert rows["layer1"].below_level == ratio_level(959.0)
    assert rows["layer1.0.relu"].node.level is None
    assert rows["layer1.0.bn1"].node.is_marked
    assert len(rows["layer1.0.bn1"].node.chips) == 2
    assert not rows["conv1"].has_children


def test_a_divergent_module_is_never_folded_away(divergent_report: VerifyReport) -> None:
    structural = replace(divergent_report.findings[0], module="a.b.c", ratio=None)
    report = replace(divergent_report, findings=(structural,), modules=())
    rows = {row.node.path: row for row in tree_rows(module_nodes(report))}
    assert all(rows[path].is_open for path in ("", "a", "a.b"))
    assert rows["a.b.c"].node.level == LEVELS


@pytest.mark.parametrize(
    ("ratio", "level"),
    [(None, None), (0.5, 0), (1.0, 0), (1.1, 1), (100.0, 4), (1e4, LEVELS), (float("nan"), LEVELS)],
)
def test_colour_is_logarithmic(ratio: float | None, level: int | None) -> None:
    assert ratio_level(ratio) == level
