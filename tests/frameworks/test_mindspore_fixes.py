"""The port's fixes: cells built again, values replaced, and the edits in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mindspore")

import torch.nn.functional as F  # noqa: E402 - torch may be missing

from isograd.errors import UserCodeError  # noqa: E402
from isograd.frameworks.base import (  # noqa: E402
    NATIVE,
    PortFix,
    ReplayRequest,
    SideSpec,
    Tensors,
)
from isograd.frameworks.mindspore.source_edit import replacement_in_words  # noqa: E402
from isograd.frameworks.registry import open_framework  # noqa: E402
from isograd.tensors import TensorValue, tensor_value  # noqa: E402

DATA = Path(__file__).resolve().parent.parent / "data"
RNG = np.random.default_rng(20261121)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def opened(model: str, inputs: list[np.ndarray], mode: str = "train", **kwargs: Any) -> Any:
    """The framework with a network that has run once, its pass recorded."""
    framework = open_framework("mindspore")
    loss = "fixable_mindspore.py:loss" if model == "build" else None
    place = f"fixable_mindspore.py:{model}"
    framework.build(SideSpec("mindspore", place, str(DATA), kwargs, loss), 1)
    framework.load_state({name: drawn(value) for name, value in framework.state().items()})
    values = {str(i): tensor_value(value) for i, value in enumerate(inputs)}
    targets = [tensor_value(np.zeros((4, 6), np.float32))] if loss else []
    framework.forward(mode, values, targets, record=True)
    return framework


def drawn(value: TensorValue) -> TensorValue:
    """Parameters that are no constants; variances stay positive."""
    return tensor_value(np.abs(normal(*value.shape)) + np.float32(0.2))


X1, X2, X3 = normal(2, 4, 9), normal(2, 4, 7, 8), normal(1, 2, 4, 5, 4)
SEQUENCE = normal(3, 5, 4)
LABELS = RNG.integers(0, 5, 6).astype(np.int32)
LOGITS, TARGETS = normal(6, 5), normal(6, 5)
PROBABILITIES = np.abs(normal(6, 5)) / 9 + np.float32(0.1)

Given = dict[str, Any]
#: The cell, its inputs, torch's function, argument and value, and what torch then computes.
ROWS: list[tuple[str, list[np.ndarray], str, str, Any, Callable[..., Any]]] = [
    (
        "nn.Conv1d(4, 3, 3)",
        [X1],
        "conv1d",
        "padding",
        (2,),
        lambda p, x: F.conv1d(x, p["weight"].squeeze(2), padding=2),
    ),
    (
        "nn.Conv2d(4, 6, 3, stride=2, has_bias=True)",
        [X2],
        "conv2d",
        "padding",
        (1, 2),
        lambda p, x: F.conv2d(x, p["weight"], p["bias"], 2, (1, 2)),
    ),
    (
        "nn.Conv2d(4, 6, 3, pad_mode='pad', padding=1)",
        [X2],
        "conv2d",
        "stride",
        (2, 1),
        lambda p, x: F.conv2d(x, p["weight"], stride=(2, 1), padding=1),
    ),
    (
        "nn.Conv2d(4, 6, 3, pad_mode='pad', padding=1)",
        [X2],
        "conv2d",
        "dilation",
        2,
        lambda p, x: F.conv2d(x, p["weight"], padding=1, dilation=2),
    ),
    (
        "nn.Conv3d(2, 3, 2)",
        [X3],
        "conv3d",
        "padding",
        0,
        lambda p, x: F.conv3d(x, p["weight"]),
    ),
    (
        "nn.Conv2dTranspose(4, 3, 3, stride=2)",
        [X2],
        "conv_transpose2d",
        "padding",
        1,
        lambda p, x: F.conv_transpose2d(x, p["weight"], stride=2, padding=1),
    ),
    (
        "nn.Conv1dTranspose(4, 3, 3, pad_mode='pad', padding=1)",
        [X1],
        "conv_transpose1d",
        "stride",
        (2,),
        lambda p, x: F.conv_transpose1d(x, p["weight"].squeeze(2), stride=2, padding=1),
    ),
    (
        "nn.BatchNorm2d(4, eps=1e-3)",
        [X2],
        "batch_norm",
        "eps",
        0.1,
        lambda p, x: F.batch_norm(x, None, None, p["gamma"], p["beta"], True, eps=0.1),
    ),
    (
        "nn.BatchNorm1d(4, use_batch_statistics=False)",
        [X1[:, :, 0]],
        "batch_norm",
        "training",
        True,
        lambda p, x: F.batch_norm(x, None, None, p["gamma"], p["beta"], True),
    ),
    (
        "nn.BatchNorm3d(2, eps=1e-3)",
        [X3],
        "batch_norm",
        "eps",
        0.1,
        lambda p, x: F.batch_norm(x, None, None, p["bn2d.gamma"], p["bn2d.beta"], True, eps=0.1),
    ),
    (
        "nn.LayerNorm((9,))",
        [X1],
        "layer_norm",
        "eps",
        0.1,
        lambda p, x: F.layer_norm(x, (9,), p["gamma"], p["beta"], 0.1),
    ),
    (
        "nn.GroupNorm(2, 4)",
        [X2],
        "group_norm",
        "num_groups",
        4,
        lambda p, x: F.group_norm(x, 4, p["gamma"], p["beta"]),
    ),
    (
        "nn.GroupNorm(2, 4)",
        [X2],
        "group_norm",
        "eps",
        0.1,
        lambda p, x: F.group_norm(x, 2, p["gamma"], p["beta"], 0.1),
    ),
    *[
        (
            f"nn.{kind}Pool2d(3, stride=2)",
            [X2],
            f"{kind.lower()}_pool2d",
            argument,
            value,
            lambda p, x, kind=kind, argument=argument, value=value: getattr(
                F, f"{kind.lower()}_pool2d"
            )(x, **{"kernel_size": 3, "stride": 2, argument: value}),
        )
        for kind in ("Max", "Avg")
        for argument, value in (
            ("padding", 1),
            ("padding", (1, 0)),
            ("stride", None),
            ("ceil_mode", True),
            ("kernel_size", 2),
        )
    ],
    (
        "nn.MaxPool2d(2, stride=2)",
        [X2],
        "max_pool2d",
        "dilation",
        2,
        lambda p, x: F.max_pool2d(x, 2, 2, 0, 2),
    ),
    (
        "nn.MaxPool1d(3)",
        [X1],
        "max_pool1d",
        "padding",
        (1,),
        lambda p, x: F.max_pool1d(x, 3, 1, 1),
    ),
    (
        "nn.AvgPool1d(3)",
        [X1],
        "avg_pool1d",
        "stride",
        (2,),
        lambda p, x: F.avg_pool1d(x, 3, 2),
    ),
    (
        "nn.AvgPool2d(3, pad_mode='pad', padding=1)",
        [X2],
        "avg_pool2d",
        "count_include_pad",
        False,
        lambda p, x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    ),
    (
        "nn.AdaptiveAvgPool2d((2, 2))",
        [X2],
        "adaptive_avg_pool2d",
        "output_size",
        (1, 1),
        lambda p, x: F.adaptive_avg_pool2d(x, 1),
    ),
    ("nn.GELU()", [X1], "gelu", "approximate", "none", lambda p, x: F.gelu(x)),
    (
        "nn.LeakyReLU()",
        [X1],
        "leaky_relu",
        "negative_slope",
        0.01,
        lambda p, x: F.leaky_relu(x, 0.01),
    ),
    ("nn.Softmax(0)", [X1], "softmax", "dim", -1, lambda p, x: F.softmax(x, -1)),
    ("nn.LogSoftmax(-1)", [X1], "log_softmax", "dim", 1, lambda p, x: F.log_softmax(x, 1)),
    ("mint.nn.Softmax(0)", [X1], "softmax", "dim", 1, lambda p, x: F.softmax(x, 1)),
    (
        "nn.Hardtanh()",
        [X1],
        "hardtanh",
        "max_val",
        0.5,
        lambda p, x: F.hardtanh(x, -1, 0.5),
    ),
    (
        "nn.Upsample(scale_factor=(2.0, 2.0), mode='bilinear', recompute_scale_factor=True)",
        [X2],
        "interpolate",
        "align_corners",
        True,
        lambda p, x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
    ),
    ("nn.Flatten(2)", [X2], "flatten", "start_dim", 1, lambda p, x: x.flatten(1)),
    (
        "nn.LSTM(4, 4, batch_first=False)",
        [SEQUENCE],
        "lstm",
        "batch_first",
        True,
        lambda p, x: recurrent(torch.nn.LSTM(4, 4, batch_first=True), p, x),
    ),
    (
        "nn.RNN(4, 4, nonlinearity='relu')",
        [SEQUENCE],
        "rnn_relu",
        "nonlinearity",
        "tanh",
        lambda p, x: recurrent(torch.nn.RNN(4, 4), p, x),
    ),
    (
        "nn.CrossEntropyLoss()",
        [LOGITS, LABELS],
        "cross_entropy",
        "label_smoothing",
        0.1,
        lambda p, x, t: F.cross_entropy(x, t.long(), label_smoothing=0.1),
    ),
    (
        "nn.NLLLoss()",
        [LOGITS, LABELS],
        "nll_loss",
        "ignore_index",
        2,
        lambda p, x, t: F.nll_loss(x, t.long(), ignore_index=2),
    ),
    (
        "nn.SmoothL1Loss()",
        [LOGITS, TARGETS],
        "smooth_l1_loss",
        "reduction",
        "mean",
        lambda p, x, t: F.smooth_l1_loss(x, t),
    ),
    (
        "nn.SmoothL1Loss(reduction='sum')",
        [LOGITS, TARGETS],
        "smooth_l1_loss",
        "beta",
        0.5,
        lambda p, x, t: F.smooth_l1_loss(x, t, beta=0.5, reduction="sum"),
    ),
    (
        "nn.HuberLoss()",
        [LOGITS, TARGETS],
        "huber_loss",
        "delta",
        0.5,
        lambda p, x, t: F.huber_loss(x, t, delta=0.5),
    ),
    *[
        (
            f"nn.{cell}()",
            [PROBABILITIES, PROBABILITIES[::-1].copy()],
            function,
            "reduction",
            "sum",
            lambda p, x, t, function=function: getattr(F, function)(x, t, reduction="sum"),
        )
        for cell, function in (
            ("MSELoss", "mse_loss"),
            ("L1Loss", "l1_loss"),
            ("BCELoss", "binary_cross_entropy"),
            ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits"),
            ("KLDivLoss", "kl_div"),
        )
    ],
]


def recurrent(layer: Any, parameters: Given, x: Any) -> Any:
    with torch.no_grad():
        for name, value in layer.named_parameters():
            value.copy_(parameters[name])
    return layer(x)[0]


@pytest.mark.parametrize("row", ROWS, ids=[f"{r[0]}-{r[3]}={r[4]}" for r in ROWS])
def test_a_cell_built_again_computes_what_torch_computes(row: Any) -> None:
    cell, inputs, function, argument, value, expected = row
    framework = opened("around", inputs, cell=cell)
    before = framework.state()
    fix = framework.fix_for("layer", function, argument, value)
    assert fix is not None
    assert fix.kind == "rebuild"
    weights = {
        name.removeprefix("layer."): torch.from_numpy(v.values.copy()) for name, v in before.items()
    }
    found = framework.replay(ReplayRequest(0, (), (), ()), NATIVE, (fix,))["output.0"].values
    if expected is not None:
        wanted = expected(weights, *map(torch.from_numpy, inputs)).detach().numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)
    assert same(framework.state(), before)
    plain = framework.replay(ReplayRequest(0, (), (), ()))["output.0"].values
    np.testing.assert_array_equal(plain, framework.recorded(0)["output.0"].values)
    assert plain.shape != found.shape or not np.allclose(plain, found, rtol=1e-5)


def same(first: Tensors, second: Tensors) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(first[k].values, second[k].values) for k in first
    )


def test_gradients_and_statistics_stay_with_the_old_parameters() -> None:
    framework = opened("around", [X2], cell="nn.BatchNorm2d(4, momentum=0.9)")
    fix = framework.fix_for("layer", "batch_norm", "momentum", 0.3)
    assert fix == PortFix("rebuild", "layer", arguments={"momentum": 0.7})
    start = framework.state()["layer.moving_mean"].values
    request = ReplayRequest(
        0,
        (),
        (),
        (),
        (tensor_value(normal(*X2.shape)),),
        (),
        ("layer.gamma",),
        ("layer.moving_mean",),
        True,
    )
    found = framework.replay(request, NATIVE, (fix,))
    moved = 0.7 * start + 0.3 * X2.mean((0, 2, 3))
    np.testing.assert_allclose(found["buffer.layer.moving_mean"].values, moved, rtol=1e-5)
    plain = framework.replay(request)
    assert np.any(found["gradient.parameter.layer.gamma"].values)
    np.testing.assert_array_equal(
        found["gradient.parameter.layer.gamma"].values,
        plain["gradient.parameter.layer.gamma"].values,
    )


def test_statistics_move_once_where_a_batch_norm_is_replaced() -> None:
    framework = opened("around", [X2], cell="nn.BatchNorm2d(4, momentum=0.5)")
    arguments = {
        "input": "@input.0",
        "running_mean": "@parameter.layer.moving_mean",
        "running_var": "@parameter.layer.moving_variance",
        "training": True,
        "momentum": 0.1,
        "eps": 0.1,
    }
    fix = PortFix("replace", target="output.0", function="batch_norm", arguments=arguments)
    start = framework.state()["layer.moving_mean"].values
    request = ReplayRequest(0, (), (), (), buffers=("layer.moving_mean",))
    found = framework.replay(request, NATIVE, (fix,))
    wanted = F.batch_norm(torch.from_numpy(X2), None, None, training=True, eps=0.1)
    np.testing.assert_allclose(found["output.0"].values, wanted.numpy(), rtol=1e-4, atol=1e-5)
    moved = 0.9 * start + 0.1 * X2.mean((0, 2, 3))
    np.testing.assert_allclose(found["buffer.layer.moving_mean"].values, moved, rtol=1e-5)


@pytest.mark.parametrize(
    ("cell", "function", "argument", "value", "arguments"),
    [
        ("nn.Conv2d(4, 4, 3)", "conv2d", "padding", (1, 2), {"padding": (1, 1, 2, 2)}),
        ("nn.Conv2d(4, 4, 3, has_bias=True)", "conv2d", "groups", 2, {"group": 2}),
        ("mint.nn.Conv2d(4, 4, 3)", "conv2d", "padding", (1, 1), {"padding": 1}),
        ("mint.nn.Conv2d(4, 4, 3)", "conv2d", "padding_mode", "reflect", None),
        ("mint.nn.BatchNorm2d(4)", "batch_norm", "momentum", 0.3, {"momentum": 0.3}),
        ("nn.Conv2d(4, 4, 3)", "conv2d", "padding_mode", "reflect", {}),
        ("nn.Dropout(p=0.5)", "dropout", "p", 0.1, {"p": 0.1}),
        ("nn.ReLU()", "relu", "inplace", True, {}),
        ("nn.Softmax(1)", "softmax", "dim", 1, {}),
        ("nn.Embedding(7, 4)", "embedding", "padding_idx", 0, {"padding_idx": 0}),
        ("nn.LSTM(4, 4)", "lstm", "bidirectional", True, {"bidirectional": True}),
    ],
)
def test_torchs_settings_in_mindspores_words(
    cell: str, function: str, argument: str, value: Any, arguments: Given | None
) -> None:
    framework = open_framework("mindspore")
    spec = SideSpec("mindspore", "fixable_mindspore.py:around", str(DATA), {"cell": cell})
    framework.build(spec, 1)
    fix = framework.fix_for("layer", function, argument, value)
    if arguments == {}:
        assert fix is None
    elif arguments is None:
        assert fix.arguments == {argument: value}
    else:
        assert arguments.items() <= fix.arguments.items()


@pytest.mark.parametrize(
    ("cell", "arguments", "message"),
    [
        ("nn.Dense(6, 6, has_bias=False)", {"has_bias": True}, "has_bias=True needs another bias"),
        ("nn.Dense(6, 6)", {"out_channels": 7}, "needs another weight"),
        ("nn.Dense(6, 6)", {"colour": 3}, "cannot be built with colour=3"),
    ],
)
def test_a_cell_that_needs_other_parameters_is_refused(
    cell: str, arguments: Given, message: str
) -> None:
    framework = opened("around", [normal(4, 6)], cell=cell)
    fix = PortFix("rebuild", "layer", arguments=arguments)
    with pytest.raises(UserCodeError, match=message):
        framework.replay(ReplayRequest(0, (), (), ()), NATIVE, (fix,))
    plain = framework.replay(ReplayRequest(0, (), (), ()))["output.0"].values
    np.testing.assert_array_equal(plain, framework.recorded(0)["output.0"].values)


@pytest.fixture(scope="module")
def network() -> Any:
    return opened("build", [normal(4, 6)])


def call_of(framework: Any, module: str) -> int:
    return next(i for i, call in enumerate(framework.calls()) if call.module == module)


def pinned_request(framework: Any, backward: bool = False) -> ReplayRequest:
    """The block alone, its three leading cells given."""
    names = ("block.linear", "block.norm", "block.slope")
    pins = tuple(call_of(framework, name) for name in names)
    call = call_of(framework, "block")
    if not backward:
        return ReplayRequest(call, pins, (), ((),) * 3)
    cotangent = tensor_value(np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6))
    parameters = ("block.linear.weight",)
    none: tuple[tuple[None, ...], ...] = ((None,),) * 3
    return ReplayRequest(call, pins, (), ((),) * 3, (cotangent,), none, parameters, (), True)


NAMES = (
    "Softmax Softmax swapaxes MatMul getitem add rsub mul Tanh stop_gradient exp add gelu tanh add "
    "silu softmax add split split cat truediv"
).split()


def test_every_way_to_call_a_function_is_noted(network: Any) -> None:
    events = network.trace(pinned_request(network))
    assert [event.function for event in events] == NAMES
    assert all(event.where.startswith("fixable_mindspore.py:") for event in events)
    whole = network.trace(ReplayRequest(call_of(network, "block"), (), (), ()))
    assert [event.function for event in whole] == ["Dense", "LayerNorm", "LeakyReLU", *NAMES]
    root = network.trace(ReplayRequest(0, (), (), ()))
    assert [event.function for event in root][-1] == "mul"


def test_a_library_cell_alone_is_noted_by_its_functions(network: Any) -> None:
    events = network.trace(ReplayRequest(call_of(network, "block.linear"), (), (), ()))
    assert "Dense" not in [event.function for event in events]
    np.testing.assert_array_equal(
        events[-1].value.values,
        network.recorded(call_of(network, "block.linear"))["output.0"].values,
    )


def softmax_of(reference: str, target: str = "event.0") -> PortFix:
    arguments = {"input": reference, "dim": -1}
    return PortFix("replace", target=target, function="softmax", arguments=arguments)


@pytest.mark.parametrize("reference", ["@argument.0", "@pin.2.0"])
def test_a_replaced_event_is_as_if_the_cell_were_built_so(network: Any, reference: str) -> None:
    request = pinned_request(network, backward=True)
    rebuilt = network.replay(
        request, NATIVE, (network.fix_for("block.softmax", "softmax", "dim", -1),)
    )
    replaced = network.replay(request, NATIVE, (softmax_of(reference),))
    plain = network.replay(request)
    assert replaced.keys() == rebuilt.keys()
    for key, value in rebuilt.items():
        np.testing.assert_allclose(replaced[key].values, value.values, rtol=1e-4, atol=1e-6)
    assert not np.allclose(plain["output.0"].values, replaced["output.0"].values)
    assert not np.allclose(
        plain["gradient.pin.2.0"].values, replaced["gradient.pin.2.0"].values, rtol=1e-3
    )


def test_replacing_keeps_the_numbers_of_events(network: Any) -> None:
    request = pinned_request(network)
    before = network.trace(request)
    after = network.trace(request, (softmax_of("@result", "event.8"),))
    assert [e.function for e in after] == [e.function for e in before]
    for number in range(8):
        np.testing.assert_array_equal(after[number].value.values, before[number].value.values)
    np.testing.assert_allclose(after[8].value.values.sum(-1), 1, rtol=1e-5)


def test_values_at_the_ends_are_replaced(network: Any) -> None:
    request = pinned_request(network)
    plain = network.replay(request)
    fixes = (
        PortFix("replace", "", "output.0", "mul", {"input": "@result", "other": 2.0}),
        PortFix("replace", "", "input_of.1.0", "neg", {"input": "@result"}),
    )
    found = network.replay(request, NATIVE, fixes)
    np.testing.assert_allclose(found["output.0"].values, 2 * plain["output.0"].values)
    np.testing.assert_array_equal(found["input_of.1.0"].values, -plain["input_of.1.0"].values)
    # What pin 0 gives reaches pin 1 as its input.
    fix = PortFix("replace", "", "pin.0.0", "add", {"input": "@result", "other": "@input.0"})
    found = network.replay(request, NATIVE, (fix,))
    given = network.recorded(call_of(network, "block"))["input.0"].values
    np.testing.assert_allclose(
        found["input_of.1.0"].values, plain["input_of.1.0"].values + given, rtol=1e-6
    )


def test_a_stopped_gradient_can_flow(network: Any) -> None:
    request = pinned_request(network, backward=True)
    fix = PortFix("replace", "", "event.9", "identity", {"input": "@argument.0"})
    plain, found = network.replay(request), network.replay(request, NATIVE, (fix,))
    np.testing.assert_array_equal(plain["output.0"].values, found["output.0"].values)
    assert not np.allclose(
        plain["gradient.pin.2.0"].values, found["gradient.pin.2.0"].values, rtol=1e-3
    )


def test_parts_constants_and_parameters(network: Any) -> None:
    request = pinned_request(network)
    events = network.trace(request)
    weight = network.state()["block.linear.weight"].values[:4]
    second = PortFix(
        "replace", "", "event.19", "chunk", {"input": "@event.17", "chunks": 2, "dim": 1}
    )
    np.testing.assert_allclose(
        network.trace(request, (second,))[19].value.values, events[19].value.values, rtol=1e-6
    )
    index = {"input": "@parameter.block.linear.weight", "index": "slice(None, 4, None)"}
    fixes = (
        PortFix("replace", "", "event.0", "getitem", index),
        PortFix(
            "replace",
            "",
            "event.20",
            "cat",
            {"tensors": ("@event.0", "@event.1", tensor_value(weight)), "dim": 0},
        ),
    )
    found = network.trace(request, fixes)
    np.testing.assert_array_equal(found[0].value.values, weight)
    np.testing.assert_array_equal(found[20].value.values[:4], weight)
    np.testing.assert_array_equal(found[20].value.values[8:], weight)


@pytest.mark.parametrize(
    ("fix", "message"),
    [
        (softmax_of("@result", "event.99"), "never reaches event.99"),
        (softmax_of("@result", "input_of.0.5"), "never reaches input_of.0.5"),
        (softmax_of("@event.5"), "@event.5 is not there when event.0 is computed"),
        (softmax_of("@parameter.no"), "@parameter.no is not there"),
        (softmax_of("@argument.7"), "@argument.7 is not there"),
        (PortFix("replace", "", "event.0", "conjure"), "cannot compute torch's 'conjure'"),
        (
            PortFix("replace", "", "event.0", "softmax", {"colour": 1}),
            "softmax cannot be computed at event.0: TypeError",
        ),
        (PortFix("rebuild", "nowhere"), "no cell 'nowhere'"),
        (PortFix("remove"), "no fix of kind 'remove'"),
    ],
)
@pytest.mark.parametrize("backward", [False, True])
def test_a_fix_that_cannot_be_applied_says_why(
    network: Any, fix: PortFix, message: str, backward: bool
) -> None:
    request = pinned_request(network, backward)
    before = network.replay(request)
    with pytest.raises(UserCodeError, match=message):
        network.replay(request, NATIVE, (fix,))
    assert same(network.replay(request), before)


def test_the_loss_is_traced_and_fixed(network: Any) -> None:
    output = network.recorded(0)["output.0"]
    target = tensor_value(normal(4, 6))
    events = network.trace_loss([output], [target])
    assert [event.function for event in events] == ["SmoothL1Loss", "sum"]
    assert network.edit_text(PortFix("replace", "", "event.1", "mean"))[0] == "return found.sum()"
    given = {"input": "@input.0", "target": "@target.0"}
    wanted = F.smooth_l1_loss(torch.tensor(output.values), torch.tensor(target.values))
    for at, arguments in (("loss", given), ("output.0", given), ("event.1", given)):
        fix = PortFix("replace", "", at, "smooth_l1_loss", arguments)
        found = network.loss([output], [target], NATIVE, (fix,))
        np.testing.assert_allclose(found["loss"].values, wanted.numpy(), rtol=1e-5)
        plain = network.loss([output], [target])
        np.testing.assert_allclose(
            24 * found["gradient.output.0"].values, plain["gradient.output.0"].values, rtol=1e-4
        )


@pytest.mark.parametrize(
    ("module", "setting", "text"),
    [
        (
            "norm",
            ("layer_norm", "eps", 1e-5),
            "nn.LayerNorm((width,), epsilon=1e-7) → nn.LayerNorm((width,), epsilon=1e-05)",
        ),
        (
            "slope",
            ("leaky_relu", "negative_slope", 0.01),
            "nn.LeakyReLU(alpha=0.2) → nn.LeakyReLU(alpha=0.01)",
        ),
        ("softmax", ("softmax", "dim", -1), "nn.Softmax(0) → nn.Softmax(-1)"),
    ],
)
def test_an_edit_in_words(network: Any, module: str, setting: Any, text: str) -> None:
    fix = network.fix_for(f"block.{module}", *setting)
    said, where = network.edit_text(fix)
    assert said == text
    line = int(where.removeprefix("fixable_mindspore.py:"))
    source = (DATA / "fixable_mindspore.py").read_text().splitlines()[line - 1]
    assert text.partition("(")[0] in source


def test_an_edit_of_a_call_is_its_line(network: Any) -> None:
    network.trace(pinned_request(network))
    text, where = network.edit_text(softmax_of("@result", "event.4"))
    assert text == "y = 2.0 - (y[:, 0:1] + 1.0)"
    assert where.startswith("fixable_mindspore.py:")
    assert replacement_in_words(softmax_of("@result", "output.0")) == "return softmax(…, dim=-1)"


def test_a_cell_that_no_source_shows_is_described_in_words() -> None:
    framework = open_framework("mindspore")
    cell = "nn.LayerNorm((6,))"
    spec = SideSpec("mindspore", "fixable_mindspore.py:around", str(DATA), {"cell": cell})
    structure = framework.build(spec, 1)
    fix = framework.fix_for("layer", "layer_norm", "eps", 1e-5)
    text, where = framework.edit_text(fix)
    assert text == "build it with epsilon=1e-05"
    assert where == structure.modules[1].where
    assert structure.modules[1].arguments["epsilon"] == 1e-7


def test_torchs_modules_tell_their_arguments() -> None:
    framework = open_framework("torch")
    spec = SideSpec("torch", "conformance_torch.py:build", str(DATA))
    modules = {m.name: m for m in framework.build(spec, 1).modules}
    assert modules["norm"].arguments["eps"] == 1e-5
    assert modules["norm"].arguments["momentum"] == 0.1
    assert modules["gate"].arguments == {}


@pytest.mark.parametrize(
    ("module", "setting", "text"),
    [
        # Two calls of the class stand on this line: which one it is cannot be told.
        ("second", ("layer_norm", "eps", 1e-5), "build it with epsilon=1e-05"),
        ("unpacked", ("layer_norm", "eps", 1e-5), "build it with epsilon=1e-05"),
        (
            "copied",
            ("leaky_relu", "negative_slope", 0.1),
            "nn.LeakyReLU(0.3) → nn.LeakyReLU(0.1)",
        ),
        (
            "long",
            ("conv2d", "stride", 2),
            "nn.Conv2d(…, stride=(1, 1)) → nn.Conv2d(…, stride=2)",
        ),
    ],
)
def test_an_edit_of_a_call_that_is_not_plain(module: str, setting: Any, text: str) -> None:
    framework = open_framework("mindspore")
    framework.build(SideSpec("mindspore", "fixable_mindspore.py:built", str(DATA)), 1)
    said, where = framework.edit_text(framework.fix_for(module, *setting))
    assert said == text
    assert where.startswith("fixable_mindspore.py:")


def test_nothing_stays_wrapped(network: Any) -> None:
    import mindspore as ms
    from mindspore import nn, ops

    def names() -> list[Any]:
        owners = (ops, ms.mint, ms.Tensor, nn.Cell, ops.Primitive, ops.Softmax)
        cells = [cell.__dict__.keys() for cell in network._cells.values()]
        return [dict(vars(owner)) for owner in owners] + [list(keys) for keys in cells]

    before = names()
    network.trace(pinned_request(network))
    network.replay(pinned_request(network, True), NATIVE, (softmax_of("@result"),))
    with pytest.raises(UserCodeError):
        network.replay(pinned_request(network, True), NATIVE, (softmax_of("@event.99"),))
    assert names() == before
