"""Modules pair by what they hold, calls by their modules, shapes and values."""

from __future__ import annotations

from collections.abc import Callable

from isograd.compare.pairing import ModulePairing, pair_calls, pair_modules, pair_parameters
from isograd.frameworks.base import CallInfo, ModuleInfo, Structure

Network = Callable[..., Structure]


def paired(reference: Structure, port: Structure) -> tuple[ModulePairing, dict[str, str]]:
    pairing = pair_modules(reference, port, pair_parameters(reference, port))
    return pairing, {pair.reference: pair.port for pair in pairing.pairs}


def test_layers_and_containers_pair_by_their_parameters(network: Network) -> None:
    reference = network(
        "torch", "layer1.0.conv Conv2d 3 8 3", "layer1.0.bn BatchNorm2d 8", "fc Linear 8 2"
    )
    port = network(
        "mindspore", "body.a.b.c Conv2d 3 8 3", "body.a.n BatchNorm2d 8", "head.fc Linear 8 2"
    )

    pairing, found = paired(reference, port)

    assert found["layer1.0.conv"] == "body.a.b.c"
    assert found["layer1.0.bn"] == "body.a.n"
    assert found["layer1"] == "body"
    assert found["layer1.0"] == "body.a"
    assert found["fc"] == "head.fc"
    assert found[""] == ""
    assert pairing.unpaired_port == ("body.a.b", "head")


def test_attention_with_a_fused_projection_pairs_as_a_whole(network: Network) -> None:
    reference = network("torch", "x.attn.in_proj_weight = 24 8", "x.attn.out_proj Linear 8 8")
    port = network(
        "mindspore", *(f"y.a.{name} LinearNoBias 8 8" for name in "qkv"), "y.a.o Linear 8 8"
    )

    pairing, found = paired(reference, port)

    assert found["x.attn"] == "y.a"
    assert found["x.attn.out_proj"] == "y.a.o"
    assert pairing.unpaired_port == ("y.a.q", "y.a.k", "y.a.v")


def test_module_with_a_missing_bias_still_pairs(network: Network) -> None:
    reference = network("torch", "a.fc Linear 4 8", "a.g Linear 8 4")
    _, found = paired(reference, network("mindspore", "b.fc LinearNoBias 4 8", "b.g Linear 8 4"))
    assert found == {"": "", "a": "b", "a.fc": "b.fc", "a.g": "b.g"}


def test_layer_with_a_wrong_shape_pairs_by_name(network: Network) -> None:
    reference = network("torch", "a Linear 4 8", "fc Linear 8 10")
    _, found = paired(reference, network("mindspore", "a Linear 4 8", "fc Linear 8 11"))
    assert found["fc"] == "fc"


def test_modules_without_parameters_pair_by_name_then_by_kind(network: Network) -> None:
    reference = network(
        "torch", "b.conv Conv2d 3 8 3", "b.relu ReLU", "b.pool MaxPool2d", "b.drop Dropout"
    )
    port = network(
        "mindspore", "c.conv Conv2d 3 8 3", "c.act ReLU", "c.pool AvgPool2d", "c.gate Sigmoid"
    )

    pairing, found = paired(reference, port)

    assert found["b.relu"] == "c.act"
    assert found["b.pool"] == "c.pool"
    assert pairing.parameterless_reference == ("b.drop",)
    assert pairing.parameterless_port == ("c.gate",)
    assert pairing.unpaired_reference == ()


def test_activations_stay_in_their_block(network: Network) -> None:
    reference = network(
        "torch",
        *(line for block in "ab" for line in (f"{block}.fc Linear 4 4", f"{block}.relu ReLU")),
    )
    port = network(
        "mindspore",
        *(line for block in "ba" for line in (f"{block}.lin Linear 4 4", f"{block}.act ReLU")),
    )
    _, found = paired(reference, port)
    assert found["a.relu"] == f"{found['a']}.act"
    assert found["b.relu"] == f"{found['b']}.act"


def _three_activations(network: Network) -> tuple[Structure, Structure]:
    layers = [f"fc{index} Linear 4 4" for index in range(3)]
    reference = network(
        "torch", *layers, "relu ReLU", used=["fc0", "relu", "fc1", "relu", "fc2", "relu"]
    )
    port = network(
        "mindspore",
        *layers,
        *(f"act{index} ReLU" for index in range(3)),
        used=["fc0", "act0", "fc1", "act1", "fc2", "act2"],
    )
    return reference, port


def test_shared_module_meets_separate_ones_call_by_call(network: Network) -> None:
    reference, port = _three_activations(network)
    modules, _ = paired(reference, port)

    pairs = pair_calls(reference, port, modules)

    assert pairs == tuple((index, index) for index in range(7))


def test_separate_modules_meet_a_shared_one(network: Network) -> None:
    port, reference = _three_activations(network)
    modules, _ = paired(reference, port)
    assert pair_calls(reference, port, modules) == tuple((index, index) for index in range(7))


def test_missing_activation_leaves_its_call_alone(network: Network) -> None:
    reference, port = _three_activations(network)
    calls = tuple(call for call in port.calls if call.module != "act1")
    shorter = Structure("mindspore", port.modules, port.parameters, calls)
    modules, _ = paired(reference, shorter)

    pairs = pair_calls(reference, shorter, modules)

    assert pairs == ((0, 0), (1, 1), (2, 2), (3, 3), (5, 4), (6, 5))


def test_calls_of_other_kinds_or_shapes_never_pair(network: Network) -> None:
    reference = network("torch", "fc Linear 4 4", "act ReLU", used=["fc", "act"])
    port = network("mindspore", "fc Linear 4 4", "drop Dropout", used=["drop", "fc"])
    modules, _ = paired(reference, port)
    assert pair_calls(reference, port, modules) == ((0, 0), (1, 2))


def test_values_decide_between_alike_calls(network: Network) -> None:
    reference = network("torch", "fc Linear 4 4", "relu ReLU", used=["relu", "relu", "fc"])
    port = network(
        "mindspore", "fc Linear 4 4", "a ReLU", "b ReLU", "c ReLU", used=["a", "b", "c", "fc"]
    )
    modules, _ = paired(reference, port)
    equal = {(1, 2), (2, 3)}

    by_order = pair_calls(reference, port, modules)
    by_value = pair_calls(
        reference, port, modules, lambda call, other: 1e-7 if (call, other) in equal else 1.0
    )

    assert len(by_order) == 4
    assert by_value == ((0, 0), (1, 2), (2, 3), (3, 4))


def _nested(port: bool) -> Structure:
    """A block that is called twice; the port nests it once more."""
    prefix = "wrap.block" if port else "block"
    modules = [ModuleInfo("", "Net", False), ModuleInfo(prefix, "Block", False)]
    modules += [ModuleInfo(f"{prefix}.relu", "ReLU", True)]
    calls = [CallInfo("", 0, None, (), ())]
    if port:
        modules.append(ModuleInfo("wrap", "Wrap", False))
        calls.append(CallInfo("wrap", 0, 0, (), ((1,),)))
    outer = len(calls) - 1
    for occurrence in range(2):
        calls.append(CallInfo(prefix, occurrence, outer, (), ((2,),)))
        calls.append(CallInfo(f"{prefix}.relu", occurrence, len(calls) - 1, (), ((2,),)))
    return Structure("torch", tuple(modules), (), tuple(calls))


def test_calls_pair_through_an_additional_level() -> None:
    reference, port = _nested(port=False), _nested(port=True)
    modules, found = paired(reference, port)

    pairs = pair_calls(reference, port, modules)

    assert found["block"] == "wrap.block"
    assert pairs == ((0, 0), (1, 2), (2, 3), (3, 4), (4, 5))
