"""Hypotheses about functions and about rules of optimizers have one shape."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from isograd.diagnose.hypothesis import Hypothesis, Number, Scale
from isograd.diagnose.library import all_hypotheses
from isograd.diagnose.update.hypotheses import HYPOTHESES as RULES

FUNCTIONS = tuple(all_hypotheses().values())
_NUMBERS = [
    pytest.param(number, id=f"{one.name}: {number.name}")
    for one in (*FUNCTIONS, *RULES)
    for number in one.numbers
]


@pytest.mark.parametrize("system", [FUNCTIONS, RULES], ids=["functions", "rules"])
def test_a_name_means_one_hypothesis(system: tuple[Hypothesis, ...]) -> None:
    assert all(isinstance(one, Hypothesis) for one in system)
    assert [name for name, count in Counter(one.name for one in system).items() if count > 1] == []


@pytest.mark.parametrize("one", [*FUNCTIONS, *RULES], ids=lambda one: one.name)
def test_a_cause_id_is_a_subject_and_a_word(one: Hypothesis) -> None:
    assert re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", one.id)


@pytest.mark.parametrize("number", _NUMBERS)
def test_a_search_starts_where_the_scale_reaches(number: Number) -> None:
    assert number.grid
    for value in (*number.grid, *number.usual):
        assert number.from_scale(number.to_scale(value)) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("scale", "place", "value"),
    [
        pytest.param(Scale.LOG, -200.0, 1.804851387845415e-35, id="a logarithm ends at e**-80"),
        pytest.param(Scale.LOGIT, 200.0, 1.0 - 2.06e-9, id="a share stays below one"),
        pytest.param(Scale.LINEAR, -200.0, -200.0, id="a plain number has no end"),
    ],
)
def test_a_search_ends_where_arithmetic_does(scale: Scale, place: float, value: float) -> None:
    assert Number("x", (1.0,), scale).from_scale(place) == pytest.approx(value, rel=1e-9)
