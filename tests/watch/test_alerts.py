"""Every rule speaks in its examples, and stays silent in its counterexamples and in health."""

from __future__ import annotations

from pathlib import Path

import pytest

from isograd.watch.alerts.asked import ASKED_EXAMPLES
from isograd.watch.alerts.documentation import page
from isograd.watch.alerts.library import BY_CODE, RULES
from isograd.watch.alerts.rule import Example, Rule, Severity
from isograd.watch.alerts.training import example, training
from isograd.watch.judge import Alert, Judge
from isograd.watch.settings import RuleSettings, Settings


def alerts_of(example: Example, settings: Settings | None = None) -> tuple[Alert, ...]:
    network, records = example.records()
    judge = Judge(network, settings or Settings())
    for record in records:
        judge.judge(record)
    return judge.alerts


EXAMPLES = [pytest.param(r, e, id=f"{r.code}: {e.text}") for r in RULES for e in r.examples]
COUNTER = [pytest.param(r, e, id=f"{r.code}: {e.text}") for r in RULES for e in r.counterexamples]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_a_rule_speaks_in_its_example(rule: Rule, example: Example) -> None:
    found = [alert for alert in alerts_of(example) if alert.code == rule.code]
    assert found
    assert all(alert.severity is rule.severity for alert in found)
    assert "{" not in found[0].message + found[0].advice


@pytest.mark.parametrize(("rule", "example"), COUNTER)
def test_a_rule_is_silent_in_its_counterexample(rule: Rule, example: Example) -> None:
    assert rule.code not in {alert.code for alert in alerts_of(example)}


@pytest.mark.parametrize("code", sorted(ASKED_EXAMPLES))
def test_a_rule_without_a_default_speaks_once_a_limit_is_set(code: str) -> None:
    violated, kept, example = ASKED_EXAMPLES[code]
    assert BY_CODE[code].is_asked_for
    assert code not in {alert.code for alert in alerts_of(example)}
    for limits, speaks in ((violated, True), (kept, False)):
        settings = Settings({code: RuleSettings(limits)})
        assert (code in {alert.code for alert in alerts_of(example, settings)}) is speaks


def test_a_healthy_training_has_no_alert() -> None:
    network, records = training(400)()
    judge = Judge(network, Settings())
    for record in records:
        judge.judge(record)
    assert [alert.code for alert in judge.alerts] == []


def test_every_rule_has_examples_and_a_source() -> None:
    assert len(BY_CODE) == len(RULES)
    for rule in RULES:
        assert rule.source
        assert rule.code in ASKED_EXAMPLES or (rule.examples and rule.counterexamples), rule.code


def test_all_conditions_of_mindinsight_are_there() -> None:
    peers = {p.split()[1] for rule in RULES for p in rule.peers if p.startswith("MindInsight")}
    wanted = "WI WO WL WS WNC WCL WCS GV GL GE TO TL TS TZ AR TR"
    assert set(wanted.split()) <= peers


def test_occurrences_of_a_condition_are_one_alert() -> None:
    network, records = training(10, learning_rates=(1e-3,), is_accumulated=True)()
    judge = Judge(network, Settings())
    for record in records:
        judge.judge(record)
    (alert,) = judge.alerts
    assert (alert.code, alert.first_step, alert.last_step, alert.count) == (
        "gradient.accumulated", 2, 9, 8,
    )  # fmt: skip
    assert alert.severity is Severity.ALERT


def test_a_spike_names_the_jump_of_the_learning_rate() -> None:
    rates = [(1e-3,) if step < 38 else (0.5,) for step in range(45)]
    jump = example("", 45, loss=lambda s: 1.0 if s < 40 else 90.0, learning_rates=rates.__getitem__)
    (alert,) = [alert for alert in alerts_of(jump) if alert.code == "loss.spike"]
    assert alert.message.endswith("; the learning rate rose from 0.001 to 0.5 at step 38")
    plain = example("", 45, loss=lambda s: 1.0 if s < 40 else 90.0)
    (alert,) = [alert for alert in alerts_of(plain) if alert.code == "loss.spike"]
    assert alert.message.endswith("explains")


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    target = Path(__file__).resolve().parents[2] / "docs" / "alerts.md"
    if request.config.getoption("--refresh-goldens"):
        target.write_text(page(), encoding="utf-8")
    assert target.read_text(encoding="utf-8") == page(), (
        "docs/alerts.md is old: run pytest --refresh-goldens and review it"
    )
