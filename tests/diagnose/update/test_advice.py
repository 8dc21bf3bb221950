"""Advice about an optimizer is a class to use, by the class that the port uses."""

from __future__ import annotations

import pytest

from isograd.diagnose.update.advice import class_advice, switch_advice
from isograd.diagnose.update.hypotheses import HYPOTHESES
from isograd.frameworks.rules import Kind, Rule

BY_KEY = {member.name: member for member in HYPOTHESES}
ADAM = Rule(Kind.ADAM, (0.01,))
ADAMW = "mindspore.experimental.optim.AdamW"


@pytest.mark.parametrize(
    ("kind", "key", "advice"),
    [
        pytest.param(
            "nn.AdamWeightDecay",
            "no bias correction",
            f"nn.AdamWeightDecay has no bias correction; use {ADAMW}",
            id="a class without bias correction",
        ),
        pytest.param(
            "nn.Adam",
            "eps before correction",
            f"nn.Adam adds eps before the bias correction; use {ADAMW} with weight_decay=0.0",
            id="eps at another place",
        ),
        pytest.param("nn.Adam", "no bias correction", None, id="a class that has it"),
    ],
)
def test_a_class_that_cannot_follow_is_named_with_one_that_does(
    kind: str, key: str, advice: str | None
) -> None:
    assert class_advice(kind, BY_KEY[key], ADAM) == advice


def test_a_port_of_an_unknown_class_is_told_what_its_optimizer_lacks() -> None:
    advice = switch_advice(BY_KEY["no bias correction"], ADAM, is_on=True)
    assert advice == f"use an optimizer with bias correction, as {ADAMW} has it"
