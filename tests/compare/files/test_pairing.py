"""Which name is which: by map, name and convention, and what is never paired."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isograd.checkpoints.base import TensorInfo
from isograd.compare.files.pairing import NamePairing, pair_names
from isograd.errors import UsageError


def _infos(**shapes: tuple[int, ...]) -> list[TensorInfo]:
    return [
        TensorInfo(name.replace("__", "."), "float32", shape, 4) for name, shape in shapes.items()
    ]


def _partners(pairing: NamePairing) -> dict[str, tuple[str, str]]:
    return {pair.reference: (pair.other, pair.how) for pair in pairing.pairs}


def test_a_tied_tensor_is_compared_under_one_of_its_names() -> None:
    reference = _infos(tok__weight=(9, 3), out__weight=(9, 3))
    reference[1] = replace(reference[1], tied_to="tok.weight")
    other = _infos(tok__embedding_table=(9, 3))
    for pairing in (pair_names(reference, other), pair_names(other, reference)):
        assert len(pairing.pairs) == 1
        assert pairing.only_reference == pairing.only_other == ()
        assert pairing.notes == ("out.weight: the tensor is compared under its other name",)
    untied = _infos(tok__weight=(9, 3), out__weight=(9, 3))
    assert pair_names(untied, other).only_reference == ("out.weight",)


def test_conventions_of_both_frameworks() -> None:
    reference = _infos(
        bn__weight=(8,), bn__bias=(8,), bn__running_mean=(8,), bn__running_var=(8,),
        bn__num_batches_tracked=(), emb__weight=(9, 3), conv__weight=(4, 4, 3),
    )  # fmt: skip
    other = _infos(
        bn__gamma=(8,), bn__beta=(8,), bn__moving_mean=(8,), bn__moving_variance=(8,),
        emb__embedding_table=(9, 3), conv__weight=(4, 4, 1, 3),
    )  # fmt: skip
    pairing = pair_names(reference, other)
    assert _partners(pairing) == {
        "bn.weight": ("bn.gamma", "convention"),
        "bn.bias": ("bn.beta", "convention"),
        "bn.running_mean": ("bn.moving_mean", "convention"),
        "bn.running_var": ("bn.moving_variance", "convention"),
        "emb.weight": ("emb.embedding_table", "convention"),
        "conv.weight": ("conv.weight", "name"),
    }
    assert pairing.alone_by_convention == ("bn.num_batches_tracked",)
    assert not pairing.only_reference
    assert not pairing.only_other


def test_a_map_comes_before_names() -> None:
    sides = _infos(a=(2,), b=(2,))
    pairing = pair_names(sides, sides, {"a": "b", "b": "a"})
    assert _partners(pairing) == {"a": ("b", "map"), "b": ("a", "map")}


@pytest.mark.parametrize(
    ("renames", "words"),
    [
        ({"x": "a"}, "the first set"),
        ({"a": "x"}, "the second set"),
        ({"a": "a", "b": "a"}, "to two"),
    ],
)
def test_wrong_maps(renames: dict[str, str], words: str) -> None:
    sides = _infos(a=(2,), b=(2,))
    with pytest.raises(UsageError, match=words):
        pair_names(sides, sides, renames)


def test_what_has_no_partner_is_named() -> None:
    pairing = pair_names(_infos(a=(2,), gone=(7,)), _infos(a=(2,), extra=(5,)))
    assert (pairing.only_reference, pairing.only_other) == (("gone",), ("extra",))


def test_other_shapes_under_one_name_stay_a_pair() -> None:
    pairing = pair_names(_infos(a=(4, 3)), _infos(a=(3,)))
    assert _partners(pairing) == {"a": ("a", "name")}
