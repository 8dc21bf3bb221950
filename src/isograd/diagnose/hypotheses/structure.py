"""Residual connections: left out, added, or with another factor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import ARRANGING, Flow, flow_of, name_of
from isograd.diagnose.hypotheses.attention_parts import is_score
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Scale,
    Values,
)
from isograd.frameworks.base import FunctionSite, Operand

#: A number is estimated at no more sums of a unit than this: each costs dozens of runs.
_MOST_SUMS = 8
_OPERANDS = ("input", "other")


def is_sum(flow: Flow, site: FunctionSite, context: Context) -> bool:
    """Whether two computed tensors are added that are neither scores and mask nor a bias."""
    if context.is_loss or site.place.function != "add" or not site.outputs:
        return False
    given = [site.arguments.get(name) for name in _OPERANDS]
    both = [o for o in given if isinstance(o, Operand) and o.dtype not in ("bool", "int64")]
    if len(both) != len(given):
        return False
    shape = site.outputs[0].shape
    if len(shape) < 2 or is_score(flow, site):
        return False
    return not any(o.source.startswith("parameter.") and len(o.shape) < 2 for o in both)


def is_embedded(flow: Flow, operand: Any) -> bool:
    """Whether an operand is an embedding's result, or a table itself."""
    if isinstance(operand, Operand) and operand.source.startswith("parameter."):
        return True
    return any(
        name_of(s) in ("embedding", "module Embedding")
        for s in flow.behind(operand, ARRANGING | {"mul"})
    )


def _missing(embedded: bool) -> Any:
    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        flow = flow_of(context)
        if is_sum(flow, site, context):
            for name in _OPERANDS:
                if is_embedded(flow, site.arguments[name]) == embedded:
                    yield {"dropped": name}

    return propose


def _drop(call: Call, values: Values) -> Any:
    import torch

    left = call["other" if values["dropped"] == "input" else "input"]
    dropped = call[values["dropped"]]
    return left + torch.zeros_like(dropped)


def _added(site: FunctionSite, context: Context) -> Iterator[Values]:
    given = site.arguments.get("0")
    if context.is_loss or not isinstance(given, Operand) or not site.outputs:
        return
    if given.shape == site.outputs[0].shape and given.dtype == site.outputs[0].dtype:
        yield {}


def _add(call: Call, values: Values) -> Any:
    result = call.run()
    if isinstance(result, tuple):
        return (result[0] + call["0"], *result[1:])
    return result + call["0"]


def _scale(site: FunctionSite, context: Context) -> Iterator[Values]:
    flow = flow_of(context)
    if not is_sum(flow, site, context):
        return
    sums = [s for s in context.sites if s.place.function == "add" and is_sum(flow, s, context)]
    if len(sums) > _MOST_SUMS:
        return
    for name in _OPERANDS:
        if not is_embedded(flow, site.arguments[name]):
            yield {"operand": name, "own": _factor(flow, site.arguments[name])}


def _factor(flow: Flow, operand: Any) -> float:
    """The plain number with which an operand was multiplied just before."""
    maker = flow.maker(operand)
    if maker is None or maker.place.function != "mul":
        return 1.0
    number = maker.arguments.get("other")
    plain = isinstance(number, (int, float)) and not isinstance(number, bool) and number
    return float(number) if plain and number is not None else 1.0


def _scaled(call: Call, values: Values) -> Any:
    name = values["operand"]
    return call.run(**{name: call[name] * (values["scale"] / values["own"])})


_LINEAR = {"f": ("nn.Linear(8, 8)", "nn.Dense(8, 8)")}

HYPOTHESES = (
    FunctionHypothesis(
        "residual_missing",
        "residual.missing",
        ("add",),
        _missing(False),
        _drop,
        "a tensor is not added (torch's argument {dropped})",
        rank=3,
        port_value=lambda values: values["dropped"],
        examples=(
            Example("x + self.f(x)", "self.f(x)", ((4, 8),), _LINEAR, port_value="input"),
            Example(
                "h = self.f(x) * 2\nh += x\nreturn h",
                "x * 1.0",
                ((4, 8),),
                _LINEAR,
                port_value="input",
            ),
        ),
    ),
    FunctionHypothesis(
        "embedding_missing",
        "embedding.missing",
        ("add",),
        _missing(True),
        _drop,
        "an embedding is not added (torch's argument {dropped})",
        rank=3,
        port_value=lambda values: values["dropped"],
        examples=(
            Example(
                "self.e(x) + self.p(torch.arange(6))",
                "self.e(x) + 0 * self.p(ops.arange(6))",
                ((4, 6),),
                {
                    "e": ("nn.Embedding(10, 8)", "nn.Embedding(10, 8)"),
                    "p": ("nn.Embedding(7, 8)", "nn.Embedding(7, 8)"),
                },
                {"x": 10},
                port_value="other",
            ),
        ),
    ),
    FunctionHypothesis(
        "residual_added",
        "residual.added",
        ("module",),
        _added,
        _add,
        "the input is added to the output",
        rank=4,
        examples=(Example("self.f(x)", "x + self.f(x)", ((4, 8),), _LINEAR, proved=False),),
    ),
    FunctionHypothesis(
        "residual_scale",
        "residual.scale",
        ("add",),
        _scale,
        _scaled,
        "a summand is multiplied by {port} instead of {own:g}",
        numbers=(Number("scale", (1.0, 0.5, 0.1, -1.0, 2.0), Scale.LINEAR),),
        rank=7,
        examples=(
            Example(
                "x + 0.2 * self.f(x)", "x + 0.3 * self.f(x)", ((4, 8),), _LINEAR, port_value=0.3
            ),
            Example("x + self.f(x)", "x + self.f(x) * 0.37", ((4, 8),), _LINEAR, port_value=0.37),
        ),
    ),
)
