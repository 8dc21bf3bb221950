"""Attention: its scale, its heads, and the heads that several queries share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import flow_of
from isograd.diagnose.hypotheses.attention_parts import numbers_between, softmax_of
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Number, Values
from isograd.frameworks.base import FunctionSite

#: Of heads as wide as a power of two, and their square roots.
_SCALES = tuple(2.0**-power for power in range(7)) + tuple(2.0 ** -(p + 0.5) for p in range(5))


def _scale(site: FunctionSite, context: Context) -> Iterator[Values]:
    if site.place.function == "scaled_dot_product_attention":
        own = site.arguments.get("scale") or 1 / math.sqrt(site.arguments["query"].shape[-1])
        yield {"own": own}
        return
    flow = flow_of(context)
    softmax = softmax_of(flow, site)
    if softmax is not None:
        yield {"own": numbers_between(flow, site, softmax)}


def _scaled(call: Call, values: Values) -> Any:
    if call.function == "scaled_dot_product_attention":
        return call.run(scale=values["scale"])
    if call.function == "baddbmm":  # its first argument is a mask, which has no scale
        return call.run(batch2=call["batch2"] * (values["scale"] / values["own"]))
    return call.run() * (values["scale"] / values["own"])


_BY_HAND = """
w = torch.softmax(x @ y.transpose(-1, -2) / math.sqrt(8), dim=-1)
return w @ y"""

HYPOTHESES = (
    FunctionHypothesis(
        "attention_scale",
        "attention.scale",
        ("matmul", "bmm", "baddbmm", "einsum", "scaled_dot_product_attention"),
        _scale,
        _scaled,
        "attention scores multiplied by {port} instead of {reference}",
        numbers=(Number("scale", _SCALES),),
        rank=3,
        reference_value=lambda site, context: next(iter(_scale(site, context)))["own"],
        examples=(
            Example(
                _BY_HAND,
                "w = ops.softmax(ops.matmul(x, y.swapaxes(-1, -2)), axis=-1)\n"
                "return ops.matmul(w, y)",
                ((2, 5, 8), (2, 6, 8)),
                port_value=1.0,
            ),
            Example(
                "F.scaled_dot_product_attention(x, y, y)",
                "w = ops.softmax(ops.matmul(x * 0.25, y.swapaxes(-1, -2)), axis=-1)\n"
                "return ops.matmul(w, y)",
                ((2, 2, 5, 8), (2, 2, 6, 8)),
                port_value=0.25,
            ),
            Example(
                "w = torch.einsum('bqd,bkd->bqk', x * 8 ** -0.5, y).softmax(-1)\n"
                "return torch.einsum('bqk,bkd->bqd', w, y)",
                "w = ops.softmax(ops.matmul(x, y.swapaxes(-1, -2)) / 8, axis=-1)\n"
                "return ops.matmul(w, y)",
                ((2, 5, 8), (2, 6, 8)),
                port_value=0.125,
            ),
        ),
    ),
)
