"""Residual connections that begin elsewhere: before a normalisation instead of after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import flow_of
from isograd.diagnose.hypotheses.structure import is_sum
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Intervention, Operand

#: Sums and sources of a unit beyond these are not tried: each pair is a run.
_MOST_SUMS = 4
_MOST_SOURCES = 4


def _propose(site: FunctionSite, context: Context) -> Iterator[Values]:
    own, flow = site.place.module, flow_of(context)
    if context.is_loss or not flow.is_computed(site):
        return
    inside = [s for s in context.sites[: site.event] if s.place.module == own]
    sums = [s for s in inside if s.place.function == "add" and is_sum(flow, s, context)]
    given = next(iter(site.arguments.values()), None)
    for one in sums[:_MOST_SUMS]:
        for name in ("input", "other"):
            operand = one.arguments[name]
            maker = flow.maker(operand)
            if maker is not None and maker.place.function != "module":
                continue
            for source in _sources(one, operand, context):
                what = f"the result of {source.place.module}"
                yield {"name": own, "sum": one.place, "of": name, "at": source.place, "what": what}
            if isinstance(given, Operand) and given.shape == operand.shape and maker is not None:
                what = "the input of the module"
                yield {"name": own, "sum": one.place, "of": name, "at": None, "what": what}


def _sources(one: FunctionSite, operand: Operand, context: Context) -> Iterator[FunctionSite]:
    """Modules called before the sum whose result may stand in the operand's place."""
    taken = [one.arguments[name] for name in ("input", "other")]
    found = 0
    for site in reversed(context.sites[: one.event]):
        if site.place.function != "module" or not site.outputs or found >= _MOST_SOURCES:
            continue
        fits = site.outputs[0].shape == operand.shape and site.outputs[0].dtype == operand.dtype
        if fits and all(context.producer(t) is not site for t in taken):
            found += 1
            yield site


def _from_elsewhere(call: Call, values: Values) -> Any:
    kept: list[Any] = [call[next(iter(call.arguments))]]

    def note(site: Any, _: Values) -> Any:
        result = site.run()
        kept[:] = [result[0] if isinstance(result, tuple) else result]
        return result

    def take(site: Any, _: Values) -> Any:
        return site.run(**{values["of"]: kept[0]})

    changes = [Intervention(values["sum"], take)]
    if values["at"] is not None:
        changes.append(Intervention(values["at"], note))
    return call.together(values["name"], tuple(changes))


_BLOCK = {
    "n": ("nn.LayerNorm(8)", "nn.LayerNorm((8,), epsilon=1e-5)"),
    "f": ("nn.Linear(8, 8)", "nn.Dense(8, 8)"),
}

HYPOTHESES = (
    FunctionHypothesis(
        "residual_source",
        "residual.source",
        ("module",),
        _propose,
        _from_elsewhere,
        "{what} is added instead of the reference's tensor",
        rank=5,
        port_value=lambda values: values["what"],
        examples=(
            Example(
                "x + self.f(self.n(x))",
                "x = self.n(x)\nreturn x + self.f(x)",
                ((4, 8),),
                _BLOCK,
                proved=False,
            ),
            Example(
                "x = self.n(x)\nreturn x + self.f(x)",
                "x + self.f(self.n(x))",
                ((4, 8),),
                _BLOCK,
                proved=False,
            ),
        ),
    ),
)
