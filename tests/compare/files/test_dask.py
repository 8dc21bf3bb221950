"""A local Dask cluster gives the same bits as threads, and says clearly where it cannot work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd import engine
from isograd.checkpoints.open import open_source
from isograd.compare.files.options import CompareOptions
from isograd.compare.files.run import compare_sources
from isograd.compare.files.segments import SEGMENT
from isograd.engine import executor
from isograd.errors import UsageError

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    yield cluster.scheduler_address
    cluster.close()


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    draw = np.random.default_rng(1)
    for side in (0, 1):
        folder = tmp_path / str(side)
        folder.mkdir()
        for number in range(30):
            values = np.random.default_rng(number).standard_normal((50, 60)).astype("f4")
            noise = side * draw.standard_normal(values.shape).astype("f4")
            np.save(folder / f"t{number}.npy", values + np.float32(1e-4) * noise)
        large = np.random.default_rng(99).standard_normal(18 * SEGMENT, dtype="f4")
        np.save(folder / "large.npy", large * np.float32(1 + side * 3e-5))
    return [tmp_path / "0", tmp_path / "1"]


def _compare(folders: list[Path], **options: Any) -> Any:
    with open_source(folders[0]) as first, open_source(folders[1]) as second:
        return compare_sources(first, second, CompareOptions(**options)).comparisons


def test_the_same_bits_as_with_threads(folders: list[Path], address: str) -> None:
    by_threads = _compare(folders)
    assert any(found.difference.outside for found in by_threads)
    assert _compare(folders, engine="dask", scheduler=address) == by_threads


def test_sources_behind_urls(folders: list[Path], address: str) -> None:
    urls = tuple(f"file://{folder}" for folder in folders)
    found = _compare(folders, engine="dask", scheduler=address, addresses=urls)
    assert found == _compare(folders)


def test_no_scheduler_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_PATIENCE_S", 1)
    with (
        pytest.raises(UsageError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:1"),
        executor("dask", 0, "tcp://127.0.0.1:1"),
    ):
        pass


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(UsageError, match=r"isograd\[dask\]"), executor("dask", 0, None):
        pass
