"""Convolutions: groups, bias and the layout of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.convolution import CONVOLUTIONS, IMAGE, kernel_of, port_layer
from isograd.diagnose.hypotheses.geometry import (
    spatial_rank,
)
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand


def _propose_groups(site: FunctionSite, context: Context) -> Iterator[Values]:
    groups = site.arguments.get("groups", 1)
    operand = site.arguments.get("input")
    if groups == 1 or not isinstance(operand, Operand):
        return
    axis = -1 - spatial_rank(site.place.function)
    if groups < operand.shape[axis]:
        yield {"groups": "input channels interleaved"}
    yield {"groups": "output channels interleaved"}
    yield {"groups": "none, the weights repeated"}


def _interleaved(x: Any, groups: int, axis: int) -> Any:
    return x.unflatten(axis, (-1, groups)).transpose(axis, axis + 1).flatten(axis, axis + 1)


def _other_groups(call: Call, values: Values) -> Any:
    groups = call["groups"]
    rank = spatial_rank(call.function)
    axis = call["input"].dim() - 1 - rank
    if values["groups"].startswith("input"):
        return call.run(input=_interleaved(call["input"], groups, axis))
    if values["groups"].startswith("output"):
        return _interleaved(call.run(), groups, axis)
    return call.run(weight=call["weight"].repeat(1, groups, *[1] * rank), groups=1)


def with_bias(site: FunctionSite, context: Context) -> Iterator[Values]:
    if isinstance(site.arguments.get("bias"), Operand):
        yield {"bias": None}


def _propose_layout(site: FunctionSite, context: Context) -> Iterator[Values]:
    weight = site.arguments.get("weight")
    kernel = kernel_of(site)
    if not isinstance(weight, Operand):
        return
    if any(k > 1 for k in kernel):
        yield {"layout": "flipped"}
    if len(kernel) == 2 and kernel[0] == kernel[1] > 1:
        yield {"layout": "height and width swapped"}
    if weight.shape[0] == weight.shape[1] > 1:
        yield {"layout": "input and output channels swapped"}


def _other_layout(call: Call, values: Values) -> Any:
    weight = call["weight"]
    if values["layout"] == "flipped":
        return call.run(weight=weight.flip(list(range(2, weight.dim()))))
    axes = (2, 3) if values["layout"].startswith("height") else (0, 1)
    return call.run(weight=weight.transpose(*axes))


def missing_bias(
    name: str, id: str, functions: tuple[str, ...], example: Example
) -> FunctionHypothesis:
    return FunctionHypothesis(
        name,
        id,
        functions,
        with_bias,
        lambda call, values: call.run(bias=None),
        "{function} without its bias",
        reference_value=lambda site, context: "applied",
        port_value=lambda values: "missing",
        rank=2,
        examples=(example,),
    )


HYPOTHESES = (
    FunctionHypothesis(
        "conv_groups",
        "conv.groups",
        CONVOLUTIONS,
        _propose_groups,
        _other_groups,
        "{function} with groups held otherwise: {port}",
        rank=3,
        reference_value=lambda site, context: site.arguments.get("groups"),
        port_value=lambda values: values["groups"],
        examples=(
            Example(
                "F.conv2d(x, y, groups=2)",
                "n = x.shape[0]\n"
                "x = x.reshape(n, 4, 2, 9, 9).swapaxes(1, 2).reshape(n, 8, 9, 9)\n"
                "return ops.conv2d(x, y, pad_mode='valid', groups=2)",
                ((2, 8, 9, 9), (6, 4, 3, 3)),
                port_value="input channels interleaved",
            ),
        ),
    ),
    missing_bias(
        "conv_bias",
        "conv.bias",
        (*CONVOLUTIONS, "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        Example(
            "F.conv2d(x, y, z, padding=1)",
            "ops.conv2d(x, y, pad_mode='pad', padding=1) + 0 * z.sum()",
            ((2, 4, 9, 9), (6, 4, 3, 3), (6,)),
        ),
    ),
    FunctionHypothesis(
        "conv_flipped",
        "conv.flipped",
        CONVOLUTIONS,
        lambda site, context: (
            v for v in _propose_layout(site, context) if v["layout"] == "flipped"
        ),
        _other_layout,
        "{function} with the kernel flipped: convolution instead of correlation",
        reference_value=lambda site, context: "correlation",
        port_value=lambda values: "convolution",
        rank=3,
        examples=(
            Example(
                "F.conv1d(x, y)",
                "ops.conv1d(x, y.flip((2,)), pad_mode='valid')",
                ((2, 4, 9), (6, 4, 3)),
            ),
        ),
    ),
    FunctionHypothesis(
        "conv_transposed",
        "conv.transposed",
        CONVOLUTIONS,
        lambda site, context: (
            v for v in _propose_layout(site, context) if v["layout"] != "flipped"
        ),
        _other_layout,
        "{function} with the kernel's {port}",
        reference_value=lambda site, context: "as held",
        port_value=lambda values: values["layout"],
        rank=3,
        examples=(
            Example(
                "self.conv(x)",
                "ops.conv2d(x, self.conv.weight.swapaxes(2, 3), self.conv.bias, pad_mode='valid')",
                IMAGE,
                {"conv": ("nn.Conv2d(4, 6, 3)", port_layer(pad_mode="valid"))},
                port_value="height and width swapped",
            ),
        ),
    ),
)
