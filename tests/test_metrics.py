"""Norms of what is finite, patterns of what is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isograd.metrics import (
    as_float64,
    difference,
    norm,
    patterns,
    relative_gap,
    rounding_floor,
)

NAN, INF = math.nan, math.inf

ordinary = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=0, max_dims=3, max_side=4),
    elements=st.floats(-100, 100),
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, -2.0, 0.0], [0, 0, 0]),
        ([1.0, NAN, INF, -INF], [0, 1, 2, 3]),
        ([0.5, -1e4], [0, 3]),
        ([0.5, -1e9], [0, 3]),
        ([0.5, -65504.0], [0, 3]),
        ([0.5, float(np.finfo(np.float32).min)], [0, 3]),
        ([NAN, NAN], [1, 1]),
        ([-INF, -INF], [3, 3]),
        ([2e4, 3e4, -1e4], [0, 0, 0]),
        ([1e300, 1e300], [0, 0]),
        ([], []),
    ],
)
def test_patterns(values: list[float], expected: list[int]) -> None:
    assert patterns(np.array(values)).tolist() == expected


@pytest.mark.parametrize("first", [-1e4, -1e9, -INF, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("second", [-1e4, -1e9, -INF, float(np.finfo(np.float32).min)])
def test_masked_is_masked_however_it_is_written(first: float, second: float) -> None:
    found = difference(np.array([1.0, first, 2.0]), np.array([1.0, second, 2.0]))
    assert (found.pattern_mismatches, found.error, found.finite) == (0, 0.0, 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [(NAN, 1.0), (INF, 1.0), (-INF, 1.0), (INF, -INF), (INF, NAN), (-1e9, 0.0), (-INF, NAN)],
)
def test_other_patterns_differ_both_ways(first: float, second: float) -> None:
    for a, b in ((first, second), (second, first)):
        found = difference(np.array([0.5, a]), np.array([0.5, b]))
        assert found.pattern_mismatches == 1
        assert found.total == 2
        assert math.isfinite(found.error)


@given(ordinary)
@settings(max_examples=60, deadline=None)
def test_a_tensor_does_not_differ_from_itself(values: Any) -> None:
    found = difference(values, values.copy())
    assert (found.error, found.pattern_mismatches) == (0.0, 0)
    assert found.finite == found.total == values.size


@given(ordinary)
@settings(max_examples=60, deadline=None)
def test_a_flipped_sign_is_an_error_of_twice_the_size(values: Any) -> None:
    found = difference(values, -values)
    assert found.error == pytest.approx(2 * found.size, rel=1e-12)
    assert found.size == pytest.approx(float(np.linalg.norm(values.ravel())), rel=1e-12)


@given(ordinary, st.floats(-8, 8))
@settings(max_examples=60, deadline=None)
def test_the_error_is_that_of_numpy(values: Any, shift: float) -> None:
    found = difference(values, values + shift)
    expected = float(np.linalg.norm((values - (values + shift)).ravel()))
    assert found.error == pytest.approx(expected, rel=1e-12, abs=1e-150)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e150, 1e300])
def test_norms_neither_overflow_nor_vanish(scale: float) -> None:
    assert norm(np.array([3.0, 4.0]) * scale) == pytest.approx(5.0 * scale, rel=1e-12)


def test_norm_of_nothing_and_of_zeros() -> None:
    assert norm(np.zeros(0)) == norm(np.zeros(3)) == 0.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8", "bool"])
def test_every_dtype_is_compared_in_float64(dtype: str) -> None:
    values = np.array([0, 1, 1], dtype)
    assert as_float64(values).dtype == np.float64
    assert difference(values, values).error == 0.0
    assert difference(values, values[::-1]).error == pytest.approx(math.sqrt(2))


def test_large_integers_keep_their_difference() -> None:
    assert difference(np.array([2**52]), np.array([2**52 + 1])).error == 1.0


def test_complex_numbers_are_pairs() -> None:
    found = difference(np.array([1 + 1j]), np.array([1 + 2j]))
    assert (found.error, found.total) == (1.0, 2)


@pytest.mark.parametrize(
    ("dtype", "unit"), [("float32", 2.0**-24), ("float16", 2.0**-11), ("bfloat16", 2.0**-8)]
)
def test_storing_costs_a_unit_of_the_dtype(dtype: str, unit: float) -> None:
    assert rounding_floor(8.0, 4, dtype) == pytest.approx(8 * unit, rel=1e-12)
    assert rounding_floor(0.0, 4, dtype) > 0.0


@pytest.mark.parametrize(
    ("first", "second", "gap"),
    [
        ([0.0, -INF], [0.0, -INF], 0.0),
        ([0.0, -INF], [-INF, 0.0], INF),
        ([3.0, 4.0, NAN], [3.0, 4.5, NAN], 0.1),
        ([3.0, 4.0, INF], [3.0, 4.0, 5.0], INF),
    ],
)
def test_the_gap_of_arrays_with_masks(first: list[float], second: list[float], gap: float) -> None:
    assert relative_gap(np.array(first), np.array(second)) == pytest.approx(gap)
