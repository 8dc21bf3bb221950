"""Rules: each one speaks of its examples, is silent of its counterexamples, and is documented."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.model import HostLine, Peaks, Phase, Profile
from isograd.profile.rules.catalogue import all_rules, apply_rules
from isograd.profile.rules.documentation import rules_page
from isograd.profile.rules.examples import (
    healthy,
    in_float64,
    in_float64_by_line,
    slow_map,
)
from isograd.profile.rules.making import Call, recording
from isograd.profile.rules.rule import Example, Rule

CASES = [
    pytest.param(rule, example, id=f"{rule.code}: {example.name}")
    for rule in all_rules()
    for example in (*rule.examples, *rule.counterexamples)
]


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_examples(rule: Rule, example: Example) -> None:
    messages = [finding.message for finding in rule.check(analyse(example.profile()))]
    if example.expected:
        assert any(example.expected in message for message in messages)
    else:
        assert messages == []


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_has_both_kinds_of_examples(rule: Rule) -> None:
    assert any(example.expected for example in rule.examples)
    assert rule.counterexamples
    assert all(not example.expected for example in rule.counterexamples)


def test_nothing_is_claimed_of_a_healthy_run() -> None:
    assert apply_rules(analyse(healthy())) == ()


def test_a_slow_pipelines_step_loses_the_lock_that_its_code_keeps() -> None:
    """100 ms: 20 of work, 30 of waiting for the Map, 50 of waiting for the lock that it keeps."""
    parsing = HostLine("data.py:5", "parsed", Phase.FORWARD, False, 60, 0.1, ("loads",), 0.1)
    product = Call("aten::mm", 20.0, "[[512, 512], [512, 512]]")
    run = recording(100.0, [product], data_ms=30.0, lines=[parsing], framework="mindspore")
    found = apply_rules(analyse(replace(run, queues=slow_map().queues)))
    predicted = {one.code: one.what_if.step_s for one in found if one.what_if is not None}
    assert predicted["data.slow_operator"] == pytest.approx(0.02, abs=1e-3)
    assert predicted["data.lock"] == pytest.approx(0.05, abs=1e-3)
    (slow,) = (one for one in found if one.code == "data.slow_operator")
    assert "For 50.0 ms more its threads run instead of the training." in slow.message


@pytest.mark.parametrize(
    ("example", "rate", "won_ms"),
    [
        pytest.param(in_float64, math.nan, 10.0, id="half of 20 ms where nothing was measured"),
        pytest.param(in_float64, 20.0, 16.0, id="products that float32 makes five times as fast"),
        pytest.param(in_float64_by_line, 20.0, 32.0, id="dtypes known by the line only"),
        pytest.param(in_float64, 200.0, 0.0, id="float64 is as fast: nothing can be won"),
    ],
)
def test_float64_loses_what_the_machine_was_measured_to_lose(
    example: Callable[[], Profile], rate: float, won_ms: float
) -> None:
    run = replace(example(), peaks=Peaks(100.0, 10.0, "measured", rate))
    found = [one for one in apply_rules(analyse(run)) if one.code == "operators.float64"]
    assert sum(one.seconds for one in found) * 1e3 == pytest.approx(won_ms, rel=0.01)


@pytest.mark.parametrize(
    ("framework", "pause_ms", "dispatch_ms"),
    [
        pytest.param("torch", 0.085, 10.0, id="torch: 50 µs a call at most"),
        pytest.param("mindspore", 0.085, 17.0, id="MindSpore: 200 µs, so all of the host's 17 ms"),
        pytest.param("mindspore", 0.04, 8.8, id="Python after the last operator is none of it"),
    ],
)
def test_dispatch_is_what_lies_between_its_calls_and_no_more_than_they_can_take(
    framework: str, pause_ms: float, dispatch_ms: float
) -> None:
    call = Call("Mul", 0.004, "[[8], [8]]", count=200, pause_ms=pause_ms)
    run = recording(17.8, [call], framework=framework)
    found = {one.code: one.seconds for one in apply_rules(analyse(run))}
    assert found["host.small_operators"] * 1e3 == pytest.approx(dispatch_ms, abs=0.9)


def test_predictions_lie_within_their_interval() -> None:
    for rule in all_rules():
        for example in rule.examples:
            for finding in rule.check(analyse(example.profile())):
                if finding.what_if is not None:
                    low, high = finding.what_if.interval
                    assert low <= finding.what_if.step_s <= high
                    assert finding.share > 0.05


def test_the_page_of_rules_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "profile-rules.md"
    assert page.read_text(encoding="utf-8") == rules_page()
