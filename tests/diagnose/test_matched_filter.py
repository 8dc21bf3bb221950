"""The projection finds how much of a change is in an error, also far below the noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isograd.diagnose.matched_filter import (
    Projection,
    deviation_of,
    project,
    subtract,
    weights_of,
)

GENERATOR = np.random.default_rng(0)
REFERENCE = {"output.0": GENERATOR.standard_normal((64, 64))}
DIRECTION = {"output.0": 1e-4 * GENERATOR.standard_normal((64, 64))}
WEIGHTS = weights_of(REFERENCE)


@given(st.floats(-3, 3))
def test_alpha_is_the_share_of_the_change(share: float) -> None:
    error = {"output.0": share * DIRECTION["output.0"]}
    assert project(error, DIRECTION, WEIGHTS) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize(("share", "is_there"), [(0.0, False), (1.0, True)])
def test_a_change_below_the_noise_is_seen(share: float, is_there: bool) -> None:
    """Rounding to bfloat16 is thirty times the change, and unrelated to it."""
    noise = 3e-3 * REFERENCE["output.0"] * GENERATOR.uniform(-1, 1, (64, 64))
    replicates = [
        {"output.0": 3e-3 * REFERENCE["output.0"] * GENERATOR.uniform(-1, 1, (64, 64))}
        for _ in range(8)
    ]
    error = {"output.0": noise + share * DIRECTION["output.0"]}
    found = Projection(
        project(error, DIRECTION, WEIGHTS), deviation_of(replicates, DIRECTION, WEIGHTS)
    )
    low, high = found.interval
    assert (low <= 1.0 <= high and found.significance > 3) is is_there
    assert low <= share <= high


def test_masked_and_infinite_elements_have_no_weight() -> None:
    reference = {"x": np.array([1.0, -1e9, np.inf, np.nan, 2.0])}
    assert (weights_of(reference)["x"] > 0).tolist() == [True, False, False, False, True]


def test_small_elements_do_not_decide() -> None:
    weights = weights_of({"x": np.array([1e-30, 1.0, 1.0])})["x"]
    assert weights[0] <= 1000 * weights[1]


def test_nothing_to_project_is_no_number() -> None:
    assert np.isnan(project({"x": np.ones(3)}, {"x": np.zeros(3)}, {"x": np.ones(3)}))


def test_subtract_leaves_out_other_shapes() -> None:
    first = {"a": np.ones(3), "b": np.ones(2), "c": np.ones(1)}
    found = subtract(first, {"a": np.zeros(3), "b": np.zeros(3)})
    assert list(found) == ["a"]
