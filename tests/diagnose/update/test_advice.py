"""Advice about an optimizer is a class to use, by the class that the port uses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isograd.diagnose.update.advice import class_advice, switch_advice
from isograd.diagnose.update.hypotheses import HYPOTHESES
from isograd.diagnose.update.words import _eps
from isograd.frameworks.rules import EpsPlace, Kind, Rule

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


@pytest.mark.parametrize(
    ("kind", "decay", "words"),
    [
        ("experimental.optim.Adam", 0.0, f"use {ADAMW} with amsgrad=True and weight_decay=0.0"),
        ("experimental.optim.Adam", 0.1, "use nn.Adam with use_amsgrad=True"),
        ("nn.Adam", 0.0, None),
        ("experimental.optim.AdamW", 0.0, None),
    ],
)
def test_a_class_that_ignores_amsgrad_is_not_told_to_turn_it_on(
    kind: str, decay: float, words: str | None
) -> None:
    rule = replace(ADAM, amsgrad=True, weight_decay=decay)
    advice = class_advice(kind, BY_KEY["amsgrad"], rule)
    assert advice == (words and f"experimental.optim.Adam ignores amsgrad; {words}")


def test_an_adam_whose_decay_is_in_the_gradient_keeps_it_there() -> None:
    ours = replace(ADAM, weight_decay=0.1)
    words = _eps(ours, replace(ours, eps_place=EpsPlace.RAW))
    assert words.fix.endswith("with weight_decay=0.0 and the decay added to the gradients")


def test_a_port_of_an_unknown_class_is_told_what_its_optimizer_lacks() -> None:
    advice = switch_advice(BY_KEY["no bias correction"], ADAM, is_on=True)
    assert advice == f"use an optimizer with bias correction, as {ADAMW} has it"
