"""The numbers of one pair: every dtype, every edge, and both kernels alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isograd.compare.files.differences import (
    TensorDifference,
    compare_operands,
    compare_tensors,
)
from isograd.compare.files.kernels import kernels
from isograd.compare.files.operands import MASK32, MASK64, Operand
from isograd.compare.files.tally import BLOCK, POWERS, ULP_PLACES
from isograd.compare.files.tolerance import Tolerance, tolerance_for
from isograd.tensors import Array, TensorValue, tensor_value


def _compare(first: object, second: object, dtype: str | None = None) -> TensorDifference:
    return compare_tensors(
        tensor_value(np.asarray(first, dtype)), tensor_value(np.asarray(second, dtype))
    )


def _normal(count: int = 1000, dtype: str = "float32") -> Array:
    return np.random.default_rng(0).standard_normal(count).astype(dtype)


# Every silently wrong verdict of the tools that we measured, each on its own.
WRONG_ELSEWHERE = {
    "tiny values of the other sign": (1e-6 * _normal(), -1e-6 * _normal()),
    "token ids": (np.array([50000]), np.array([50004])),
    "beyond 2**53": (np.array([2**53]), np.array([2**53 + 1])),
    "the imaginary part": (np.array([1 + 2j]), np.array([1 + 3j])),
    "1e-25 and its negative": (np.full(9, 1e-25, "f4"), np.full(9, -1e-25, "f4")),
    "NaN in the middle": (
        np.zeros(10_000),
        np.where(np.arange(10_000) == 5000, np.nan, np.zeros(10_000)),
    ),
    "+inf against -inf": (np.array([1.0, np.inf]), np.array([1.0, -np.inf])),
    "NaN against inf": (np.array([1.0, np.inf]), np.array([1.0, np.nan])),
    "0-d": (np.array(1.0, "f4"), np.array(-1.0, "f4")),
    "all negated": (_normal(), -_normal()),
    "reversed": (_normal(), _normal()[::-1]),
    "half negated": (_normal(), np.where(np.arange(1000) < 500, _normal(), -_normal())),
    "[1, NaN] against [1, 2]": (np.array([1, np.nan]), np.array([1.0, 2.0])),
    "one element of 1000": (_normal(), _normal() + 9e-4 * (np.arange(1000) == 77).astype("f4")),
    "uint8 that wraps": (np.array([0, 255], "u1"), np.array([255, 0], "u1")),
    "40 % wrong": (_normal(), np.where(np.arange(1000) < 400, _normal() + 1, _normal())),
    "a boolean": (np.array([True, False]), np.array([True, True])),
    "uint64 against a negative": (np.array([2**64 - 1], "u8"), np.array([-1])),
}


@pytest.mark.parametrize("case", WRONG_ELSEWHERE)
def test_wrong_verdicts_of_other_tools(case: str) -> None:
    first, second = WRONG_ELSEWHERE[case]
    assert _compare(first, second).outside > 0
    assert _compare(second, first).outside > 0


def test_inf_against_inf_and_nan_against_nan_agree() -> None:
    values = np.array([1.0, np.inf, -np.inf, np.nan], "f4")
    found = _compare(values, values)
    assert found.is_identical
    assert (found.finite, found.nan_reference, found.infinite_other) == (1, 1, 2)


def test_shapes_are_never_broadcast() -> None:
    with pytest.raises(ValueError, match="shapes"):
        _compare(np.zeros((4, 3)), np.zeros(3))


def test_ordinary_half_precision_has_a_cosine() -> None:
    values = _normal(100_000, "float16") * np.float16(100)
    assert _compare(values, values).cosine == pytest.approx(1.0)


@pytest.mark.parametrize(("first", "gap"), [(2**53, 1), (-(2**62), 2**63 - 1), (5, 0)])
def test_wide_integers_are_subtracted_exactly(first: int, gap: int) -> None:
    found = _compare(np.array([0, first]), np.array([0, first + gap]))
    assert found.greatest_absolute == float(gap)
    assert found.unequal == (gap != 0)


def test_extremes_of_integers() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert _compare(np.array([low]), np.array([high])).greatest_absolute == 2.0**64
    mixed = _compare(np.array([-1]), np.array([2**64 - 1], "u8"))
    assert mixed.greatest_absolute == 2.0**64


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3)])
def test_zeros_and_empties_are_identical(dtype: str, shape: tuple[int, ...]) -> None:
    found = _compare(np.zeros(shape, dtype), np.zeros(shape, dtype))
    assert found.is_identical
    assert (found.relative_error, found.cosine, found.snr_db) == (0.0, None, None)


def test_anything_against_zero_is_infinitely_far() -> None:
    found = _compare(np.zeros(5, "f4"), np.full(5, 1e-20, "f4"))
    assert found.relative_error == math.inf
    assert found.greatest_relative == math.inf
    assert found.outside == 5


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_squares_out_of_range(scale: float) -> None:
    values = _normal(20_000, "float64")
    found = _compare(values * scale, -values * scale)
    assert found.relative_error == pytest.approx(2.0)
    assert found.cosine == pytest.approx(-1.0)
    assert found.error_norm == pytest.approx(2 * float(np.linalg.norm(values)) * scale)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_of_complex_numbers_out_of_range(scale: float) -> None:
    values = (np.arange(1, 9) + 1j) * scale
    found = _compare(values, np.conj(values))
    assert found.outside == 8
    assert found.relative_error == pytest.approx(
        _compare(values / scale, np.conj(values) / scale).relative_error
    )


def test_denormals_differ() -> None:
    found = _compare(np.full(4, 1e-310), np.full(4, -1e-310))
    assert found.unequal == 4
    assert found.relative_error == pytest.approx(2.0)


def test_indices_and_values_of_the_greatest() -> None:
    first = np.ones((40, 50), "f4")
    second = first.copy()
    second[7, 11], first[30, 2], second[30, 2] = 3.0, 1e-3, 2e-1
    found = _compare(first, second)
    assert found.greatest_absolute_index == (7, 11)
    assert found.greatest_relative_index == (30, 2)
    assert (found.reference_there, found.other_there) == ("1.0", "3.0")


def test_bfloat16_is_allowed_its_own_steps() -> None:
    values = _normal()
    one, two = TensorValue(values, "bfloat16"), TensorValue(values * np.float32(1.008), "bfloat16")
    assert compare_tensors(one, two).outside == 0
    assert _compare(one.values, two.values).outside > 0


def test_given_tolerance_is_kept_to_the_letter() -> None:
    found = compare_tensors(
        tensor_value(np.array([1.0, 10.0])),
        tensor_value(np.array([1.05, 10.5])),
        Tolerance(absolute=0.1),
    )
    assert (found.outside, found.absolute, found.relative) == (1, 0.1, 0.0)


def test_noise_is_within_and_ten_times_more_is_not() -> None:
    values = _normal(50_000)
    noise = np.random.default_rng(1).standard_normal(50_000)
    assert _compare(values, (values + 1e-6 * noise).astype("f4")).outside == 0
    assert _compare(values, (values + 1e-4 * noise).astype("f4")).outside > 0


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64"])
def test_alignment_in_the_file_does_not_matter(dtype: str, is_compiled: bool) -> None:
    holder = np.dtype("u2" if dtype == "bfloat16" else dtype)
    bits = (100 * _normal(20_000)).astype(holder)
    other = bits + np.asarray(1, holder)
    sides = []
    for values in (bits, other):
        shifted = np.frombuffer(b"x" + values.tobytes(), np.uint8)[1:].view(holder)
        assert not shifted.flags.aligned
        sides.append([Operand(part, dtype, values.shape) for part in (values, shifted)])
    tolerance = tolerance_for(dtype, dtype)
    found = [
        compare_operands(first, second, tolerance, is_compiled=is_compiled)
        for first, second in zip(*sides, strict=True)
    ]
    assert found[0] == found[1]
    assert found[0].unequal > 0


def test_layout_in_memory_does_not_matter() -> None:
    values = _normal(600).reshape(20, 30)
    swapped = values.astype(">f4")
    assert _compare(values, np.asfortranarray(values)).is_identical
    assert _compare(values, swapped).is_identical
    assert _compare(values, np.repeat(values, 2, 1)[:, ::2]).is_identical


def _rows(first: Array, second: Array, low: float, high: float) -> list[list[object]]:
    """What both kernels say of two arrays: fields, marks and tables."""
    rows = []
    for is_compiled in (True, False):
        integer = f"i{first.itemsize}"
        marks = np.zeros(-(-first.size // BLOCK), np.uint8)
        ulps, gaps = np.zeros(ULP_PLACES, np.int64), np.zeros(POWERS, np.int64)
        mask = MASK32 if first.itemsize == 4 else MASK64
        kernel = kernels(is_compiled).measure(first.dtype.char, np.dtype(integer).char)
        sides = (first, second, first.view(integer), second.view(integer))
        row = kernel(*sides, mask, 1e-5, low, high, marks, ulps, gaps)
        recounted = kernels(is_compiled).recount(first.dtype.char)(
            first, second, 1e-5, low, np.ones_like(marks)
        )
        rows.append([*row, marks.tolist(), ulps.tolist(), gaps.tolist(), recounted])
    return rows


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["float32", "float64"]).flatmap(lambda dtype: hnp.arrays(dtype, (2, 300))))
def test_compiled_and_numpy_kernels_agree(pair: Array) -> None:
    pytest.importorskip("numba")
    first, second = (np.ascontiguousarray(np.tile(row, 40)) for row in pair)
    fast, plain = _rows(first, second, 1e-6, 1e-3)
    assert [fast[0], *fast[5:]] == [plain[0], *plain[5:]]
    assert fast[1:4] == pytest.approx(plain[1:4], rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("scale", [1e-44, 1e-41, 1e-38, 1e-20, 1e-3, 1.0, 1e12, 1e16, 1e18, 1e30])
@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-3, 1.0])
def test_screened_blocks_lose_nothing(scale: float, noise: float) -> None:
    pytest.importorskip("numba")
    draw = np.random.default_rng(0)
    first = (scale * draw.standard_normal(9 * BLOCK + 5)).astype(np.float32)
    first[draw.integers(0, first.size, 300)] = 0.0
    second = (first * (1 + noise * draw.standard_normal(first.size))).astype(np.float32)
    second[5 * BLOCK + 7] += np.float32(2 * scale)
    fast, plain = _rows(first, second, 1e-6 * scale, 1e-3 * scale)
    assert [fast[0], *fast[5:]] == [plain[0], *plain[5:]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("steps", [0, 1, 15, 100])
def test_ulps_are_steps_of_the_dtype(dtype: str, steps: int) -> None:
    size = 16 if dtype in ("float16", "bfloat16") else int(dtype[5:])
    bits = np.arange(1000, 1100, dtype=f"u{size // 8}")
    sides = [
        Operand(part if dtype == "bfloat16" else part.view(dtype), dtype, part.shape)
        for part in (bits, bits + np.asarray(steps, bits.dtype))
    ]
    found = compare_operands(*sides, Tolerance()).ulps
    assert found is not None
    assert set(found) == {steps if steps < 16 else 103}


def test_ulps_across_zero_and_between_dtypes() -> None:
    tiny = np.array([1e-45], "f4")
    assert _compare(tiny, -tiny).ulps == (2,) * 5
    assert _compare(-0.0, 0.0, "f4").ulps == (0,) * 5
    half = np.array([1.0], "f2")
    assert _compare(half, half.astype("f4") + np.float32(1e-5)).ulps == (0,) * 5
    assert _compare(half, half.astype("f8") * 1.001).ulps == (1,) * 5
    assert _compare(np.array([1]), np.array([2])).ulps is None


def test_the_histogram_counts_what_is_not_equal() -> None:
    first = np.zeros(20_000)
    second = np.where(np.arange(20_000) < 7, 0.75, 0.0) + np.where(np.arange(20_000) > 19_990, 3, 0)
    found = _compare(first, np.where(np.arange(20_000) == 500, np.nan, second))
    assert found.histogram == ((-1, 7), (1, 9))
    assert found.unequal == 17
    assert _compare(np.array([1, 5]), np.array([1, 9])).histogram == ((2, 1),)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "c8"])
@pytest.mark.parametrize("scale", [1e-7, 1e-5, 1e-3, 1e-2])
def test_outside_is_counted_exactly_by_the_tensors_own_size(dtype: str, scale: float) -> None:
    draw = np.random.default_rng(3)
    first = (draw.standard_normal(300_000) * np.linspace(0.01, 100, 300_000)).astype(dtype)
    second = (first + (100 * scale * draw.standard_normal(300_000))).astype(dtype)
    found = _compare(first, second)
    wide = np.clongdouble if dtype == "c8" else np.longdouble
    gap = np.abs(second.astype(wide) - first.astype(wide))
    allowed = found.absolute + found.relative * np.abs(first.astype(wide))
    assert found.outside == np.count_nonzero(gap > allowed)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays("float64", (2, 50)))
def test_any_floats_against_plain_numpy(pair: Array) -> None:
    found = _compare(pair[0], pair[1])
    both_nan = np.isnan(pair[0]) & np.isnan(pair[1])
    assert found.unequal == np.count_nonzero((pair[0] != pair[1]) & ~both_nan)
    assert found.finite == np.count_nonzero(np.isfinite(pair[0]) & np.isfinite(pair[1]))
