"""A source that is read in parts, beside one another, holds what it holds when it is read once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from tests.dataset.conftest import ARRAYS, COUNT, MAKERS, InMemory, image_folder, tfrecord

import isograd
from isograd.data.inventory.rules import RULES, DataRule, Example
from isograd.data.inventory.run import InventoryOptions, inventory, inventory_of_parts
from isograd.data.inventory.statistics import ChannelTally
from isograd.data.model import SourceReport
from isograd.data.sources.base import Problem, Sample, SampleSource, digest
from isograd.data.sources.open import open_samples
from isograd.data.sources.splits import Splits
from isograd.errors import UsageError
from isograd.progress import SilentProgress


def _in_parts(source: SampleSource, workers: int) -> SourceReport:
    with ThreadPoolExecutor(workers) as pool:
        return inventory_of_parts(source, InventoryOptions(), SilentProgress(), pool, workers)


def _counts(report: SourceReport) -> SourceReport:
    """The report without what parts may change: time, means by rounding, drawn values."""
    fields = tuple(replace(field, statistics=()) for field in report.fields)
    is_drawn = report.samples > InventoryOptions.shown
    shown = () if is_drawn else report.shown
    assert len({one.key for one in report.shown}) == min(report.samples, InventoryOptions.shown)
    return replace(report, elapsed_s=0.0, fields=fields, shown=shown)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.code) for rule in RULES])
def test_a_rule_says_the_same_of_parts(rule: DataRule, workers: int) -> None:
    for example in (rule.example, rule.counterexample):
        whole = inventory(InMemory(example))
        assert _counts(_in_parts(InMemory(example), workers)) == _counts(whole)


@given(ARRAYS)
def test_statistics_of_parts_are_those_of_the_whole(arrays: list[np.ndarray]) -> None:
    items = tuple(Sample(f"{number}", {"x": array}) for number, array in enumerate(arrays))
    whole, parts = inventory(InMemory(Example(items))), _in_parts(InMemory(Example(items)), 1)
    assert _counts(parts) == _counts(whole)
    for one, other in zip(whole.fields[0].statistics, parts.fields[0].statistics, strict=True):
        exact = ("channel", "count", "minimum", "maximum", "nans", "infinities")
        assert [getattr(one, name) for name in exact] == [getattr(other, name) for name in exact]
        if one.count:
            assert other.mean == pytest.approx(one.mean, rel=1e-12)
            assert other.deviation == pytest.approx(one.deviation, rel=1e-9, abs=1e-9)
            assert other.quantiles == pytest.approx(one.quantiles)  # few values are all kept


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(200_000, 20_000, id="a small part follows"),
        pytest.param(5_000, 300_000, id="a small part leads"),
        pytest.param(900_000_000, 300_000_000, id="more than numpy's hypergeometric draws take"),
    ],
)
def test_drawn_values_of_two_parts_are_drawn_from_both_by_their_sizes(
    first: int, second: int
) -> None:
    tallies = []
    for level, size in ((0.0, first), (1.0, second)):
        tally = ChannelTally("", 0)
        for _ in range(3):
            tally.add(np.full(4096, level))
        tally._seen = size  # as if so many had come
        tallies.append(tally)
    tallies[0].join(tallies[1])
    share = float(np.mean(tallies[0]._kept))
    assert share == pytest.approx(second / (first + second), abs=0.025)  # five standard errors


def _shards(folder: Path) -> Path:
    """Four TFRecord files in a folder."""
    path = tfrecord(folder)
    shards = folder / "shards"
    shards.mkdir()
    for number in range(4):
        shutil.copy(path, shards / f"part-{number}.tfrecord")
    return shards


def _images_and_others(folder: Path) -> Path:
    """Images, a text, and a file that is no image."""
    path = image_folder(folder)
    (path / "cat" / "note.txt").write_text("no image")
    (path / "dog" / "z.png").write_bytes(b"")
    return path


@pytest.mark.parametrize("count", [2, 3, 16])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_images_and_others, id="image folder"),
        pytest.param(_shards, id="TFRecord"),
        pytest.param(MAKERS["npy folder"], id="npy folder"),
    ],
)
def test_parts_hold_every_item_once_in_order(
    make: Callable[[Path], Path], count: int, tmp_path: Path
) -> None:
    source = open_samples(str(make(tmp_path)))
    assert source.is_divisible

    def read(part: SampleSource) -> list[tuple[str, bytes | str]]:
        return [
            (item.key, item.what if isinstance(item, Problem) else digest(item.fields))
            for item in part.samples()
        ]

    whole = read(source)
    parts = [source.part(number, count) for number in range(count)]
    assert [item for part in parts for item in read(part)] == whole
    assert sum((part.left_out for part in parts), type(source.left_out)()) == source.left_out


def test_two_splits_are_divided_each(tmp_path: Path) -> None:
    path = image_folder(tmp_path)
    copy = shutil.copytree(path, tmp_path / "copy")
    both = Splits((open_samples(str(path)), open_samples(str(copy))))
    found = _in_parts(both, 2)
    assert found.samples == 2 * COUNT
    assert "data.leak" in [finding.code for finding in found.findings]


def test_workers_of_dask_give_the_report_of_one_process(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    path = _images_and_others(tmp_path)
    (whole,) = isograd.data(path).sources
    (parts,) = isograd.data(path, engine="dask", jobs=2).sources
    assert _counts(parts) == _counts(whole)
    assert parts.notes == ("files without the suffix of an image were left out: 1",)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"limit": 2, "engine": "dask"}, "--limit is given with --engine", id="limit"),
        pytest.param({"scheduler": "tcp://x:1"}, "are for --engine dask", id="scheduler alone"),
        pytest.param({"jobs": 2}, "are for --engine dask", id="jobs alone"),
        pytest.param({"engine": "dask", "output": "x.npz"}, "looks at A", id="conversion"),
        pytest.param(
            {"engine": "dask", "scheduler": "tcp://127.0.0.1:1"}, "no Dask scheduler", id="none"
        ),
    ],
)
def test_what_dask_cannot_do_is_refused(
    options: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("isograd.engine._PATIENCE_S", 1)
    with pytest.raises(UsageError, match=said):
        isograd.data(image_folder(tmp_path), **options)  # type: ignore[arg-type]


def test_one_stream_is_not_divided(tmp_path: Path) -> None:
    source = open_samples(str(tfrecord(tmp_path)))
    with ThreadPoolExecutor(1) as pool, pytest.raises(UsageError, match="is one stream"):
        inventory_of_parts(source, InventoryOptions(), SilentProgress(), pool, 1)
