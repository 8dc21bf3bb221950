"""Modules pair by what they hold, calls by their modules, shapes and values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from isograd.frameworks.base import CallInfo, ModuleInfo, ParameterInfo, Structure
from isograd.pairing import ModulePairing, pair_calls, pair_modules, pair_parameters

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


def _stack(framework: str, container: str, *, is_called: bool) -> Structure:
    """Two layers in a container that is called (Sequential), or walked through in a loop."""
    modules = [ModuleInfo("", "Net", False), ModuleInfo(container, "Sequential", True)]
    parameters: list[ParameterInfo] = []
    calls = [CallInfo("", 0, None, (), ((1, 4),))]
    if is_called:
        calls.append(CallInfo(container, 0, 0, (), ((1, 4),)))
    parent = len(calls) - 1
    for index, width in enumerate((3, 5)):
        name = f"{container}.{index}"
        modules.append(ModuleInfo(name, "Linear" if framework == "torch" else "Dense", True))
        parameters.append(
            ParameterInfo(f"{name}.weight", name, "weight", (4, width), "float32", True)
        )
        calls.append(CallInfo(name, 0, parent, (), ((1, 4),)))
    return Structure(framework, tuple(modules), tuple(parameters), tuple(calls))


@pytest.mark.parametrize("called", ["torch", "mindspore"])
def test_list_that_one_side_calls_and_the_other_walks_through_is_looked_into(called: str) -> None:
    reference = _stack("torch", "blocks", is_called=called == "torch")
    port = _stack("mindspore", "body", is_called=called == "mindspore")
    modules, found = paired(reference, port)
    assert found["blocks"] == "body"

    pairs = pair_calls(reference, port, modules)

    assert _indices(reference, pairs, port) == {"=", "blocks.0=body.0", "blocks.1=body.1"}


def _block(network: Network, framework: str, *inner: str, block_kind: str = "Block") -> Structure:
    """A network of one block; inner: names of the modules in it, outermost first, then its fc."""
    found = network(framework, f"{inner[-1]} Linear 4 4", "head Linear 4 4", "head.relu ReLU")
    modules = tuple(
        ModuleInfo(info.name, block_kind, False) if info.name == inner[0] else info
        for info in found.modules
    )
    calls = [CallInfo("", 0, None, (), ((2, 4),))]
    for depth, name in enumerate(inner):
        calls.append(CallInfo(name, 0, depth, (), ((2, 4),)))
    calls.append(CallInfo("head", 0, 0, (), ((2, 4),)))
    return Structure(framework, modules, found.parameters, tuple(calls))


def _indices(structure: Structure, pairs: tuple[tuple[int, int], ...], port: Structure) -> set[str]:
    return {f"{structure.calls[row].module}={port.calls[column].module}" for row, column in pairs}


def _equal_only(
    reference: Structure, port: Structure, *equal: tuple[str, str]
) -> Callable[[int, int], float]:
    def difference(row: int, column: int) -> float:
        names = reference.calls[row].module, port.calls[column].module
        return 1e-7 if names in equal or names[0] in ("", "head") else 0.7

    return difference


def test_values_choose_the_enclosing_container(network: Network) -> None:
    reference = _block(network, "torch", "b", "b.block", "b.block.0")
    port = _block(network, "mindspore", "block", "block.conv")
    modules, found = paired(reference, port)
    assert found["b.block"] == "block"
    same = _equal_only(reference, port, ("b", "block"), ("b.block.0", "block.conv"))

    by_name = pair_calls(reference, port, modules)
    by_value = pair_calls(reference, port, modules, same)

    rest = {"=", "b.block.0=block.conv", "head=head"}
    assert _indices(reference, by_name, port) == rest | {"b.block=block"}
    assert _indices(reference, by_value, port) == rest | {"b=block"}


def test_values_choose_the_enclosing_container_of_the_port(network: Network) -> None:
    reference = _block(network, "torch", "block", "block.conv")
    port = _block(network, "mindspore", "b", "b.block", "b.block.0")
    modules, found = paired(reference, port)
    assert found["block"] == "b.block"
    same = _equal_only(reference, port, ("block", "b"), ("block.conv", "b.block.0"))

    pairs = pair_calls(reference, port, modules, same)

    assert _indices(reference, pairs, port) == {
        "=",
        "block=b",
        "block.conv=b.block.0",
        "head=head",
    }


def test_values_choose_the_nested_container(network: Network) -> None:
    reference = _block(network, "torch", "b", "b.other", "b.other.0")
    port = _block(network, "mindspore", "b", "b.conv")
    modules, found = paired(reference, port)
    assert found["b"] == "b"
    same = _equal_only(reference, port, ("b.other", "b"), ("b.other.0", "b.conv"))

    pairs = pair_calls(reference, port, modules, same)

    assert _indices(reference, pairs, port) == {
        "=",
        "b.other=b",
        "b.other.0=b.conv",
        "head=head",
    }


def test_containers_that_differ_all_alike_keep_their_partners(network: Network) -> None:
    reference = _block(network, "torch", "b", "b.block", "b.block.0")
    port = _block(network, "mindspore", "block", "block.conv")
    modules, _ = paired(reference, port)

    faulty = pair_calls(reference, port, modules, _equal_only(reference, port))

    assert faulty == pair_calls(reference, port, modules)


def test_block_pairs_with_the_block_and_not_with_the_sequence_in_it(network: Network) -> None:
    reference = network("torch", "f.3.block Sequential", "f.3.block.0 Linear 4 4", "h Linear 4 4")
    port = network("mindspore", "layers.0.conv Linear 4 4", "fc Linear 4 4")
    _, found = paired(reference, port)
    assert found["f.3"] == "layers.0"


def test_embedding_bag_is_not_called_like_an_embedding(network: Network) -> None:
    reference = network("torch", "bag EmbeddingBag", "bag.weight = 9 4", used=["bag"])
    port = network("mindspore", "bag Embedding 9 4", used=["bag"])
    calls = (port.calls[0], CallInfo("bag", 0, 0, (), ((2, 3, 4),)))
    port = Structure("mindspore", port.modules, port.parameters, calls)
    modules, found = paired(reference, port)
    assert found["bag"] == "bag"
    assert pair_calls(reference, port, modules) == ((0, 0),)
