"""A layout turns the reference's tensors into the port's and back."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isograd.pairing.layout import Layout, find_layout, match_slots


@given(st.permutations(range(4)), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_layouts_invert(axes: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal((2, 3, 4, 5))
    moved = values.transpose(axes)
    layout = find_layout(values.shape, moved.shape, values, moved)
    assert layout is not None
    np.testing.assert_array_equal(layout.to_port(values), moved)
    np.testing.assert_array_equal(layout.to_reference(moved), values)


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_values_decide_between_equal_sizes(axes: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).standard_normal((3, 2, 2))
    moved = values.transpose(axes)
    if moved.shape == values.shape:
        pytest.skip("equal shapes are taken as they are")
    layout = find_layout(values.shape, moved.shape, values, moved)
    assert layout is not None
    np.testing.assert_array_equal(layout.to_port(values), moved)


@pytest.mark.parametrize(
    ("reference", "port"),
    [((2, 3, 4), (6, 4)), ((2, 3), (2, 3, 1)), ((2, 3), (1, 3, 2)), ((), (1,)), ((0, 3), (3, 0))],
)
def test_flattened_and_squeezed(reference: tuple[int, ...], port: tuple[int, ...]) -> None:
    values = np.arange(float(np.prod(reference))).reshape(reference)
    layout = find_layout(reference, port)
    assert layout is not None
    assert layout.to_port(values).shape == port
    np.testing.assert_array_equal(layout.to_reference(layout.to_port(values)), values)


@pytest.mark.parametrize(
    ("reference", "port"), [((2, 3), (2, 4)), ((), (2,)), ((0,), (1,)), ((4,), (2, 3))]
)
def test_other_sizes_have_no_layout(reference: tuple[int, ...], port: tuple[int, ...]) -> None:
    assert find_layout(reference, port) is None


def slots(reference: list[Any], port: list[Any]) -> list[tuple[int, int]]:
    return [(i, j) for i, j, _ in match_slots(reference, port)]


def test_equal_positions_come_first() -> None:
    same = [np.zeros(3), np.zeros(3)]
    assert slots(same, same) == [(0, 0), (1, 1)]


def test_another_order_is_found_by_shape_and_kind() -> None:
    reference = [np.zeros((2, 3)), np.zeros(4), np.zeros(2, np.int64)]
    port = [np.zeros(2, np.int32), np.zeros(4), np.zeros((2, 3))]
    assert slots(reference, port) == [(0, 2), (1, 1), (2, 0)]


def test_what_lacks_or_is_added_does_not_shift_the_others() -> None:
    hidden, cosines, sines = np.zeros((2, 7, 4)), np.zeros((1, 7, 8)), np.ones((1, 7, 8))
    positions, mask = np.zeros((1, 7), np.int64), np.zeros((2, 1, 7, 7), np.bool_)
    reference, port = [hidden, positions, cosines, sines], [hidden, cosines, sines, mask]
    assert slots(reference, port) == [(0, 0), (2, 1), (3, 2)]
    assert slots([hidden, mask, cosines, sines], port) == [(0, 0), (1, 3), (2, 1), (3, 2)]
    same = [np.zeros(3)] * 4
    assert slots(same, same[:2]) == [(0, 0), (1, 1)]


def test_what_fits_nowhere_is_left_out() -> None:
    assert slots([np.zeros((2, 3))], [np.zeros(7), np.zeros((2, 3))]) == [(0, 1)]
    assert slots([np.zeros(3)], []) == []
    assert slots([], [np.zeros(3)]) == []
    assert slots([np.zeros(3)], [np.zeros(3, np.int64)]) == []


def test_a_wrong_stride_keeps_position() -> None:
    (pair,) = match_slots([np.zeros((1, 2, 8, 8))], [np.zeros((1, 2, 4, 4))])
    assert pair == (0, 0, Layout((1, 2, 8, 8), (1, 2, 8, 8)))
