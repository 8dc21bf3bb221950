"""What stays together where a mask is drawn along some axes of a tensor."""

from __future__ import annotations

import numpy as np
import pytest

from isograd.frameworks.base import Tensors
from isograd.frameworks.draws import equal_pairs, held_axes
from isograd.tensors import tensor_value

PAIRS = 200


@pytest.mark.parametrize(
    ("drawn", "together"),
    [
        pytest.param((1, 1, 1), {(): 0.5, (0,): 0.5, (0, 1): 0.5}, id="for the batch"),
        pytest.param((4, 1, 1), {(): 0.5**4, (0,): 0.5, (0, 1): 0.5}, id="for each sample"),
        pytest.param((4, 5, 1), {(): 0.5**20, (0,): 0.5**5, (0, 1): 0.5}, id="for each channel"),
        pytest.param((4, 5, 6), {(0,): 0.5**30, (0, 1): 0.5**6, (0, 1, 2): 0.5}, id="elements"),
    ],
)
def test_a_part_is_the_same_as_often_as_its_draws_are(
    drawn: tuple[int, ...], together: dict[tuple[int, ...], float]
) -> None:
    def run(seed: int) -> Tensors:
        mask = np.random.default_rng(seed).random(drawn) < 0.5
        return {"output.0": tensor_value(np.where(mask, np.ones((4, 5, 6)), 0.0))}

    counts = equal_pairs(run, {"output.0": (2, 3, 4)}, PAIRS, seed=1)["output.0"]
    shares = dict(zip(held_axes(3), counts, strict=True))
    for held, expected in together.items():
        deviation = 5 * (expected * (1 - expected) / PAIRS) ** 0.5
        assert shares[held] / PAIRS == pytest.approx(expected, abs=deviation + 1e-9)


def test_a_tensor_that_some_runs_leave_out_is_compared_by_being_there() -> None:
    def run(seed: int) -> Tensors:
        is_there = np.random.default_rng(seed).random() < 0.5
        return {"input_of.0.0": tensor_value(np.ones(3))} if is_there else {}

    counts = equal_pairs(run, {"input_of.0.0": (1,)}, PAIRS, seed=1)["input_of.0.0"]
    assert counts[0] / PAIRS == pytest.approx(0.5, abs=0.2)
