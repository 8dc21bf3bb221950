"""Softmax: its axis and its temperature."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Number, Values
from isograd.frameworks.base import FunctionSite, Operand

_FUNCTIONS = ("softmax", "log_softmax")
#: A softmax whose result gets here weighs something: it is attention's.
_HIDES = ("masked_fill", "where", "add", "sub", "baddbmm")
_WEIGHS = ("matmul", "bmm", "einsum", "baddbmm")


def _axis(site: FunctionSite, context: Context) -> Any:
    return site.arguments.get("dim")


def _propose_axis(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand, own = site.arguments.get("input"), site.arguments.get("dim")
    if not isinstance(operand, Operand):
        return
    rank = len(operand.shape)
    # torch's own choice where no axis is given
    own = own if isinstance(own, int) else (0 if rank in (0, 1, 3) else 1)
    masked = context.comes_from(site, _HIDES, 4)
    for axis in range(rank):
        if axis != own % rank and operand.shape[axis] > 1:
            yield {"dim": axis - rank if own < 0 else axis, "hidden": -1e30}
            if masked:
                yield {"dim": axis - rank if own < 0 else axis, "hidden": -math.inf}


def _over(call: Call, values: Values) -> Any:
    given = call["input"]
    # where all of a row is hidden, -inf gives NaN and a port's large number the mean
    hidden = given.masked_fill(given == -math.inf, values["hidden"])
    return call.run(input=hidden, dim=values["dim"])


def _propose_scale(site: FunctionSite, context: Context) -> Iterator[Values]:
    if not context.is_loss and not context.leads_to(site, _WEIGHS, 4):
        yield {}


def _scaled(call: Call, values: Values) -> Any:
    return call.run(input=call["input"] * values["scale"])


_MASKED = "s = x @ x.transpose(-1, -2) / 4.0\nm = (y == 0)[:, None, :]\n"
_MS_MASKED = "s = ops.matmul(x, x.swapaxes(-1, -2)) / 4.0\nm = (y == 0)[:, None, :]\n"

HYPOTHESES = (
    FunctionHypothesis(
        "softmax_axis",
        "softmax.axis",
        _FUNCTIONS,
        _propose_axis,
        _over,
        "{function} over axis {port} instead of {reference}",
        "dim",
        rank=1,
        reference_value=_axis,
        examples=(
            Example("F.softmax(x, -1)", "ops.softmax(x, axis=1)", port_value=-2),
            Example(
                "(x + torch.full((4, 4), -math.inf).triu(1)).softmax(-1)",
                "ops.softmax(x + ops.triu(ops.ones((4, 4), ms.float32), 1) * -1e9, axis=0)",
                ((3, 4, 4),),
                port_value=-3,
            ),
            Example(
                _MASKED + "return torch.softmax(s.masked_fill(m, -math.inf), -1) @ x",
                _MS_MASKED + "s = ops.masked_fill(s, m, float('-inf'))\n"
                "return ops.matmul(ops.softmax(s, axis=-2), x)",
                ((2, 6, 8), (2, 6)),
                integers={"y": 3},
                port_value=-2,
            ),
            Example(
                "self.last(x)",
                "self.last(x)",
                modules={"last": ("nn.LogSoftmax(1)", "nn.LogSoftmax()")},
                port_value=2,
            ),
        ),
    ),
    FunctionHypothesis(
        "softmax_scale",
        "softmax.scale",
        _FUNCTIONS,
        _propose_scale,
        _scaled,
        "{function} of its input times {port}",
        numbers=(Number("scale", (2.0, 0.5, 0.1, 10.0, 0.125, 0.25, 4.0)),),
        reference_value=lambda site, context: 1.0,
        rank=4,
        examples=(
            Example("F.softmax(x, -1)", "ops.softmax(x / 0.7, axis=-1)", port_value=1 / 0.7),
        ),
    ),
)
