"""Below the noise: what is left where both sides round the same results at the same places."""

from __future__ import annotations

import numpy as np
import pytest

from isograd.diagnose.common_rounding import without_common_rounding
from isograd.diagnose.matched_filter import deviation_of, project, subtract, weights_of
from isograd.tensors import Array, TensorValue, bfloat16_from_bits

ROWS, WIDTH = 400, 64


def in_bfloat16(values: Array) -> TensorValue:
    """Round to the nearest bfloat16, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    even = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + even) >> np.uint32(16)
    return TensorValue(bfloat16_from_bits(rounded.astype(np.uint16)), "float32")


def exact(seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(ROWS, WIDTH))


def projection(port: TensorValue, change: Array) -> tuple[float, float]:
    base = {"output": exact()}
    found = without_common_rounding({"output": port}, {"output": in_bfloat16(base["output"])}, base)
    assert found is not None
    error = subtract({key: value.values for key, value in found.port.items()}, base)
    weights = weights_of(base)
    direction = {"output": change}
    return (
        project(error, direction, weights),
        deviation_of(found.replicates, direction, weights),
    )


@pytest.mark.parametrize("size", [3e-5, 1e-4, 1e-3])
def test_a_change_far_below_the_rounding_is_there_in_the_mean(size: float) -> None:
    change = size * exact()

    alpha, deviation = projection(in_bfloat16(exact() + change), change)

    assert deviation < 0.15
    assert abs(alpha - 1.0) < 4 * deviation + 0.05


def test_another_kernel_is_no_change() -> None:
    noise = 1e-7 * exact() * np.random.default_rng(1).normal(size=(ROWS, WIDTH))

    alpha, deviation = projection(in_bfloat16(exact() + noise), 1e-4 * exact())

    assert abs(alpha) < 0.02
    assert deviation < 0.02


def test_errors_that_a_row_shares_are_not_taken_for_many() -> None:
    row_noise = 1e-4 * np.random.default_rng(2).normal(size=(ROWS, 1)) * exact()

    alpha, deviation = projection(in_bfloat16(exact() + row_noise), 1e-4 * exact())

    assert abs(alpha) < 4 * deviation
    assert deviation > 0.03


def test_other_places_of_rounding_are_not_common() -> None:
    port = in_bfloat16(in_bfloat16(exact() * 0.3).values / 0.3)

    found = without_common_rounding(
        {"output": port}, {"output": in_bfloat16(exact())}, {"output": exact()}
    )

    assert found is None


def test_equal_nan_and_infinity_are_no_difference() -> None:
    values = np.array([1.0, np.nan, np.inf, -np.inf])
    same = TensorValue(values.astype(np.float32), "float32")

    found = without_common_rounding({"y": same}, {"y": same}, {"y": values})

    assert found is not None
    np.testing.assert_array_equal(found.port["y"].values, values)
