"""Statistics equal numpy's, for every dtype and layout, with and without numba."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isograd.recording import statistics
from isograd.recording.statistics import Statistics, measure, statistics_of
from isograd.tensors import TensorValue, bfloat16_to_bits

DTYPES = ["float64", "float32", "float16", "int64", "int8", "uint8", "uint16", "bool", "complex64"]


@pytest.fixture(params=["fast", "numpy"], autouse=True, scope="module")
def _kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    if request.param == "numpy":
        patch.setattr(statistics, "_kernels", dict)
    else:
        pytest.importorskip("numba")
    yield
    patch.undo()


def expected(values: np.ndarray) -> Statistics:
    wide = np.abs(values) if values.dtype.kind == "c" else values
    wide = wide.astype(np.longdouble)
    finite = wide[np.isfinite(wide)]
    nothing = finite.size == 0
    return Statistics(
        count=values.size,
        nan_count=int(np.isnan(wide).sum()),
        infinity_count=int(np.isinf(wide).sum()),
        minimum=math.nan if nothing else float(finite.min()),
        maximum=math.nan if nothing else float(finite.max()),
        mean=math.nan if nothing else float(finite.mean()),
        norm=float(np.sqrt((finite**2).sum())),
    )


def check(row: tuple[float, ...], values: np.ndarray) -> None:
    found, wanted = Statistics.from_row(row), expected(values)
    assert (found.count, found.nan_count, found.infinity_count) == (
        wanted.count,
        wanted.nan_count,
        wanted.infinity_count,
    )
    np.testing.assert_array_equal([found.minimum, found.maximum], [wanted.minimum, wanted.maximum])
    np.testing.assert_allclose(found.norm, wanted.norm, rtol=1e-12)
    spread = max(abs(wanted.minimum), abs(wanted.maximum))
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12, atol=1e-13 * spread)


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0))
    )
)
def test_equals_numpy(values: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        check(measure(values), values)


@given(arrays.arrays("float32", (4, 6, 5)), st.permutations([0, 1, 2]), st.integers(1, 3))
def test_layout_does_not_matter(values: np.ndarray, order: list[int], stride: int) -> None:
    with np.errstate(all="ignore"):
        view = values.transpose(order)[::stride, ::-1]
        check(measure(view), view)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 1000, 100_003])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_sizes_around_vector_widths(size: int, dtype: str) -> None:
    values = (np.random.default_rng(size).standard_normal(size) * 100).astype(dtype)
    check(measure(values), values)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("special", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("position", [0, 500, 9_999])
def test_one_special_number_is_found(dtype: str, special: float, position: int) -> None:
    values = np.ones(10_000, dtype)
    values[position] = special
    check(measure(values), values)


def test_greatest_and_smallest_numbers() -> None:
    for dtype in (np.float32, np.float64):
        limits = np.finfo(dtype)
        for extreme in (limits.max, limits.tiny, limits.smallest_subnormal):
            values = np.array([extreme, -extreme, extreme], dtype)
            check(measure(values), values)


def test_float32_is_summed_in_float64() -> None:
    values = np.full(1 << 24, 0.1, np.float32)
    values[0] = 1e8
    assert measure(values)[5] == pytest.approx(float(values.astype(np.float64).mean()), rel=1e-9)


def test_bfloat16() -> None:
    values = np.array([1.0, -2.5, 2.0**127, 0.15625], np.float32)
    assert measure(bfloat16_to_bits(values), True) == measure(values)
    assert statistics_of(TensorValue(values, "bfloat16")).maximum == 2.0**127


def test_broadcast_and_read_only() -> None:
    values = np.broadcast_to(np.float32(3.0), (5, 7))
    check(measure(values), values)


def test_misaligned() -> None:
    values = np.zeros(4 * 5 + 1, np.uint8)[1:].view(np.float32)
    values[:] = [1, 2, 3, 4, 5]
    check(measure(values), values)
