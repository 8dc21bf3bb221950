"""Ports by hand: renamed, nested anew, reordered, fused, tied, and with gaps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isograd.errors import CaseError
from isograd.frameworks.base import ParameterInfo, Structure
from isograd.pairing import (
    Chain,
    Concatenate,
    Identity,
    ParameterPairing,
    Reshape,
    Split,
    Transpose,
    pair_parameters,
)
from isograd.tensors import Array

Network = Callable[..., Structure]


def modules_of(pairing: ParameterPairing) -> dict[str, str]:
    """Owner of the reference's parameter -> owner of the port's, over all single pairs."""
    return {
        pair.reference[0].rpartition(".")[0]: pair.port[0].rpartition(".")[0]
        for pair in pairing.pairs
    }


BLOCK = [
    "{0}conv1 Conv2d 64 64 1",
    "{0}bn1 BatchNorm2d 64",
    "{0}conv2 Conv2d 64 64 3",
    "{0}bn2 BatchNorm2d 64",
    "{0}conv3 Conv2d 64 64 1",
    "{0}bn3 BatchNorm2d 64",
]
ATTENTION = [
    "{0}attn.q_proj Linear 8 8",
    "{0}attn.k_proj Linear 8 8",
    "{0}attn.v_proj Linear 8 8",
    "{0}attn.out_proj Linear 8 8",
    "{0}norm1 LayerNorm 8",
    "{0}fc1 Linear 8 32",
    "{0}fc2 Linear 32 8",
    "{0}norm2 LayerNorm 8",
]


def repeated(lines: list[str], *prefixes: str) -> list[str]:
    return [line.format(prefix) for prefix in prefixes for line in lines]


TABLE: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "a wrapper around the network": (
        ["conv Conv2d 3 8 3", *repeated(BLOCK, "a.", "b.")],
        ["net.conv Conv2d 3 8 3", *repeated(BLOCK, "net.a.", "net.b.")],
        {"conv": "net.conv", "a.conv3": "net.a.conv3", "b.bn1": "net.b.bn1"},
    ),
    "a wrapper around a part": (
        ["conv Conv2d 3 8 3", *repeated(BLOCK, "layer1.0.", "layer1.1."), "fc Linear 64 10"],
        [
            "backbone.conv Conv2d 3 8 3",
            *repeated(BLOCK, "backbone.layer1.0.", "backbone.layer1.1."),
            "head.fc Linear 64 10",
        ],
        {"conv": "backbone.conv", "layer1.1.conv1": "backbone.layer1.1.conv1", "fc": "head.fc"},
    ),
    "a Sequential without its activations": (
        [f"features.{index} Conv2d 8 8 3" for index in (0, 2, 5, 7)],
        [f"features.{index} Conv2d 8 8 3" for index in (0, 1, 2, 3)],
        {"features.0": "features.0", "features.2": "features.1", "features.7": "features.3"},
    ),
    "blocks counted from one": (
        repeated(BLOCK, *(f"blocks.{index}." for index in range(4))),
        repeated(BLOCK, *(f"blocks.{index}." for index in range(1, 5))),
        {"blocks.0.conv1": "blocks.1.conv1", "blocks.3.conv3": "blocks.4.conv3"},
    ),
    "stages in one list": (
        [
            "stem Conv2d 3 64 7",
            *repeated(BLOCK, "layer1.0.", "layer1.1.", "layer2.0.", "layer2.1."),
        ],
        ["stem.0 Conv2d 3 64 7", *repeated(BLOCK, *(f"blocks.{index}." for index in range(4)))],
        {"layer1.1.conv1": "blocks.1.conv1", "layer2.0.conv3": "blocks.2.conv3"},
    ),
    "convolutions defined before norms": (
        repeated(BLOCK, ""),
        [
            "body.conv_a Conv2d 64 64 1",
            "body.conv_b Conv2d 64 64 3",
            "body.conv_c Conv2d 64 64 1",
            "body.norm_a BatchNorm2d 64",
            "body.norm_b BatchNorm2d 64",
            "body.norm_c BatchNorm2d 64",
        ],
        {"conv1": "body.conv_a", "conv3": "body.conv_c", "bn2": "body.norm_b"},
    ),
    "shortcut defined first": (
        [*repeated(BLOCK, "l."), "l.downsample.0 Conv2d 64 64 1", "l.downsample.1 BatchNorm2d 64"],
        [
            "b.shortcut.conv Conv2d 64 64 1",
            "b.shortcut.norm BatchNorm2d 64",
            *repeated([line.replace("bn", "norm") for line in BLOCK], "b."),
        ],
        {"l.conv3": "b.conv3", "l.downsample.0": "b.shortcut.conv", "l.bn1": "b.norm1"},
    ),
    "query and key exchanged": (
        repeated(ATTENTION, "layers.0.", "layers.1."),
        repeated(
            [
                "{0}mha.wk Linear 8 8",
                "{0}mha.wq Linear 8 8",
                "{0}mha.wv Linear 8 8",
                "{0}mha.wo Linear 8 8",
                "{0}ln_1 LayerNorm 8",
                "{0}dense1 Linear 8 32",
                "{0}dense2 Linear 32 8",
                "{0}ln_2 LayerNorm 8",
            ],
            "encoder.cells.0.",
            "encoder.cells.1.",
        ),
        {
            "layers.0.attn.q_proj": "encoder.cells.0.mha.wq",
            "layers.1.attn.k_proj": "encoder.cells.1.mha.wk",
            "layers.1.attn.v_proj": "encoder.cells.1.mha.wv",
            "layers.0.norm2": "encoder.cells.0.ln_2",
            "layers.0.fc1": "encoder.cells.0.dense1",
        },
    ),
    "a block defect among renamed blocks": (
        repeated(BLOCK, *(f"layer1.{index}." for index in range(4))),
        [
            line.replace("BatchNorm2d 64", "LayerNorm 64") if line.startswith("s.2.bn2") else line
            for line in repeated(BLOCK, *(f"s.{index}." for index in range(4)))
        ],
        {"layer1.2.conv2": "s.2.conv2", "layer1.3.bn2": "s.3.bn2", "layer1.1.bn1": "s.1.bn1"},
    ),
    "camel case": (
        ["inputProj Linear 3 8", "outputProj Linear 3 8"],
        ["input_proj Linear 3 8", "output_proj Linear 3 8"],
        {"inputProj": "input_proj", "outputProj": "output_proj"},
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_port_by_hand(case: str, network: Network) -> None:
    lines, port_lines, expected = TABLE[case]

    pairing = pair_parameters(network("torch", *lines), network("mindspore", *port_lines))

    found = modules_of(pairing)
    assert {name: found[name] for name in expected} == expected
    gaps = {*pairing.unpaired_reference, *pairing.unpaired_port}
    assert pairing.is_complete or "defect" in case, gaps


def test_missing_layer_is_listed(network: Network) -> None:
    reference = network("torch", *repeated(BLOCK, "a.", "b."), "fc Linear 64 10")
    lines = [line for line in repeated(BLOCK, "a.", "b.") if not line.startswith("b.bn2")]

    pairing = pair_parameters(reference, network("mindspore", *lines, "fc Linear 64 10"))

    assert pairing.unpaired_reference == tuple(
        f"b.bn2.{attribute}" for attribute in ("weight", "bias", "running_mean", "running_var")
    )
    assert pairing.unpaired_port == ()
    assert not pairing.is_complete


def test_missing_bias_is_listed_and_nothing_takes_its_place(network: Network) -> None:
    reference = network("torch", "fc Linear 4 8", "norm LayerNorm 8")
    port = network("mindspore", "fc LinearNoBias 4 8", "norm LayerNorm 8", "shift = 8")

    pairing = pair_parameters(reference, port)

    assert pairing.unpaired_reference == ("fc.bias",)
    assert pairing.unpaired_port == ("shift",)


@pytest.mark.parametrize(
    ("uses_batch", "left"),
    [
        pytest.param(True, (), id="they are never used"),
        pytest.param(None, ("bn.moving_mean", "bn.moving_variance"), id="inference uses them"),
    ],
)
def test_statistics_that_torchs_norm_does_not_track(
    uses_batch: bool | None, left: tuple[str, ...], network: Network
) -> None:
    reference, port = (network(side, "bn BatchNorm2d 4") for side in ("torch", "mindspore"))
    tracked = [info for info in reference.parameters if not info.attribute.startswith("running")]
    arguments = {"use_batch_statistics": uses_batch}
    modules = [
        replace(module, arguments=arguments) if module.name == "bn" else module
        for module in port.modules
    ]
    fixed = [
        replace(info, trainable=not info.attribute.startswith("moving")) for info in port.parameters
    ]
    pairing = pair_parameters(
        replace(reference, parameters=tuple(tracked)),
        replace(port, modules=tuple(modules), parameters=tuple(fixed)),
    )

    assert pairing.unpaired_port == left


def test_wrong_shape_is_a_conflict(network: Network) -> None:
    pairing = pair_parameters(
        network("torch", "fc Linear 4 8"), network("mindspore", "fc Linear 4 9")
    )

    assert pairing.pairs == ()
    assert pairing.shape_conflicts == (("fc.weight", "fc.weight"), ("fc.bias", "fc.bias"))


def test_order_of_definition_against_order_of_execution_is_ambiguous(network: Network) -> None:
    lines = ["alpha Linear 8 8", "omega Linear 8 8"]
    port_lines = ["first Linear 8 8", "second Linear 8 8"]
    reference = network("torch", *lines, used=["alpha", "omega"])

    sure = pair_parameters(reference, network("mindspore", *port_lines, used=["first", "second"]))
    open_ = pair_parameters(reference, network("mindspore", *port_lines, used=["second", "first"]))

    assert sure.is_complete
    assert sure.pairs[0].how == "structure"
    assert not open_.is_complete
    assert modules_of(open_) == {"alpha": "second", "omega": "first"}
    assert open_.pairs[0].ambiguous_with == ("first.weight",)
    assert {pair.reference[0] for pair in open_.ambiguous[0]} == {"alpha.weight", "omega.weight"}
    assert len(open_.ambiguous) == 2


def test_names_settle_what_orders_leave_open(network: Network) -> None:
    reference = network("torch", "query Linear 8 8", "key Linear 8 8", used=["query", "key"])
    port = network("mindspore", "a.wq Linear 8 8", "a.wk Linear 8 8", used=["a.wk", "a.wq"])

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    assert modules_of(pairing) == {"query": "a.wq", "key": "a.wk"}


def test_values_settle_what_is_ambiguous_and_pair_what_is_left(network: Network) -> None:
    reference = network("torch", "alpha Linear 8 8", "omega Linear 8 8", used=["alpha", "omega"])
    port = network("mindspore", "one Linear 8 8", "two Linear 8 8", used=["two", "one"])
    rng = np.random.default_rng(0)
    held = {info.name: rng.standard_normal(info.shape) for info in reference.parameters}
    port_held = {
        f"{its}.{role}": held[f"{mine}.{role}"]
        for mine, its in (("alpha", "one"), ("omega", "two"))
        for role in ("weight", "bias")
    }

    def values(side: str, name: str) -> Array:
        return held[name] if side == "reference" else port_held[name]

    pairing = pair_parameters(reference, port, values=values)

    assert pairing.is_complete
    assert modules_of(pairing) == {"alpha": "one", "omega": "two"}
    assert {pair.how for pair in pairing.pairs} == {"value"}


def test_values_tell_a_square_matrix_from_its_transpose(network: Network) -> None:
    reference, port = network("torch", "proj = 4 4"), network("mindspore", "proj = 4 4")
    value = np.random.default_rng(0).standard_normal((4, 4))

    unknown = pair_parameters(reference, port)
    known = pair_parameters(
        reference, port, values=lambda side, name: value if side == "reference" else value.T
    )

    assert unknown.pairs[0].transform == Identity()
    assert unknown.pairs[0].may_be_transposed
    assert known.pairs[0].transform == Transpose((1, 0))
    assert not known.pairs[0].may_be_transposed


def test_a_causal_mask_is_not_its_transpose(network: Network) -> None:
    reference, port = network("torch", "mask = 4 4"), network("mindspore", "mask = 4 4")
    mask = np.triu(np.full((4, 4), -np.inf), 1)
    for held, transform in ((mask, Identity()), (mask.T, Transpose((1, 0)))):

        def values(side: str, name: str, held: Array = held) -> Array:
            return mask if side == "reference" else held

        assert pair_parameters(reference, port, values=values).pairs[0].transform == transform


def test_square_layers_of_the_libraries_are_sure(network: Network) -> None:
    pairing = pair_parameters(
        network("torch", "fc Linear 8 8"), network("mindspore", "fc Linear 8 8")
    )
    assert not any(pair.may_be_transposed for pair in pairing.pairs)


def test_raw_parameters_pair_with_layers(network: Network) -> None:
    reference = network("torch", "scale = 1 8 1 1", "w = 3 8", "norm.a_2 = 8", "norm.b_2 = 8")
    port = network("mindspore", "scale = 8", "lin LinearNoBias 3 8", "ln LayerNorm 8")

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete, pairing
    found = {pair.reference[0]: (pair.port[0], pair.transform) for pair in pairing.pairs}
    assert found["scale"] == ("scale", Reshape((1, 8, 1, 1), (8,)))
    assert found["w"] == ("lin.weight", Transpose((1, 0)))
    assert found["norm.a_2"][0] == "ln.gamma"
    assert found["norm.b_2"][0] == "ln.beta"


def _transforms(pairing: ParameterPairing) -> dict[str, object]:
    return {pair.port[0]: pair.transform for pair in pairing.pairs}


@pytest.mark.parametrize(
    ("port_lines", "expected"),
    [
        (["wq = 8 8", "wk = 8 4"], Transpose((1, 0))),
        (["wq = 8 8", "wk = 4 8"], Identity()),
        (["a.wq = 8 8", "b.wk = 8 4"], Transpose((1, 0))),
        (["q Linear 8 8", "wk = 8 4"], Identity()),
    ],
    ids=["same owner", "not transposed", "same kind of owner", "layer of the library"],
)
def test_square_raw_weights_follow_their_neighbours(
    port_lines: list[str], expected: object, network: Network
) -> None:
    reference = network("torch", "x.q_proj LinearNoBias 8 8", "x.k_proj LinearNoBias 8 4")

    pairing = pair_parameters(reference, network("mindspore", *port_lines))

    (pair,) = [pair for pair in pairing.pairs if pair.reference == ("x.q_proj.weight",)]
    assert pair.transform == expected
    assert pair.may_be_transposed == ("wq" in pair.port[0])


def test_embedding_tables_are_no_evidence_of_orientation(network: Network) -> None:
    reference = network(
        "torch", "e Embedding 8 8", "f Embedding 9 8", "x.q LinearNoBias 8 8", "x.k Linear 8 4"
    )
    port = network("mindspore", "e = 8 8", "f = 9 8", "wq = 8 8", "wk_weight = 8 4", "wk_bias = 4")

    found = _transforms(pair_parameters(reference, port))

    assert found["wq"] == Transpose((1, 0))
    assert found["e"] == found["f"] == Identity()


NORMS_OF_A_BLOCK = [
    ("attn_norm", "ffn_norm"),
    ("ln_1", "ln_2"),
    ("norm1", "norm2"),
    ("attention_norm", "mlp_norm"),
    ("ln_attn", "ln_mlp"),
    ("input_layernorm", "post_attention_layernorm"),
]


@pytest.mark.parametrize("names", NORMS_OF_A_BLOCK)
@pytest.mark.parametrize("flat", [False, True])
def test_norms_of_a_block_pair_by_what_they_come_before(
    names: tuple[str, str], flat: bool, network: Network
) -> None:
    written = ("input_layernorm", "post_attention_layernorm")
    blocks = ("layers.0.", "layers.1.")
    reference = network(
        "torch", *(f"{block}{name}.weight = 8" for block in blocks for name in written), "norm = 8"
    )
    form = "l{}_{} = 8" if flat else "blocks.{}.{}.gamma = 8"
    # Order must not be what pairs them where the names tell.
    order = names[::-1] if "attn" in names[0] or "attention" in names[0] else names
    port = network(
        "mindspore", *(form.format(n, name) for n in (0, 1) for name in order), "norm_f = 8"
    )

    pairing = pair_parameters(reference, port)

    found = {pair.reference[0]: pair.port[0] for pair in pairing.pairs}
    form = form.removesuffix(" = 8")
    for index, block in enumerate(blocks):
        for mine, its in zip(written, names, strict=True):
            assert found[f"{block}{mine}.weight"] == form.format(index, its)
    assert found["norm"] == "norm_f"


def test_norms_around_both_parts_of_a_block_keep_their_words(network: Network) -> None:
    reference = network(
        "torch",
        "x.input_layernorm.weight = 8",
        "x.post_attention_layernorm.weight = 8",
        "x.pre_feedforward_layernorm.weight = 8",
        "x.post_feedforward_layernorm.weight = 8",
    )
    port = network(
        "mindspore", "pre_ffn_norm = 8", "post_ffn_norm = 8", "input_norm = 8", "post_attn_norm = 8"
    )

    pairing = pair_parameters(reference, port)

    assert [pair.port[0] for pair in pairing.pairs] == [
        "input_norm",
        "post_attn_norm",
        "pre_ffn_norm",
        "post_ffn_norm",
    ]


def test_embedding_bag_pairs_with_an_embedding(network: Network) -> None:
    reference = network(
        "torch",
        "user_embedding Embedding 30 4",
        "history EmbeddingBag",
        "item_embedding Embedding 9 4",
        "history.weight = 9 4",
    )
    port = network("mindspore", "items Embedding 9 4", "users Embedding 30 4", "bag Embedding 9 4")

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    assert modules_of(pairing) == {
        "user_embedding": "users",
        "history": "bag",
        "item_embedding": "items",
    }


@pytest.mark.parametrize(
    ("line", "port_line", "expected"),
    [
        ("table Embedding 9 4", "head LinearNoBias 4 9", Identity()),
        ("table Embedding 9 4", "head LinearNoBias 9 4", Transpose((1, 0))),
    ],
)
def test_the_last_ones_of_their_shape_pair(
    line: str, port_line: str, expected: object, network: Network
) -> None:
    pairing = pair_parameters(
        network("torch", "fc Linear 3 3", line), network("mindspore", "fc Linear 3 3", port_line)
    )

    assert pairing.is_complete, pairing
    assert pairing.pairs[-1].transform == expected
    assert pairing.pairs[-1].how == "structure"


def test_two_last_ones_of_a_shape_do_not_pair_with_one(network: Network) -> None:
    reference = network("torch", "a Embedding 9 4", "b Embedding 9 4")
    pairing = pair_parameters(reference, network("mindspore", "head LinearNoBias 4 9"))
    assert not pairing.pairs


def test_wrong_layers_of_one_kind_are_not_transposed(network: Network) -> None:
    pairing = pair_parameters(
        network("torch", "fc LinearNoBias 4 8"), network("mindspore", "fc LinearNoBias 8 4")
    )
    assert not pairing.pairs


PATCHES = Reshape((8, 3, 4, 4), (8, 48))


@pytest.mark.parametrize(
    ("line", "port_line", "expected"),
    [
        ("stem Conv2d 3 8 4", "0.proj LinearNoBias 48 8", PATCHES),
        ("stem Conv2d 3 8 4", "stem LinearNoBias 48 8", PATCHES),
        ("stem LinearNoBias 48 8", "0.proj Conv2d 3 8 4", Reshape((8, 48), (8, 3, 4, 4))),
        ("stem Conv2d 3 8 4", "patch = 8 48", PATCHES),
        ("stem Conv2d 3 8 4", "stem = 48 8", Chain((PATCHES, Transpose((1, 0))))),
        (
            "stem LinearNoBias 48 8",
            "w = 8 3 4 4",
            Reshape((8, 48), (8, 3, 4, 4)),
        ),
        ("stem Conv2d 3 8 1", "0.proj LinearNoBias 3 8", Reshape((8, 3, 1, 1), (8, 3))),
        ("stem LinearNoBias 3 8", "0.proj Conv2d 3 8 1", Reshape((8, 3), (8, 3, 1, 1))),
        (
            "stem Conv2d 3 8 1",
            "w = 3 8",
            Chain((Reshape((8, 3, 1, 1), (8, 3)), Transpose((1, 0)))),
        ),
    ],
)
def test_convolution_pairs_with_a_matrix(
    line: str, port_line: str, expected: object, network: Network
) -> None:
    pairing = pair_parameters(
        network("torch", line, "fc Linear 8 8"), network("mindspore", port_line, "fc Linear 8 8")
    )

    assert pairing.is_complete, pairing
    assert pairing.pairs[0].transform == expected


def test_patches_keep_weight_and_bias_together(network: Network) -> None:
    reference = network("torch", "stem Conv2d 3 32 4", "stem.bias = 32", "norm LayerNorm 32")
    port = network("mindspore", "0.proj Linear 48 32", "1 LayerNorm 32")

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    assert modules_of(pairing) == {"stem": "0.proj", "norm": "1"}


@pytest.mark.parametrize("kernel", ["1 3", "3 1"])
def test_one_dimensional_convolutions_pair_with_two_dimensional_ones(
    kernel: str, network: Network
) -> None:
    kinds = [f"{name} Conv1d" for name in "ab"]
    reference = network(
        "torch",
        *kinds,
        *(f"{name}.{line}" for name in "ab" for line in ("weight = 8 8 3", "bias = 8")),
    )
    port = network(
        "mindspore",
        *(f"net.{index} Conv2d 1 1 1" for index in (0, 1)),
        *(f"net.{n}.{line}" for n in (0, 1) for line in (f"weight = 8 8 {kernel}", "bias = 8")),
    )
    port = replace(port, parameters=tuple(p for p in port.parameters if p.shape != (1, 1, 1, 1)))

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    shape = (8, 8, *map(int, kernel.split()))
    assert pairing.pairs[0].transform == Reshape((8, 8, 3), shape)
    assert modules_of(pairing) == {"a": "net.0", "b": "net.1"}


def _tied(structure: Structure, name: str, to: str) -> Structure:
    parameters = tuple(
        replace(info, tied_to=to) if info.name == name else info for info in structure.parameters
    )
    return replace(structure, parameters=parameters)


def _language_model(network: Network, framework: str) -> Structure:
    return network(framework, "embed Embedding 9 4", "fc Linear 4 4", "head LinearNoBias 4 9")


def test_tie_on_both_sides_pairs_once(network: Network) -> None:
    reference = _tied(_language_model(network, "torch"), "head.weight", "embed.weight")
    port = _tied(_language_model(network, "mindspore"), "head.weight", "embed.embedding_table")

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    assert [pair.reference[0] for pair in pairing.pairs] == ["embed.weight", "fc.weight", "fc.bias"]
    assert not any(pair.untied or pair.tied_only_in_port for pair in pairing.pairs)


def test_tie_by_a_functional_head_pairs_once(network: Network) -> None:
    reference = _tied(_language_model(network, "torch"), "head.weight", "embed.weight")

    pairing = pair_parameters(
        reference, network("mindspore", "embed Embedding 9 4", "fc Linear 4 4")
    )

    assert pairing.is_complete
    assert not any(pair.untied for pair in pairing.pairs)


def test_tie_of_one_side_is_flagged(network: Network) -> None:
    separate, port = _language_model(network, "torch"), _language_model(network, "mindspore")
    tied = _tied(separate, "head.weight", "embed.weight")
    port_tied = _tied(port, "head.weight", "embed.embedding_table")

    untied = pair_parameters(tied, port)
    only_in_port = pair_parameters(separate, port_tied)

    assert [(p.reference[0], p.port[0]) for p in untied.pairs if p.untied] == [
        ("embed.weight", "embed.embedding_table"),
        ("embed.weight", "head.weight"),
    ]
    assert [(p.reference[0], p.port[0]) for p in only_in_port.pairs if p.tied_only_in_port] == [
        ("embed.weight", "embed.embedding_table"),
        ("head.weight", "embed.embedding_table"),
    ]


@pytest.mark.parametrize("names", [("wk", "wq", "wv"), ("key", "value", "query")])
def test_fused_projection_splits_by_name(names: tuple[str, ...], network: Network) -> None:
    reference = network(
        "torch",
        *(
            f"{layer}.attn.{rest}"
            for layer in ("l0", "l1")
            for rest in ("in_proj_weight = 24 8", "in_proj_bias = 24", "out_proj Linear 8 8")
        ),
    )
    port = network(
        "mindspore",
        *(
            f"{layer}.attn.{name} Linear 8 8"
            for layer in ("l0", "l1")
            for name in (*names, "out_proj")
        ),
    )

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete, pairing
    (pair,) = [pair for pair in pairing.pairs if pair.reference == ("l1.attn.in_proj_weight",)]
    ordered = sorted(names, key=lambda name: "qkv".index(name.lstrip("w")[0]))
    assert pair.port == tuple(f"l1.attn.{name}.weight" for name in ordered)
    assert pair.transform == Split(0, (8, 8, 8))
    (bias,) = [pair for pair in pairing.pairs if pair.reference == ("l1.attn.in_proj_bias",)]
    assert bias.port == tuple(f"l1.attn.{name}.bias" for name in ordered)


def test_fused_projection_splits_by_order_without_names(network: Network) -> None:
    reference = network("torch", "a.qkv Linear 8 24", "a.out Linear 8 8", "a.extra Linear 8 3")
    port = network(
        "mindspore", *(f"a.dense{index} Linear 8 8" for index in range(4)), "a.extra Linear 8 3"
    )

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    assert pairing.pairs[0].port == ("a.dense0.weight", "a.dense1.weight", "a.dense2.weight")


def test_separate_projections_concatenate_into_a_fused_one(network: Network) -> None:
    reference = network(
        "torch", "a.q_proj Linear 8 8", "a.k_proj Linear 8 4", "a.v_proj Linear 8 4"
    )
    pairing = pair_parameters(reference, network("mindspore", "a.qkv Linear 8 16"))

    assert pairing.is_complete
    weight = pairing.pairs[0]
    assert weight.reference == ("a.q_proj.weight", "a.k_proj.weight", "a.v_proj.weight")
    assert weight.transform == Concatenate(0, (8, 4, 4))


def test_fused_projection_that_is_transposed_splits_too(network: Network) -> None:
    reference = network("torch", "attn.c_attn.weight = 8 24", "attn.c_attn.bias = 24")
    port = network("mindspore", *(f"attn.{name} Linear 8 8" for name in ("q", "k", "v")))

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    assert pairing.pairs[0].transform == Chain((Transpose((1, 0)), Split(0, (8, 8, 8))))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("wqkv = 8 24", Concatenate(1, (8, 8, 8))),
        ("wqkv = 24 8", Concatenate(0, (8, 8, 8))),
        ("qkv LinearNoBias 8 24", Concatenate(0, (8, 8, 8))),
    ],
)
def test_raw_projections_join_along_the_axis_of_the_fused_one(
    wanted: str, expected: object, network: Network
) -> None:
    reference = network("torch", "wq = 8 8", "wk = 8 8", "wv = 8 8", "fc Linear 8 3")

    pairing = pair_parameters(reference, network("mindspore", wanted, "fc Linear 8 3"))

    assert pairing.is_complete
    assert pairing.pairs[0].reference == ("wq", "wk", "wv")
    assert pairing.pairs[0].transform == expected


def test_fused_raw_projection_splits_along_its_columns(network: Network) -> None:
    reference = network("torch", "a.qkv_proj = 16 16")
    port = network("mindspore", "a.wq = 16 8", "a.wk = 16 4", "a.wv = 16 4")

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    assert pairing.pairs[0].port == ("a.wq", "a.wk", "a.wv")
    assert pairing.pairs[0].transform == Split(1, (8, 4, 4))


GATED = ["{0}gate_proj Linear 8 12", "{0}up_proj Linear 8 12", "{0}down_proj Linear 12 8"]


@pytest.mark.parametrize("fused", ["gate_up_proj", "w_in", "fc1"])
def test_gate_and_up_projections_meet_a_fused_one(fused: str, network: Network) -> None:
    blocks = ("layers.0.mlp.", "layers.1.mlp.")
    reference = network("torch", *repeated(GATED, *blocks))
    port = network(
        "mindspore", *repeated([f"{{0}}{fused} Linear 8 24", "{0}out Linear 12 8"], "b.0.", "b.1.")
    )

    pairing = pair_parameters(reference, port)
    back = pair_parameters(port, reference)

    assert pairing.is_complete, pairing
    assert back.is_complete
    found = {pair.port[0]: pair for pair in pairing.pairs}
    assert found[f"b.1.{fused}.weight"].reference == (
        "layers.1.mlp.gate_proj.weight",
        "layers.1.mlp.up_proj.weight",
    )
    assert found[f"b.1.{fused}.weight"].transform == Concatenate(0, (12, 12))


def test_up_comes_first_where_the_fused_name_says_so(network: Network) -> None:
    pairing = pair_parameters(
        network("torch", *repeated(GATED, "m.")),
        network("mindspore", "m.up_gate Linear 8 24", "m.down Linear 12 8"),
    )
    assert pairing.is_complete
    assert pairing.pairs[0].reference == ("m.up_proj.weight", "m.gate_proj.weight")


def test_merged_bias_of_a_recurrent_layer_has_no_partner(network: Network) -> None:
    weights = ["weight_ih = 32 8", "weight_hh = 32 8"]
    reference = network(
        "torch",
        *(f"rnn.{line}" for line in (*weights, "bias_ih = 32", "bias_hh = 32")),
    )
    port = network("mindspore", *(f"cell.{line}" for line in (*weights, "bias = 32")))

    pairing = pair_parameters(reference, port)

    assert pairing.unpaired_reference == ("rnn.bias_ih", "rnn.bias_hh")
    assert pairing.unpaired_port == ("cell.bias",)


def test_recurrent_layer_pairs_with_cells(network: Network) -> None:
    def weights(prefix: str, suffix: str, columns: int) -> list[str]:
        return [
            f"{prefix}weight_ih{suffix} = 32 {columns}",
            f"{prefix}weight_hh{suffix} = 32 8",
            f"{prefix}bias_ih{suffix} = 32",
            f"{prefix}bias_hh{suffix} = 32",
        ]

    reference = network("torch", *weights("lstm.", "_l0", 8), *weights("lstm.", "_l1", 8))
    wrapped = network("mindspore", *weights("rnn.rnn.", "_l0", 8), *weights("rnn.rnn.", "_l1", 8))
    cells = network("mindspore", *weights("cells.0.", "", 8), *weights("cells.1.", "", 8))

    assert pair_parameters(reference, wrapped).is_complete
    pairing = pair_parameters(reference, cells)
    assert pairing.is_complete
    found = {pair.reference[0]: pair.port[0] for pair in pairing.pairs}
    assert found["lstm.weight_hh_l1"] == "cells.1.weight_hh"
    assert found["lstm.bias_ih_l0"] == "cells.0.bias_ih"


def test_buffers_without_partner_are_listed_apart(network: Network) -> None:
    reference = network("torch", "fc Linear 4 8", "bn BatchNorm2d 8")
    buffers = (
        ParameterInfo("mask", "", "mask", (9, 9), "bool", trainable=False, is_buffer=True),
        ParameterInfo(
            "bn.num_batches_tracked", "bn", "num_batches_tracked", (), "int64", False, True
        ),
    )
    reference = replace(reference, parameters=(*reference.parameters, *buffers))

    pairing = pair_parameters(reference, network("mindspore", "fc Linear 4 8", "bn BatchNorm2d 8"))

    assert pairing.is_complete
    assert pairing.unpaired_buffers_reference == ("mask",)
    assert pairing.alone_by_convention == ("bn.num_batches_tracked",)


def test_statistics_without_partner_are_a_gap(network: Network) -> None:
    pairing = pair_parameters(
        network("torch", "bn BatchNorm2d 8"), network("mindspore", "bn LayerNorm 8")
    )

    assert pairing.unpaired_reference == ("bn.running_mean", "bn.running_var")
    assert pairing.unpaired_buffers_reference == ()


def test_rename_comes_first(network: Network) -> None:
    reference = network("torch", "a Linear 4 4", "b Linear 4 4")
    port = network("mindspore", "a Linear 4 4", "b Linear 4 4")

    pairing = pair_parameters(reference, port, rename={"a": "b", "b": "a"})
    single = pair_parameters(
        reference, port, rename={"a.weight": "b.weight", "b.weight": "a.weight"}
    )

    assert modules_of(pairing) == {"a": "b", "b": "a"}
    assert {pair.how for pair in pairing.pairs} == {"rename"}
    assert [pair.how for pair in single.pairs] == ["rename", "name", "rename", "name"]


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        (
            {"fc.wieght": "fc.weight"},
            'rename names "fc.wieght", which the reference does not have. Did you mean fc.weight?',
        ),
        (
            {"fc.weight": "zzz"},
            'rename names "zzz", which the port does not have. No name there is close to it.',
        ),
        (
            {"fc.weight": "fc"},
            'rename of "fc.weight" to "fc" joins a parameter with a module. '
            "Rename parameters to parameters and modules to modules.",
        ),
        (
            {"fc.weight": "fc.bias", "fc.bias": "fc.bias"},
            'rename gives "fc.bias" of the port to two parameters of the reference. '
            "Give each parameter of the port one partner.",
        ),
    ],
)
def test_wrong_rename(rename: dict[str, str], message: str, network: Network) -> None:
    side = network("torch", "fc Linear 4 4")
    with pytest.raises(CaseError) as caught:
        pair_parameters(side, side, rename=rename)
    assert str(caught.value) == message


def _deep(network: Network, framework: str, names: dict[str, str]) -> Structure:
    lines = ["{stem} Conv2d 3 64 7"]
    lines += [
        line.format(f"{{layers}}.{stage}.{{blocks}}.{index}.")
        for stage, count in enumerate((3, 8, 36, 3))
        for index in range(count)
        for line in BLOCK
    ]
    lines += ["{head} Linear 64 10"]
    return network(framework, *(line.format(**names) for line in lines))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.from_regex(r"[a-z]{3,8}", fullmatch=True), min_size=4, max_size=4, unique=True))
def test_network_pairs_with_itself_under_renaming(network: Network, names: list[str]) -> None:
    keys = ("stem", "layers", "blocks", "head")
    plain = dict(zip(keys, keys, strict=True))
    reference = _deep(network, "torch", plain)
    port = _deep(network, "mindspore", dict(zip(keys, names, strict=True)))

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete
    port_infos = [info.name for info in port.parameters]
    infos = [info.name for info in reference.parameters]
    assert [pair.port[0] for pair in pairing.pairs] == port_infos
    assert [pair.reference[0] for pair in pairing.pairs] == infos


def test_deep_network_pairs_quickly(network: Network) -> None:
    names = {"stem": "stem", "layers": "layers", "blocks": "blocks", "head": "head"}
    other = {"stem": "entry.conv", "layers": "parts", "blocks": "units", "head": "top"}
    reference = _deep(network, "torch", names)
    for port_names in (names, other):
        port = _deep(network, "mindspore", port_names)
        start = time.process_time()
        pairing = pair_parameters(reference, port)
        elapsed_s = time.process_time() - start
        assert pairing.is_complete
        assert elapsed_s < 2.0
