"""Results that leave the range of float16: infinite there, or held at its greatest number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite

#: The greatest finite number of float16 (IEEE 754-2019, binary16).
_GREATEST = 65504.0
#: Functions whose results outgrow their operands.
_GROWING = ("sum", "mul", "pow", "square", "exp", "matmul", "bmm", "linear", "einsum", "cumsum")
_SATURATED, _INFINITE = "held at 65504", "infinite"


def _propose(site: FunctionSite, context: Context) -> Iterator[Values]:
    if context.is_loss or not site.outputs or site.outputs[0].dtype not in ("float32", "float64"):
        return
    yield {"beyond": _SATURATED}
    yield {"beyond": _INFINITE}


def _limited(call: Call, values: Values) -> Any:
    import torch

    result = call.run()
    if float(result.detach().abs().max()) <= _GREATEST:
        return result
    if values["beyond"] == _SATURATED:
        return result.clamp(-_GREATEST, _GREATEST)
    return torch.where(result.abs() > _GREATEST, result * torch.inf, result)


HYPOTHESES = (
    FunctionHypothesis(
        "precision_overflow",
        "precision.overflow",
        _GROWING,
        _propose,
        _limited,
        "{function} leaves the range of float16: what is greater than 65504 is {port}",
        reference_value=lambda site, context: site.outputs[0].dtype,
        port_value=lambda values: values["beyond"],
        rank=4,
        examples=(
            Example(
                "(x * 200).pow(2).sum(-1).log()",
                "ops.log(ops.clamp(ops.square(x * 200).sum(-1), -65504.0, 65504.0))",
                ((4, 6, 8),),
                port_value=_SATURATED,
            ),
        ),
    ),
)
