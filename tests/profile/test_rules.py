"""Rules: each one speaks of its examples, is silent of its counterexamples, and is documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.rules.catalogue import all_rules, apply_rules
from isograd.profile.rules.documentation import rules_page
from isograd.profile.rules.examples import healthy
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
