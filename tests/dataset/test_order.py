"""What the order of a few samples says, and what it may be by chance."""

from __future__ import annotations

import pytest

from isograd.data.compare.order import Sequences, differences
from isograd.data.compare.side import Epoch

SHUFFLED = (5, 2, 7, 0, 6, 1, 4, 3)


def _sequences(*epochs: tuple[int, ...]) -> Sequences:
    seen = [Epoch(ids, (2,) * (len(ids) // 2)) for ids in epochs]
    return Sequences(seen, seen)


@pytest.mark.parametrize(
    ("port", "codes"),
    [
        pytest.param([tuple(range(8))], ["data.shuffle"], id="in order"),
        pytest.param([SHUFFLED[::-1]], [], id="shuffled otherwise"),
        pytest.param([(0, 1, 2, 4, 3, 5, 6, 7)], [], id="a shuffle may leave them nearly in order"),
        pytest.param(
            [(0, 1, 2, 4, 3, 5, 6, 7)] * 2, ["data.shuffle"], id="no shuffle does so in two epochs"
        ),
    ],
)
def test_a_side_that_does_not_shuffle(port: list[tuple[int, ...]], codes: list[str]) -> None:
    found = differences(_sequences(SHUFFLED), _sequences(*port), is_whole=True)
    assert [one.finding.code for one in found] == codes


@pytest.mark.parametrize(
    ("order", "codes"),
    [
        pytest.param(SHUFFLED, ["data.shuffle_repeats"], id="eight samples"),
        pytest.param((2, 0, 4, 1, 3), [], id="five samples, of which one draw in 120 repeats"),
    ],
)
def test_a_permutation_that_comes_again(order: tuple[int, ...], codes: list[str]) -> None:
    drawn = _sequences(order, order[::-1])
    found = differences(drawn, _sequences(order, order), is_whole=True)
    assert [one.finding.code for one in found] == codes
