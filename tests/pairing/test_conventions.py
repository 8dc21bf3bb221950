"""Every layer of the two frameworks that has parameters pairs with its counterpart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from isograd.frameworks.base import Structure
from isograd.pairing import pair_modules, pair_parameters
from isograd.pairing.conventions import (
    canonical_kind,
    may_be_one,
    stem_and_number,
    words_and_numbers,
)

Structured = Callable[[Any], Structure]

LAYERS = {
    "Linear": ("Linear(3, 4)", "Dense(3, 4)"),
    "Bilinear": ("Bilinear(3, 4, 5)", "BiDense(3, 4, 5)"),
    "Conv1d": ("Conv1d(3, 4, 3)", "Conv1d(3, 4, 3, has_bias=True)"),
    "Conv2d": ("Conv2d(3, 4, 3)", "Conv2d(3, 4, 3, has_bias=True)"),
    "Conv3d": ("Conv3d(3, 4, 3)", "Conv3d(3, 4, 3, has_bias=True)"),
    "ConvTranspose1d": ("ConvTranspose1d(3, 4, 3)", "Conv1dTranspose(3, 4, 3, has_bias=True)"),
    "ConvTranspose2d": ("ConvTranspose2d(3, 4, 3)", "Conv2dTranspose(3, 4, 3, has_bias=True)"),
    "ConvTranspose3d": ("ConvTranspose3d(3, 4, 3)", "Conv3dTranspose(3, 4, 3, has_bias=True)"),
    "BatchNorm1d": ("BatchNorm1d(4)", "BatchNorm1d(4)"),
    "BatchNorm2d": ("BatchNorm2d(4)", "BatchNorm2d(4)"),
    "BatchNorm3d": ("BatchNorm3d(4)", "BatchNorm3d(4)"),
    "SyncBatchNorm": ("SyncBatchNorm(4)", "BatchNorm2d(4)"),
    "LayerNorm": ("LayerNorm(4)", "LayerNorm((4,))"),
    "GroupNorm": ("GroupNorm(2, 4)", "GroupNorm(2, 4)"),
    "InstanceNorm2d": (
        "InstanceNorm2d(4, affine=True, track_running_stats=True)",
        "InstanceNorm2d(4)",
    ),
    "InstanceNorm1d": (
        "InstanceNorm1d(4, affine=True, track_running_stats=True)",
        "InstanceNorm1d(4)",
    ),
    "InstanceNorm3d": (
        "InstanceNorm3d(4, affine=True, track_running_stats=True)",
        "InstanceNorm3d(4)",
    ),
    "Embedding": ("Embedding(5, 4)", "Embedding(5, 4)"),
    "PReLU": ("PReLU(4)", "PReLU(4)"),
    "LSTM": (
        "LSTM(3, 4, 2, bidirectional=True)",
        "LSTM(3, 4, 2, bidirectional=True)",
    ),
    "GRU": ("GRU(3, 4)", "GRU(3, 4)"),
    "RNN": ("RNN(3, 4)", "RNN(3, 4)"),
    "LSTMCell": ("LSTMCell(3, 4)", "LSTMCell(3, 4)"),
    "GRUCell": ("GRUCell(3, 4)", "GRUCell(3, 4)"),
    "RNNCell": ("RNNCell(3, 4)", "RNNCell(3, 4)"),
    "MultiheadAttention": ("MultiheadAttention(4, 2)", "MultiheadAttention(4, 2)"),
    "TransformerEncoderLayer": (
        "TransformerEncoderLayer(4, 2, 8)",
        "TransformerEncoderLayer(4, 2, 8)",
    ),
    "TransformerDecoderLayer": (
        "TransformerDecoderLayer(4, 2, 8)",
        "TransformerDecoderLayer(4, 2, 8)",
    ),
    "TransformerEncoder": (
        "TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 3)",
        "TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 3)",
    ),
    "mint Linear": ("Linear(3, 4)", "mint.Linear(3, 4)"),
    "mint Conv2d": ("Conv2d(3, 4, 3)", "mint.Conv2d(3, 4, 3)"),
    "mint ConvTranspose2d": ("ConvTranspose2d(3, 4, 3)", "mint.ConvTranspose2d(3, 4, 3)"),
    "mint BatchNorm2d": ("BatchNorm2d(4)", "mint.BatchNorm2d(4)"),
    "mint LayerNorm": ("LayerNorm(4)", "mint.LayerNorm(4)"),
    "mint GroupNorm": ("GroupNorm(2, 4)", "mint.GroupNorm(2, 4)"),
    "mint Embedding": ("Embedding(5, 4)", "mint.Embedding(5, 4)"),
    "mint PReLU": ("PReLU(4)", "mint.PReLU(4)"),
}


def _built(layer: str, prefix: str) -> tuple[Any, Any]:
    import mindspore
    import torch

    reference, port = LAYERS[layer]

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = eval(f"nn.{reference}", {"nn": torch.nn})

    class PortNet(mindspore.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            space = {"nn": mindspore.nn, "mint": mindspore.mint.nn}
            expression = port if port.startswith("mint.") else f"nn.{port}"
            setattr(self, prefix, eval(expression, space))

    return Net(), PortNet()


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_pairs_by_name(layer: str, of_torch: Structured, of_mindspore: Structured) -> None:
    net, port_net = _built(layer, "layer")
    reference, port = of_torch(net), of_mindspore(port_net)

    pairing = pair_parameters(reference, port)

    assert pairing.is_complete, pairing
    assert {pair.how for pair in pairing.pairs} == {"name"}
    expected = [
        info.name for info in reference.parameters if info.attribute != "num_batches_tracked"
    ]
    assert [pair.reference[0] for pair in pairing.pairs] == expected
    modules = pair_modules(reference, port, pairing)
    assert ("layer", "layer") in [(pair.reference, pair.port) for pair in modules.pairs]
    assert modules.unpaired_reference == ()
    assert modules.unpaired_port == ()


@pytest.mark.parametrize("layer", LAYERS)
def test_renamed_layer_pairs_by_structure(
    layer: str, of_torch: Structured, of_mindspore: Structured
) -> None:
    net, port_net = _built(layer, "operation")

    pairing = pair_parameters(of_torch(net), of_mindspore(port_net))

    assert pairing.is_complete, pairing
    named = pair_parameters(of_torch(net), of_mindspore(_built(layer, "layer")[1]))
    assert [pair.port[0].replace("operation", "layer") for pair in pairing.pairs] == [
        pair.port[0] for pair in named.pairs
    ]


@pytest.mark.parametrize(
    ("kind", "canonical"),
    [
        ("Dense", "Linear"),
        ("SequentialCell", "Sequential"),
        ("CellList", "ModuleList"),
        ("Conv2dTranspose", "ConvTranspose2d"),
        ("LayerNormExt", "LayerNorm"),
        ("LogSoftmaxExt", "LogSoftmax"),
        ("HSwish", "Hardswish"),
        ("MyBlock", "MyBlock"),
    ],
)
def test_canonical_kind(kind: str, canonical: str) -> None:
    assert canonical_kind(kind) == canonical


@pytest.mark.parametrize(
    ("component", "words", "numbers"),
    [
        ("q_proj", ("q", "proj"), ()),
        ("wq", ("q",), ()),
        ("queryProj", ("q", "proj"), ()),
        ("to_k", ("k",), ()),
        ("in_proj", ("qkv",), ()),
        ("fc1", ("fc",), (1,)),
        ("dense1", ("fc",), (1,)),
        ("lin_1", ("fc",), (1,)),
        ("ln_1", ("norm",), (1,)),
        ("attention_norm", ("attn", "norm"), ()),
        ("conv2d_3", ("conv",), (3,)),
        ("bn2d", ("norm",), ()),
        ("down_sample_layer", ("down", "layer"), ()),
    ],
)
def test_words(component: str, words: tuple[str, ...], numbers: tuple[int, ...]) -> None:
    assert words_and_numbers(component) == (words, numbers)


def test_stem_and_number() -> None:
    assert stem_and_number("layer12") == ("layer", "12")
    assert stem_and_number("ln_1") == ("ln", "1")
    assert stem_and_number("7") == ("", "7")
    assert stem_and_number("head") == ("head", "")


def test_kinds_that_conflict() -> None:
    assert may_be_one("ReLU", "HSwish", both_library=True)
    assert may_be_one("MaxPool2d", "AvgPool2d", both_library=True)
    assert not may_be_one("ReLU", "MaxPool2d", both_library=True)
    assert not may_be_one("Dropout", "ReLU", both_library=True)
    assert may_be_one("ReLU", "MyActivation", both_library=False)
