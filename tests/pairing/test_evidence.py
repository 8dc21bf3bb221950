"""Names tell alike candidates apart where they can; order does where they cannot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isograd.pairing.evidence import align_in_order, closeness, in_order, pair_alike


def alike(reference: list[str], port: list[str]) -> dict[str, str]:
    order = [(index, index) for index in range(len(reference))]
    pairs = pair_alike(
        [tuple(name.split(".")) for name in reference],
        [tuple(name.split(".")) for name in port],
        order,
        order,
    )
    return {reference[row]: port[column] for row, column in pairs}


def test_words_win_over_order() -> None:
    found = alike(["attn.q_proj", "attn.k_proj", "attn.v_proj"], ["value", "key", "query"])
    assert found == {"attn.q_proj": "query", "attn.k_proj": "key", "attn.v_proj": "value"}


def test_numbers_are_ranks() -> None:
    assert alike(["conv1", "conv2", "conv3"], ["conv_2", "conv_0", "conv_1"]) == {
        "conv1": "conv_0",
        "conv2": "conv_1",
        "conv3": "conv_2",
    }


def test_order_decides_without_evidence() -> None:
    assert alike(["alpha", "omega"], ["eins", "zwei"]) == {"alpha": "eins", "omega": "zwei"}


def test_one_telling_name_leaves_the_rest_to_order() -> None:
    found = alike(["conv3", "downsample.0"], ["shortcut.conv", "expanding"])
    assert found == {"conv3": "expanding", "downsample.0": "shortcut.conv"}


def test_closeness_is_between_nothing_and_one() -> None:
    assert closeness(("fc1",), ("dense_1",)) == 1.0
    assert closeness(("fc1",), ("norm2",)) == 0.0


def test_alignment_skips_what_has_no_partner() -> None:
    here, there = "abcdef", "acdxf"

    def score(row: int, column: int) -> float | None:
        return 1.0 if here[row] == there[column] else None

    pairs = align_in_order(len(here), len(there), score)
    assert [(here[row], there[column]) for row, column in pairs] == [
        (letter, letter) for letter in "acdf"
    ]


def test_longest_part_in_order() -> None:
    assert in_order([(0, 5), (1, 1), (2, 2), (3, 0), (4, 3)]) == [(1, 1), (2, 2), (4, 3)]
    assert in_order([]) == []


@given(st.permutations(range(8)))
def test_part_in_order_keeps_the_order(columns: list[int]) -> None:
    kept = in_order(list(enumerate(columns)))
    assert kept == sorted(kept)
    assert [column for _, column in kept] == sorted(column for _, column in kept)


@given(st.permutations(["conv1", "conv2", "q", "wk", "norm", "downsample.0"]))
def test_equal_names_meet_in_every_order(shuffled: list[str]) -> None:
    names = sorted(shuffled)
    assert alike(names, shuffled) == {name: name for name in names}
