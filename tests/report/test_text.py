"""The report of `isograd verify` as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from isograd.model import Cause, Finding, Fix, Gap, Severity, Stage, VerifyReport
from isograd.report.finding_text import finding_lines, head_text
from isograd.report.render_text import render_line, render_text
from isograd.report.words import ratio_text
from isograd.verify.document import document, drawn
from isograd.verify.wording import INITIAL, cause_lines, explanation, place, why_lines

CheckGolden = Callable[[str, str], None]


@pytest.mark.parametrize("name", ["equivalent", "divergent", "incomplete"])
def test_text_is_the_golden_one(
    name: str, request: pytest.FixtureRequest, check_golden: CheckGolden
) -> None:
    check_golden(f"{name}.txt", render_text(document(request.getfixturevalue(f"{name}_report"))))


def test_first_divergence_reads_as_in_the_style_guide(first_finding: Finding) -> None:
    finding = drawn(first_finding, is_first=True)
    assert [head_text(finding), *finding_lines(finding)] == [
        "encoder.layer.3.attn (forward, step 0): outputs differ [forward.output, effective]",
        "12 / 98,304 elements (0.0 %), first at (0, 17, 5)",
        "error 3.1e-02, 41,000 × the rounding noise of this layer",
        "inputs of this layer agree: this is the first divergence",
        "cause: softmax over axis 1 instead of -1 (proved by re-running with the fix)"
        " [softmax.axis]",
        "fix: net_mindspore.py:88",
    ]


def test_an_unknown_cause_is_said_to_be_unknown(first_finding: Finding) -> None:
    lines = explanation(replace(first_finding, cause=None), is_first=True)
    assert "cause: not known to isograd, and it does not guess" in lines


def test_an_unproved_cause_says_how_much_it_explains_and_what_else_it_may_be() -> None:
    cause = Cause(
        "batch_norm.eps",
        1e-05,
        0.001,
        1.0,
        (0.99, 1.01),
        alternatives=("batch_norm.eps <= 2e-3", "batch_norm.mode"),
        text="batch_norm with eps 0.001 instead of 1e-05",
    )
    assert cause_lines(cause) == [
        "cause: batch_norm with eps 0.001 instead of 1e-05"
        " (explains 1.00 of the error, 0.99 to 1.01; not proved on the port) [batch_norm.eps]",
        "cannot be distinguished from: batch_norm.mode",
    ]


def test_a_cause_without_words_is_its_values() -> None:
    assert cause_lines(Cause("linear.bias", "present", "absent")) == [
        "cause: linear.bias is absent in the port, present in the reference"
        " (not proved on the port) [linear.bias]"
    ]
    assert cause_lines(Cause("linear.bias")) == [
        "cause: linear.bias (not proved on the port) [linear.bias]"
    ]


def test_a_further_finding_says_why_and_what_to_change(first_finding: Finding) -> None:
    assert why_lines(first_finding) == [
        "cause: softmax over axis 1 instead of -1 (proved) [softmax.axis]; "
        "fix: net_mindspore.py:88",
    ]
    assert why_lines(replace(first_finding, cause=None)) == ["fix: net_mindspore.py:88"]
    assert why_lines(replace(first_finding, cause=None, fix=None)) == []


def test_findings_without_effect_have_a_heading_of_their_own(
    equivalent_report: VerifyReport, first_finding: Finding
) -> None:
    quiet = replace(first_finding, severity=Severity.BELOW_NOISE)
    text = render_text(document(replace(equivalent_report, findings=(quiet,))))
    assert "Findings that change no result" in text
    assert (
        "encoder.layer.3.attn (forward, step 0): outputs differ, 41,000 × the noise"
        " [forward.output, below-noise]" in text
    )


def test_lists_are_capped_and_say_so(
    divergent_report: VerifyReport, first_finding: Finding
) -> None:
    further = [replace(first_finding, module=f"m{k}", ratio=float(k + 2)) for k in range(50)]
    report = replace(
        divergent_report,
        findings=(first_finding, *further),
        gaps=tuple(Gap(Stage.FORWARD, f"g{k}", "why") for k in range(23)),
    )
    text = render_text(document(report))
    assert "m49 (" in text
    assert "m30 (" not in text
    assert re.search(r"and 4\d more in --json", text)
    assert re.search(r"and [12]\d more in --json", text)


@pytest.mark.parametrize("width", [60, 100, 160])
@pytest.mark.parametrize("count", [0, 1, 3, 400])
def test_the_first_screen_has_40_lines_at_most(
    count: int, width: int, divergent_report: VerifyReport, first_finding: Finding
) -> None:
    initial = replace(
        first_finding, code=INITIAL, severity=Severity.EQUIVALENT, cause=None, ratio=None
    )
    report = replace(
        divergent_report,
        findings=(
            first_finding,
            *(replace(first_finding, module=f"m{k}") for k in range(count)),
            *(replace(initial, module=f"i{k}") for k in range(count)),
        ),
        gaps=tuple(Gap(Stage.FORWARD, f"g{k}", "why") for k in range(count)),
        notes=tuple(f"note {k}" for k in range(count)),
    )
    lines = render_text(document(report), width=width).split("\n")
    assert len(lines) <= 40
    assert ("m0 (" in "\n".join(lines)) == (count > 0)


def test_modules_of_one_line_are_listed_together(first_finding: Finding) -> None:
    several = replace(first_finding, modules=tuple(f"blocks.{k}.attn" for k in range(12)))
    assert place(several) == "blocks.{0..11}.attn (forward, step 0)"


def test_what_cannot_be_applied_is_no_fix(first_finding: Finding) -> None:
    place = Fix("here the port parts from the reference's softmax", "net_mindspore.py:88")
    lines = explanation(replace(first_finding, fix=place), is_first=True)
    assert lines[-1] == (
        "look at: net_mindspore.py:88: here the port parts from the reference's softmax"
    )


def test_worst_findings_of_late_stages_survive_the_cap(
    divergent_report: VerifyReport, first_finding: Finding
) -> None:
    mild = tuple(replace(first_finding, module=f"m{k}", ratio=2.0) for k in range(40))
    late = replace(first_finding, stage=Stage.INFERENCE, module="late", ratio=9e9)
    report = replace(divergent_report, findings=(first_finding, *mild, late))
    assert "late (inference, step 0): outputs differ, 9.0e+09 × the noise" in render_text(
        document(report)
    )


def test_hostile_names_stay_harmless(hostile_report: VerifyReport) -> None:
    text = render_text(document(hostile_report))
    assert "[red]" in text
    assert r"\x1b[31m\n\u202e\ud800" in text
    assert not any(character in text for character in "\x1b\u202e\ud800")


def test_colour_is_written_only_when_asked_for(divergent_report: VerifyReport) -> None:
    assert "\x1b[" not in render_text(document(divergent_report))
    assert "\x1b[1;31m" in render_text(document(divergent_report), colour=True)


def test_long_names_are_never_broken(divergent_report: VerifyReport) -> None:
    name = ".".join(["block"] * 60)
    first = replace(divergent_report.findings[0], module=name)
    report = replace(divergent_report, findings=(first,))
    assert name in render_text(document(report), width=60)


def test_a_report_without_anything_still_renders(equivalent_report: VerifyReport) -> None:
    empty = replace(
        equivalent_report, reference=None, port=None, stages=(), losses=None, modules=()
    )
    assert "did not start" in render_text(document(empty))


def test_verdict_alone_is_the_last_line(divergent_report: VerifyReport) -> None:
    assert render_text(document(divergent_report)).endswith(render_line(document(divergent_report)))


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (0.0, "0"),
        (0.432, "0.43"),
        (3.0, "3"),
        (9.96, "10"),
        (959.0, "960"),
        (41_234.0, "41,000"),
        (2.5e9, "2.5e+09"),
        (float("inf"), "∞"),
        (float("nan"), "not a number"),
    ],
)
def test_ratios_have_two_significant_digits(ratio: float, expected: str) -> None:
    assert ratio_text(ratio) == expected


@pytest.mark.parametrize("severity", [s for s in Severity if s is not Severity.EFFECTIVE])
def test_severities_are_said_in_words(severity: Severity, first_finding: Finding) -> None:
    lines = explanation(replace(first_finding, severity=severity), is_first=False)
    assert any(line.startswith(f"{severity.value}: ") for line in lines)


def test_the_last_line_says_where_and_why_and_what_to_change(
    divergent_report: VerifyReport,
) -> None:
    assert render_line(document(divergent_report)) == (
        "Divergent: 3 differences; the first is encoder.layer.3.attn (forward, step 0): "
        "softmax over axis 1 instead of -1; fix: net_mindspore.py:88.\n"
    )
