"""Products of two tensors of which one gates the other: the activation is on the other one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import Flow, flow_of
from isograd.diagnose.hypotheses.activation_kinds import KINDS
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Intervention, Operand, Place


def _activation(flow: Flow, operand: Any, module: str) -> FunctionSite | None:
    """The activation in a module's own code that an operand comes from."""
    maker = flow.maker(operand)
    if maker is None or maker.place.module != module or maker.place.function not in KINDS:
        return None
    return maker


def _propose(site: FunctionSite, context: Context) -> Iterator[Values]:
    flow = flow_of(context)
    own = site.place.module
    for product in flow.sites[: site.event]:
        if product.place.module != own or product.place.function != "mul":
            continue
        factors = [product.arguments.get(name) for name in ("input", "other")]
        if not all(isinstance(factor, Operand) for factor in factors):
            continue
        first, second = (_activation(flow, factor, own) for factor in factors)
        if first is None and second is None:
            continue
        before = [
            factor if maker is None else maker.arguments.get("input")
            for factor, maker in zip(factors, (first, second), strict=True)
        ]
        if any(not isinstance(value, Operand) for value in before):
            continue
        shapes, sources = ({getattr(v, name) for v in before} for name in ("shape", "source"))
        if len(shapes) == 1 and len(sources) == 2:
            places = tuple(None if s is None else s.place for s in (first, second))
            yield {"name": own, "activations": places, "product": product.place}


def _exchanged(call: Call, values: Values) -> Any:
    kept: dict[Place, Any] = {}

    def holding(place: Place) -> Intervention:
        def hold(site: Any, _: Values) -> Any:
            kept[place] = site
            return site["input"]

        return Intervention(place, hold)

    def multiply(site: Any, _: Values) -> Any:
        first, second = values["activations"]
        one, other = site["other"], site["input"]
        if first is not None:
            one = kept[first].run(input=one)
        if second is not None:
            other = kept[second].run(input=other)
        return site.run(input=one, other=other)

    changes = [holding(place) for place in values["activations"] if place is not None]
    return call.together(values["name"], (*changes, Intervention(values["product"], multiply)))


_XY = ((4, 6, 8), (4, 6, 8))

HYPOTHESES = (
    FunctionHypothesis(
        "gate_exchanged",
        "gate.exchanged",
        ("module",),
        _propose,
        _exchanged,
        "the factors of a gate are exchanged: the activation is on the other one",
        rank=5,
        examples=(
            Example("F.silu(x) * y", "x * ops.silu(y)", _XY, proved=False),
            Example(
                "torch.tanh(x) * torch.sigmoid(y)",
                "ops.sigmoid(x) * ops.tanh(y)",
                _XY,
                proved=False,
            ),
        ),
    ),
)
