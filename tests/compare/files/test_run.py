"""Whole comparisons: verdicts, order, threads, damaged files, resuming."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.open import open_source
from isograd.compare.files.differences import compare_operands
from isograd.compare.files.operands import operand
from isograd.compare.files.options import CompareOptions
from isograd.compare.files.run import compare_sources
from isograd.compare.files.segments import SEGMENT
from isograd.compare.files.tolerance import tolerance_for
from isograd.compare.files.verdicts import TensorVerdict
from isograd.errors import UsageError
from isograd.model import Verdict
from isograd.tensors import Array


def _tensors(count: int = 6) -> dict[str, Array]:
    draw = np.random.default_rng(0)
    return {f"layer{n}.weight": draw.standard_normal((5, 7)).astype("f4") for n in range(count)}


def test_equal_sets_agree(make_source) -> None:
    report = compare_sources(make_source(_tensors()), make_source(_tensors()))
    assert report.verdict is Verdict.EQUIVALENT
    assert not report.needs_action
    assert report.count(TensorVerdict.IDENTICAL) == 6


def test_first_that_differs_and_last_that_agrees(make_source) -> None:
    changed = _tensors()
    for name in ("layer3.weight", "layer5.weight"):
        changed[name] = changed[name] + np.float32(1)
    report = compare_sources(
        make_source(_tensors(), ordered=True), make_source(changed, ordered=True)
    )
    assert report.verdict is Verdict.DIVERGENT
    assert report.first_differing is not None
    assert report.last_agreeing is not None
    assert report.first_differing.name == "layer3.weight"
    assert report.last_agreeing.name == "layer2.weight"
    assert report.knows_order


@pytest.mark.parametrize(("elements", "at_once"), [(8, 1), (200_000, 2)])
def test_small_pairs_are_one_threads_work(make_source, elements: int, at_once: int) -> None:
    tensors = {f"t{number}": np.zeros(elements, "f4") for number in range(450)}
    sources = [make_source(tensors), make_source(tensors)]
    inside: set[int] = set()
    most = 0
    for source in sources:

        def raw(name: str, read: Callable[[str], RawTensor] = source.raw) -> RawTensor:
            nonlocal most
            inside.add(threading.get_ident())
            most = max(most, len(inside))
            time.sleep(1e-4)
            found = read(name)
            inside.discard(threading.get_ident())
            return found

        source.raw = raw
    report = compare_sources(*sources, CompareOptions(threads=2))
    assert report.count(TensorVerdict.IDENTICAL) == 450
    assert most == at_once


@pytest.mark.parametrize("side", [0, 1])
def test_a_missing_tensor_is_never_a_pass(make_source, side: int) -> None:
    sets = [_tensors(), _tensors()]
    del sets[side]["layer2.weight"]
    report = compare_sources(*(make_source(tensors) for tensors in sets))
    assert report.verdict is Verdict.INCOMPLETE
    assert report.needs_action
    missing = [found for found in report.comparisons if found.verdict is TensorVerdict.MISSING]
    assert [found.name for found in missing] == ["layer2.weight"]
    assert report.comparisons[2].name == "layer2.weight"


def test_another_shape_is_a_difference_and_not_broadcast(make_source) -> None:
    report = compare_sources(make_source({"a": np.ones((4, 3))}), make_source({"a": np.ones(3)}))
    assert report.comparisons[0].verdict is TensorVerdict.SHAPE
    assert report.verdict is Verdict.DIVERGENT


def test_one_damaged_tensor_does_not_stop_the_rest(make_source) -> None:
    report = compare_sources(
        make_source(_tensors()), make_source(_tensors(), damaged=("layer1.weight",))
    )
    assert report.verdict is Verdict.INCOMPLETE
    assert report.count(TensorVerdict.IDENTICAL) == 5
    assert "layer1.weight is damaged" in report.comparisons[1].detail


def test_nothing_in_common_is_an_error(make_source) -> None:
    with pytest.raises(UsageError, match="has a partner"):
        compare_sources(make_source({"a": np.ones(2)}), make_source({"b": np.ones(3)}))
    with pytest.raises(UsageError, match="no tensor to compare"):
        compare_sources(make_source({}), make_source({"b": np.ones(3)}))


def test_a_permutation_of_like_shapes_is_found(make_source) -> None:
    names = list(_tensors())
    values = list(_tensors().values())
    turned = dict(zip(names, values[1:] + values[:1], strict=True))
    report = compare_sources(make_source(_tensors()), make_source(turned))
    assert report.count(TensorVerdict.DIFFERS) == 6


@pytest.mark.parametrize("allowed", [1e-9, 1e-2])
def test_an_envelope_decides_instead_of_the_tolerance(make_source, allowed: float) -> None:
    moved = {name: values * np.float32(1.001) for name, values in _tensors().items()}
    options = CompareOptions(envelope={"layer0.weight": 1.0, "*": allowed})
    report = compare_sources(make_source(_tensors()), make_source(moved), options)
    assert report.count(TensorVerdict.DIFFERS) == (5 if allowed < 1e-3 else 0)


def test_threads_change_no_bit(make_source) -> None:
    moved = {name: values * np.float32(1.001) for name, values in _tensors(40).items()}
    reports = [
        compare_sources(
            make_source(_tensors(40)), make_source(moved), CompareOptions(threads=threads)
        ).comparisons
        for threads in (1, 8)
    ]
    assert reports[0] == reports[1]


@pytest.fixture
def large_pair(tmp_path: Path) -> list[Path]:
    """Two files with one tensor of 20 segments, and one with all that may stand in a tensor."""
    draw = np.random.default_rng(5)
    first = draw.standard_normal(20 * SEGMENT - 77, dtype="f4")
    second = first * (1 + np.float32(1e-5) * draw.standard_normal(first.size, dtype="f4"))
    first[[5, 12 * SEGMENT + 9]] = np.nan, np.inf
    second[[5, 15 * SEGMENT]] = np.nan, -7.0
    for name, values in (("a", first), ("b", second)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "large.npy", values)
        np.save(tmp_path / name / "small.npy", values[:100_000].astype("f2"))
    return [tmp_path / "a", tmp_path / "b"]


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_large_tensor_is_cut_without_changing_a_bit(
    large_pair: list[Path], is_compiled: bool
) -> None:
    reports = []
    for threads in (1, 3):
        options = CompareOptions(threads=threads, is_compiled=is_compiled)
        with open_source(large_pair[0]) as first, open_source(large_pair[1]) as second:
            reports.append(compare_sources(first, second, options).comparisons)
            raws = first.raw("large"), second.raw("large")
    assert reports[0] == reports[1]
    tolerance = tolerance_for("float32", "float32")
    whole = compare_operands(*map(operand, raws), tolerance, is_compiled=is_compiled)
    assert reports[0][0].difference == whole
    assert whole.pattern_mismatches == 1
    assert whole.greatest_absolute_index == (15 * SEGMENT,)
    assert 0 < whole.outside < whole.total


def test_what_cannot_be_read_is_open_and_not_dropped(tmp_path: Path) -> None:
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "good.npy", np.ones(3))
        np.save(tmp_path / side / "half.npy", np.ones(3))
        (tmp_path / side / "bad.npy").write_bytes(b"\x93NUMPY but no more")
    (tmp_path / "b" / "half.npy").write_bytes(b"")
    with open_source(tmp_path / "a") as first, open_source(tmp_path / "b") as second:
        report = compare_sources(first, second)
    assert report.verdict is Verdict.INCOMPLETE
    failed = {one.name for one in report.comparisons if one.verdict is TensorVerdict.FAILED}
    assert failed == {"bad", "half"}
    assert report.count(TensorVerdict.MISSING) == 0


def test_only_and_ignore(make_source) -> None:
    options = CompareOptions(only=("layer[0-3]*",), ignore=("layer2*",))
    report = compare_sources(make_source(_tensors()), make_source(_tensors()), options)
    assert [found.name for found in report.comparisons] == [
        "layer0.weight", "layer1.weight", "layer3.weight",
    ]  # fmt: skip


def test_steps_expect_changes(make_source) -> None:
    after = {name: values + np.float32(1e-2) for name, values in _tensors().items()}
    options = CompareOptions(is_consecutive=True)
    assert not compare_sources(make_source(_tensors()), make_source(after), options).needs_action
    after["layer1.weight"] = after["layer1.weight"] * np.float32(np.nan)
    assert compare_sources(make_source(_tensors()), make_source(after), options).needs_action


def test_a_finished_pair_is_not_compared_again(make_source, tmp_path: Path) -> None:
    changed = _tensors()
    changed["layer2.weight"] = np.full((5, 7), np.inf, "f4")
    options = CompareOptions(journal=tmp_path / "journal")
    whole = compare_sources(make_source(_tensors()), make_source(changed), options)
    lines = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
    assert len(lines) == 7
    (tmp_path / "journal").write_bytes(b"".join(lines[:4]) + lines[4][:30])
    source = make_source(_tensors())
    again = compare_sources(source, make_source(changed), options)
    assert again.resumed == 3
    assert source.reads == 3
    assert again.comparisons == whole.comparisons
    assert len([json.loads(line) for line in (tmp_path / "journal").open()]) == 7


def test_a_journal_of_another_comparison_is_refused(make_source, tmp_path: Path) -> None:
    options = CompareOptions(journal=tmp_path / "journal")
    compare_sources(make_source(_tensors()), make_source(_tensors()), options)
    with pytest.raises(UsageError, match="another comparison"):
        compare_sources(make_source(_tensors()), make_source(_tensors(), name="other"), options)
    (tmp_path / "journal").write_text("hello\n")
    with pytest.raises(UsageError, match="no journal"):
        compare_sources(make_source(_tensors()), make_source(_tensors()), options)
