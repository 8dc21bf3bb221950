"""What leaves the envelope of eight runs of a whole pass is measured with more runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from isograd.frameworks.base import Arithmetic
from isograd.noise.envelope import SECOND_LOOK_VARIANTS, Comparison, Errors, Measured, compare
from isograd.tensors import tensor_value
from isograd.verify.end_to_end import PassResult, look_again
from isograd.worker.requests import PassRequest

VALUES = np.linspace(1.0, 2.0, 50)
KEY = "gradient.parameter.weight"


def judged(error: float, allowed: float) -> tuple[PassResult, Comparison]:
    found = tensor_value(VALUES + error / np.sqrt(VALUES.size))
    comparison = compare(KEY, Measured(VALUES, "float32", allowed), found)
    return PassResult({KEY: comparison}, {}, {KEY: allowed}, backward=True), comparison


def session(allowed: float, asked: list[Any]) -> Any:
    def ask(method: Any, request: PassRequest, variants: tuple[Arithmetic, ...]) -> Any:
        asked.append((request.backward, variants))
        return {KEY: Errors(tensor_value(VALUES), "float32", allowed)}

    def pass_request(mode: str, *, backward: bool) -> PassRequest:
        return PassRequest(mode, {}, [], backward)

    return SimpleNamespace(pass_request=pass_request, reference=SimpleNamespace(ask=ask))


@pytest.mark.parametrize(("again", "ratio"), [(4e-4, 2.5), (1e-5, 12.5)])
def test_more_runs_widen_an_envelope_and_never_narrow_it(again: float, ratio: float) -> None:
    whole, before = judged(1e-3, 8e-5)
    assert before.ratio == pytest.approx(12.5, rel=1e-3)
    asked: list[Any] = []
    found = look_again(session(again, asked), "train", whole, ("gradient",))
    assert found.comparisons[KEY].ratio == pytest.approx(ratio, rel=1e-3)
    assert found.allowed[KEY] == max(again, 8e-5)
    assert asked == [(True, SECOND_LOOK_VARIANTS)]


@pytest.mark.parametrize("ratio", [9.0, 150.0], ids=["inside", "far outside"])
def test_what_is_inside_or_far_outside_is_not_measured_again(ratio: float) -> None:
    whole, _ = judged(1e-3, 1e-3 / ratio)
    asked: list[Any] = []
    assert look_again(session(1.0, asked), "train", whole, ("gradient",)) is whole
    assert asked == []


def test_only_the_results_of_the_stage_are_asked() -> None:
    whole, _ = judged(1e-3, 8e-5)
    asked: list[Any] = []
    assert look_again(session(1.0, asked), "eval", whole, ("output",)) is whole
    assert asked == []
