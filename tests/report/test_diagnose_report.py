"""The evidence of `isograd diagnose` as text, page and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from isograd.model import DiagnoseReport, Fix, ListedModule, ModuleList, Severity, Verdict
from isograd.report.render_html import render_html
from isograd.report.render_text import render_line, render_text
from isograd.verify.diagnose_document import document
from isograd.verify.diagnose_wording import outcome_lines

CheckGolden = Callable[[str, str], None]


@pytest.mark.parametrize("name", ["diagnosed", "agreeing"])
def test_text_is_the_golden_one(
    name: str, request: pytest.FixtureRequest, check_golden: CheckGolden
) -> None:
    check_golden(
        f"{name}.txt", render_text(document(request.getfixturevalue(f"{name}_report")), width=120)
    )


def test_json_is_the_golden_one(
    diagnosed_report: DiagnoseReport, check_golden: CheckGolden
) -> None:
    text = diagnosed_report.to_json()
    assert text.isascii()
    check_golden("diagnosed.json", text)


def test_the_page_holds_calls_and_hypotheses(diagnosed_report: DiagnoseReport) -> None:
    page = render_html(document(diagnosed_report))
    for words in ("call 1 of 3, given the results of", "batch_norm.eps", "explains it too"):
        assert words in page


def test_hostile_names_stay_harmless(hostile_diagnosis: DiagnoseReport) -> None:
    page, text = render_html(document(hostile_diagnosis)), render_text(document(hostile_diagnosis))
    assert page.count("<script") == 1
    for shown in (page, text):
        assert not any(character in shown for character in "\x1b\u202e\ud800")
    json.loads(hostile_diagnosis.to_json(), parse_constant=pytest.fail)


def test_the_last_line_says_what_differs_and_why(diagnosed_report: DiagnoseReport) -> None:
    assert render_line(document(diagnosed_report)) == (
        "norm differs: batch normalisation with eps 0.001 instead of 1e-05; fix: net.py:48.\n"
    )
    assert render_text(document(diagnosed_report)).endswith(render_line(document(diagnosed_report)))


def test_the_last_line_without_a_cause(diagnosed_report: DiagnoseReport) -> None:
    report = replace(diagnosed_report, calls=diagnosed_report.calls[1:], findings=())
    assert render_line(document(report)) == (
        "norm differs: the cause is not known to isograd, and it does not guess; fix: net.py:48.\n"
    )
    told = replace(diagnosed_report, calls=())
    assert render_line(document(told)) == "norm differs: dropout zeroes 50.0%.\n"


def test_the_last_line_of_what_could_not_be_judged(diagnosed_report: DiagnoseReport) -> None:
    report = replace(
        diagnosed_report, verdict=Verdict.INCOMPLETE, calls=diagnosed_report.calls[2:], module=""
    )
    assert render_line(document(report)) == (
        "the whole network could not be judged: construct() raised ValueError.\n"
    )


def test_a_cause_within_the_noise_is_said_to_be_so(diagnosed_report: DiagnoseReport) -> None:
    stage = replace(diagnosed_report.calls[0].stages[0], severity=Severity.BELOW_NOISE)
    assert outcome_lines(stage)[0] == "below-noise: differs by less than rounding does"


def test_why_nothing_was_tried_is_said(diagnosed_report: DiagnoseReport) -> None:
    stage = diagnosed_report.calls[1].stages[0]
    assert outcome_lines(stage) == [
        "no hypothesis of isograd applies to this code",
        "cause: not known to isograd, and it does not guess",
        "fix: net.py:48: the port builds this module here",
    ]
    asked = replace(stage, note="could not be asked", fix=Fix("here"))
    assert outcome_lines(asked) == ["could not be asked", "fix: here"]


def test_modules_are_listed_for_the_option() -> None:
    modules = (ListedModule("network", "Net", 1), ListedModule("cell", "LSTMCell", 1200))
    lines = render_text(document(ModuleList("case.toml", modules))).splitlines()
    assert lines[-1] == "2 modules; give one to --module."
    assert [line.split() for line in lines if "Net" in line or "LSTM" in line] == [
        ["network", "Net", "1"],
        ["cell", "LSTMCell", "1,200"],
    ]


def test_colour_is_written_only_when_asked_for(diagnosed_report: DiagnoseReport) -> None:
    assert "\x1b[" not in render_text(document(diagnosed_report))
    assert "\x1b[1" in render_text(document(diagnosed_report), colour=True)
