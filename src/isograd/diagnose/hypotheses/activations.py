"""Activations: their approximation and their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import rank_of
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Scale,
    Values,
    operands,
    other_number,
)
from isograd.frameworks.base import FunctionSite, Operand

_RELU6 = 6.0


def always(site: FunctionSite, context: Context) -> Iterator[Values]:
    yield {}


def _propose_slope(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Leaky ReLU by hand: x times a number, chosen where x is negative."""
    number, source = site.arguments.get("other"), site.arguments.get("input")
    if not isinstance(number, (int, float)) or not isinstance(source, Operand):
        return
    for choice in context.consumers(site):
        if choice.place.function in ("where", "maximum", "max"):
            if source.source in [o.source for o in operands(choice)]:
                yield {}
                return


def _limited(call: Call, values: Values) -> Any:
    return call["input"].clamp(call.arguments.get("min_val", 0.0)).clamp(max=values["max_val"])


def _silu(call: Call, values: Values) -> Any:
    import torch

    x = call["input"]
    return x * torch.sigmoid(values["beta"] * x)


def _glu(call: Call, values: Values) -> Any:
    import torch

    gate, value = call["input"].chunk(2, call.arguments.get("dim", -1))
    return value * torch.sigmoid(gate)


def _propose_prelu_axis(site: FunctionSite, context: Context) -> Iterator[Values]:
    x, weight = site.arguments.get("input"), site.arguments.get("weight")
    if isinstance(x, Operand) and isinstance(weight, Operand) and weight.shape[0] > 1:
        for axis in range(rank_of(x)):
            if axis != 1 and x.shape[axis] == weight.shape[0]:
                yield {"axis": axis}


def _prelu_axis(call: Call, values: Values) -> Any:
    x, axis = call["input"], values["axis"]
    return call.run(input=x.transpose(1, axis)).transpose(1, axis)


HYPOTHESES = (
    other_number(
        "leaky_relu_negative_slope",
        "leaky_relu.negative_slope",
        ("leaky_relu",),
        "negative_slope",
        Number("negative_slope", (0.2, 0.01, 0.1, 0.3, 0.05, 0.0), Scale.LINEAR),
        "leaky ReLU with slope {port} instead of {reference}",
        rank=2,
        examples=(Example("F.leaky_relu(x, 0.1)", "ops.leaky_relu(x, 0.17)", port_value=0.17),),
    ),
    FunctionHypothesis(
        "leaky_relu_by_hand",
        "leaky_relu.negative_slope",
        ("mul",),
        _propose_slope,
        lambda call, values: call.run(other=values["slope"]),
        "leaky ReLU with slope {port} instead of {reference}",
        numbers=(Number("slope", (0.2, 0.01, 0.1, 0.3, 0.05, 0.0), Scale.LINEAR),),
        reference_value=lambda site, context: site.arguments.get("other"),
        rank=2,
        examples=(
            Example("torch.where(x > 0, x, 0.1 * x)", "ops.leaky_relu(x, 0.2)", port_value=0.2),
        ),
    ),
    other_number(
        "elu_alpha",
        "elu.alpha",
        ("elu", "celu"),
        "alpha",
        Number("alpha", (1.0, 0.1, 0.3, 0.5, 2.0), may_vanish=False),
        "{function} with alpha {port} instead of {reference}",
        rank=2,
        examples=(Example("F.elu(x, 0.5)", "ops.elu(x)", port_value=1.0),),
    ),
    FunctionHypothesis(
        "softplus_beta",
        "softplus.beta",
        ("softplus",),
        always,
        lambda call, values: call.run(beta=values["beta"]),
        "softplus with beta {port} instead of {reference}",
        numbers=(Number("beta", (1.0, 2.0, 0.5, 5.0, 10.0)),),
        reference_value=lambda site, context: site.arguments.get("beta", 1.0),
        rank=2,
        examples=(Example("F.softplus(x, 2.0)", "ops.log(1 + ops.exp(x))", port_value=1.0),),
    ),
    FunctionHypothesis(
        "softplus_threshold",
        "softplus.threshold",
        ("softplus",),
        lambda site, context: ({"threshold": float(n)} for n in (1, 2, 5, 10, 20)),
        lambda call, values: call.run(**values),
        "softplus is linear above {port} instead of {reference}",
        reference_value=lambda site, context: site.arguments.get("threshold", 20.0),
        port_value=lambda values: values["threshold"],
        rank=2,
        examples=(
            Example(
                "F.softplus(4 * x, 1.0, 5.0)",
                "ops.where(4 * x > 2, 4 * x, ops.log(1 + ops.exp(ops.clamp(4 * x, -50, 2))))",
                port_value=2.0,
            ),
        ),
    ),
    other_number(
        "hardtanh_min",
        "hardtanh.min_val",
        ("hardtanh",),
        "min_val",
        Number("min_val", (-1.0, 0.0, -2.0, -0.5), Scale.LINEAR),
        "{function} with the lower limit {port} instead of {reference}",
        rank=2,
        examples=(Example("F.hardtanh(x)", "ops.clamp(x, -0.6, 1.0)", port_value=-0.6),),
    ),
    FunctionHypothesis(
        "hardtanh_max",
        "hardtanh.max_val",
        ("hardtanh", "relu6"),
        always,
        _limited,
        "{function} with the upper limit {port} instead of {reference}",
        numbers=(Number("max_val", (1.0, 6.0, 2.0, 0.5, 4.0, 8.0), Scale.LINEAR),),
        reference_value=lambda site, context: site.arguments.get("max_val", _RELU6),
        rank=2,
        examples=(
            Example("F.relu6(4 * x)", "ops.clamp(4 * x, 0.0, 5.0)", port_value=5.0),
            Example("F.hardtanh(x, -0.5, 0.5)", "ops.clamp(x, -0.5, 0.7)", port_value=0.7),
        ),
    ),
    FunctionHypothesis(
        "silu_beta",
        "silu.beta",
        ("silu",),
        always,
        _silu,
        "SiLU with beta {port} instead of {reference}",
        numbers=(Number("beta", (1.702, 0.5, 1.5, 2.0)),),
        reference_value=lambda site, context: 1.0,
        rank=2,
        examples=(Example("F.silu(x)", "x * ops.sigmoid(1.5 * x)", port_value=1.5),),
    ),
    FunctionHypothesis(
        "glu_order",
        "glu.order",
        ("glu",),
        always,
        _glu,
        "GLU with the sigmoid on the first half instead of the second",
        reference_value=lambda site, context: "second half",
        port_value=lambda values: "first half",
        rank=2,
        examples=(Example("F.glu(x)", "a, b = ops.chunk(x, 2, -1)\nreturn ops.sigmoid(a) * b"),),
    ),
    FunctionHypothesis(
        "prelu_axis",
        "prelu.axis",
        ("prelu",),
        _propose_prelu_axis,
        _prelu_axis,
        "PReLU with its weights along axis {port} instead of {reference}",
        reference_value=lambda site, context: 1,
        port_value=lambda values: values["axis"],
        rank=2,
        examples=(
            Example(
                "F.prelu(x, y)",
                "ops.relu(x) - y * ops.relu(-x)",
                ((4, 6, 6), (6,)),
                port_value=2,
            ),
        ),
    ),
)
