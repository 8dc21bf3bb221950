"""Worker processes that draw the same random numbers are found, in both frameworks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isograd
from isograd.data.pipelines.host import PipelineHandle
from isograd.data.pipelines.worker_draws import judge
from isograd.data.worker_seeds import draws_of

PIPELINES = Path(__file__).parent / "pipelines"


def _sequence(seed: int, outcomes: int, count: int) -> list[bytes]:
    drawn = np.random.default_rng(seed).integers(0, outcomes, count)
    return [bytes([number]) for number in drawn]


def _in_turn(*sequences: list[bytes]) -> list[bytes]:
    return [draw for turn in zip(*sequences, strict=True) for draw in turn]


@pytest.mark.parametrize(
    ("sequences", "alike"),
    [
        pytest.param([(0, 250), (0, 250)], 2, id="both draw alike"),
        pytest.param([(0, 250), (1, 250)], 1, id="each draws its own"),
        pytest.param([(0, 250), (1, 250), (0, 250)], 2, id="two of three draw alike"),
        pytest.param([(0, 2), (0, 2)], 2, id="coins that fall alike 64 times"),
        pytest.param([(0, 1), (0, 1)], 1, id="nothing is drawn"),
    ],
)
def test_workers_that_share_a_sequence_are_counted(
    sequences: list[tuple[int, int]], alike: int
) -> None:
    drawn = _in_turn(*(_sequence(seed, outcomes, 64) for seed, outcomes in sequences))
    found = judge("workers", len(sequences), drawn)
    assert (found.draws, found.alike) == (64, alike)


@pytest.mark.parametrize("draws", [0, 1, 5])
def test_few_draws_of_a_coin_say_nothing(draws: int) -> None:
    coins = [b"heads", b"tails", b"heads", b"heads", b"tails"][:draws]
    assert judge("workers", 2, _in_turn(coins, coins)).alike == 1


@given(st.integers(0, 10_000), st.integers(2, 50), st.integers(2, 5), st.integers(0, 64))
def test_workers_that_draw_apart_are_never_called_alike(
    seed: int, outcomes: int, workers: int, count: int
) -> None:
    drawn = _in_turn(*(_sequence(seed * 7 + n, outcomes, count) for n in range(workers)))
    assert judge("workers", workers, drawn).alike == 1


@pytest.mark.parametrize(
    ("pipeline", "alike"),
    [
        pytest.param("workers_torch.py:numpys_own", [1], id="torch seeds numpy's own"),
        pytest.param("workers_torch.py:held", [2], id="a generator that the data set holds"),
        pytest.param("workers_torch.py:held_by_one", [], id="no worker"),
        pytest.param("workers_torch.py:held_and_seeded", [1], id="seeded in worker_init_fn"),
        pytest.param("workers_torch.py:coins", [1], id="coins"),
        pytest.param("workers_torch.py:coins_seeded_alike", [3], id="seeded alike"),
        pytest.param("workers_mindspore.py:processes", [2], id="MindSpore does not seed numpy's"),
        pytest.param("workers_mindspore.py:own_generators", [1], id="a generator per process"),
        pytest.param("workers_mindspore.py:threads", [], id="threads"),
        pytest.param("workers_mindspore.py:one_process", [], id="one process"),
        pytest.param("workers_mindspore.py:mapped", [2], id="map in processes"),
        pytest.param("workers_mindspore.py:mapped_without_draws", [1], id="map that draws nothing"),
    ],
)
def test_each_place_with_workers_is_asked(pipeline: str, alike: list[int]) -> None:
    pytest.importorskip("torch" if "torch" in pipeline else "mindspore")
    with PipelineHandle(str(PIPELINES / pipeline)) as handle:
        found, notes = draws_of(handle)
    assert [one.alike for one in found] == alike
    assert not notes


def test_a_pipeline_alone_is_warned_of() -> None:
    pytest.importorskip("mindspore")
    (report,) = isograd.data(PIPELINES / "workers_mindspore.py:mapped").sources
    found = [finding for finding in report.findings if finding.code == "data.worker_seeds"]
    assert [finding.message for finding in found] == [
        "the 2 worker processes of map(num_parallel_workers=2) draw the same random numbers"
    ]
    assert "os.getpid()" in found[0].advice


def test_only_the_side_that_repeats_is_a_difference() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    reference = PIPELINES / "workers_torch.py:numpys_own"
    found = isograd.data(reference, PIPELINES / "workers_mindspore.py:processes").comparison
    same = isograd.data(reference, PIPELINES / "workers_mindspore.py:own_generators").comparison
    assert found is not None
    assert same is not None
    assert [one.finding.code for one in found.differences] == ["data.worker_seeds"]
    assert found.differences[0].finding.message.startswith("B: the 2 worker processes")
    assert not same.differences
