"""An error is judged by what rounding explains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isograd.noise.envelope import Comparison, Measured, compare, errors_against, measured
from isograd.tensors import TensorValue, tensor_value

NAN, INF = math.nan, math.inf


def judged(
    reference: Any, port: Any, noise: float = 0.0, native: Any = None, dtype: str = "float32"
) -> Comparison:
    """A float64 reference with one noisy native run, against a port."""
    reference = np.asarray(reference)
    if native is None:
        native = reference + noise if noise else reference
    native = TensorValue(
        np.asarray(native), dtype if reference.dtype == float else str(reference.dtype)
    )
    raw = errors_against({"x": tensor_value(reference)}, [{"x": native}])
    return compare("x", measured(raw)["x"], tensor_value(np.asarray(port)))


def test_equal_is_within_every_envelope() -> None:
    assert judged([1.0, 2.0], [1.0, 2.0]).ratio == 0.0


def test_the_ratio_is_error_over_the_worst_noisy_run() -> None:
    found = judged(np.zeros(4), np.full(4, 0.3), noise=0.1)
    assert found.ratio == pytest.approx(3.0, rel=1e-6)
    assert found.exceeds(2.9)
    assert not found.exceeds(3.1)


def test_storage_is_always_allowed() -> None:
    values = np.linspace(1, 2, 50)
    assert judged(values, values.astype(np.float32)).ratio < 1.0
    assert judged(values, values.astype(np.float16), dtype="float16").ratio < 1.0
    assert judged(values, values.astype(np.float16)).ratio > 100


@pytest.mark.parametrize(
    ("reference", "port"),
    [
        ([1.0, 2.0], [NAN, 2.0]),
        ([1.0, 2.0], [INF, 2.0]),
        ([INF, 2.0], [-INF, 2.0]),
        ([NAN, 2.0], [1.0, 2.0]),
        ([-INF, 2.0], [0.0, 2.0]),
        ([1.0, 2.0], [-1.0, -2.0]),
        ([0.0, 0.0], [1e-3, 0.0]),
        ([1.0, 2.0], [NAN, NAN]),
        ([1.0], [0.0]),
    ],
)
def test_what_differs_diverges(reference: list[float], port: list[float]) -> None:
    found = judged(reference, port)
    assert found.ratio > 1000
    assert found.evidence.differing >= 1
    assert found.evidence.first_index == (0,)
    assert not math.isnan(found.ratio)


@pytest.mark.parametrize(
    ("reference", "port"),
    [
        ([0.0, 0.0], [0.0, 0.0]),
        ([0.0, 0.0], [0.0, -0.0]),
        ([0.0], [1e-39]),
        ([NAN, 1.0], [NAN, 1.0]),
        ([INF, 1.0], [INF, 1.0]),
        ([-INF, 1.0], [-1e9, 1.0]),
        ([-1e4, 1.0], [-INF, 1.0]),
        ([], []),
    ],
)
def test_what_agrees_agrees(reference: list[float], port: list[float]) -> None:
    found = judged(np.array(reference, float), np.array(port, float))
    assert found.ratio < 1.0
    assert found.evidence.differing == 0
    assert found.evidence.note == ""


def test_evidence_counts_patterns_in_words() -> None:
    assert judged([1.0, 2.0, 3.0], [NAN, 2.0, NAN]).evidence.note == (
        "NaN: 0 in the reference, 2 in the port"
    )
    assert judged([1.0, 2.0], [INF, 2.0]).evidence.note == (
        "+Inf: 0 in the reference, 1 in the port"
    )


def test_evidence_names_the_greatest_difference() -> None:
    reference, port = np.zeros((2, 3)), np.zeros((2, 3))
    port[0, 1], port[1, 2] = 0.5, -3.0
    found = judged(reference, port, noise=1e-6).evidence
    assert (found.differing, found.total, found.first_index) == (2, 6, (0, 1))
    assert (found.greatest_index, found.greatest_reference, found.greatest_port) == (
        (1, 2),
        0.0,
        -3.0,
    )


def test_elements_that_overflow_natively_are_no_fault_of_the_port() -> None:
    found = judged([1e30, 1.0], [1e30, 1.0], native=np.float32([INF, 1.0]))
    assert found.ratio < 1.0
    found = judged([1e30, 1.0], [INF, 1.0], native=np.float32([INF, 1.0]))
    assert found.ratio < 1.0


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool"])
def test_integers_agree_exactly_or_not(dtype: str) -> None:
    values = np.array([0, 1, 1, 0], dtype)
    assert judged(values, values).ratio == 0.0
    assert judged(values, values[[1, 0, 2, 3]]).ratio > 1000


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,)])
def test_scalars_and_empty_tensors(shape: tuple[int, ...]) -> None:
    assert judged(np.ones(shape), np.ones(shape)).ratio == 0.0
    found = judged(np.ones(shape), np.ones(shape) * 2)
    assert found.ratio == 0.0 if 0 in shape else found.ratio > 1000


@pytest.mark.parametrize("port", [np.ones((1, 3)), np.ones(3), np.ones(()), np.ones((3, 3, 1))])
def test_nothing_is_broadcast(port: Any) -> None:
    with pytest.raises(ValueError, match="shapes"):
        compare("x", Measured(np.ones((3, 3)), "float32", 1.0), tensor_value(port))


def test_bfloat16_is_judged_by_its_own_precision() -> None:
    reference = np.linspace(1, 2, 64)
    bits = reference.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    stored = bits.view(np.float32)
    assert judged(reference, stored, native=stored, dtype="bfloat16").ratio <= 1.0
    assert judged(reference, stored).ratio > 1000


@given(
    arrays.arrays(np.float64, (3, 4), elements=st.floats(-10, 10)),
    st.integers(0, 11),
    st.sampled_from([NAN, INF, -INF, 1e6]),
)
@settings(max_examples=60, deadline=None)
def test_one_wrong_element_anywhere_is_found(values: Any, place: int, wrong: float) -> None:
    port = values.copy()
    port.flat[place] = wrong
    found = judged(values, port)
    assert found.ratio > 1000
    assert found.evidence.differing >= 1


def test_runs_of_another_shape_or_without_the_tensor_are_left_out() -> None:
    reference = {"x": tensor_value(np.zeros(2))}
    runs = [{"x": tensor_value(np.ones(3))}, {}, {"x": tensor_value(np.ones(2))}]
    assert errors_against(reference, runs)["x"].greatest == pytest.approx(math.sqrt(2))
