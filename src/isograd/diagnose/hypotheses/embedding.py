"""Embeddings: the factor behind them, the joining of a bag's rows, the padding index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import ARRANGING, flow_of
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Number, Values
from isograd.frameworks.base import FunctionSite, Operand

_SCALES = (1.0, 8.0, 16.0, 4.0, 32.0, 0.5, 2.0, 0.125, 0.0625, 0.25)


def is_lookup(site: FunctionSite, context: Context) -> bool:
    """Whether a site looks rows up: the function, or a module whose result is given."""
    if site.place.function == "embedding":
        return True
    if site.place.function != "module" or "Embedding" not in site.kind:
        return False
    return not flow_of(context).is_computed(site)


def _factor_behind(site: FunctionSite, context: Context) -> float:
    """The plain number by which the result is multiplied."""
    result = 1.0
    flow = flow_of(context)
    front, steps = [site], 0
    while front and steps < 4:
        steps += 1
        users = [u for s in front for u in flow.after(s)]
        for user in users:
            number = user.arguments.get("other")
            if isinstance(number, (int, float)) and not isinstance(number, bool) and number:
                if user.place.function == "mul":
                    result *= number
                elif user.place.function == "div":
                    result /= number
        front = [u for u in users if u.place.function in ARRANGING | {"mul", "div"}]
    return result


def _scale(site: FunctionSite, context: Context) -> Iterator[Values]:
    if is_lookup(site, context):
        yield {"own": _factor_behind(site, context)}


def _padding(site: FunctionSite, context: Context) -> Iterator[Values]:
    if not is_lookup(site, context):
        return
    for index in _indices(site):
        yield {"padding_idx": index}


def _indices(site: FunctionSite) -> list[int]:
    own = site.arguments.get("padding_idx")
    weight = site.arguments.get("weight")
    rows = weight.shape[0] if isinstance(weight, Operand) else 0
    own = own % rows if isinstance(own, int) and rows else own
    found = [own] if isinstance(own, int) else []
    return list(dict.fromkeys([*found, 0, 1, *([rows - 1] if rows else [])]))


def _tokens(call: Call) -> Any:
    return call["input"] if call.function == "embedding" else call["0"]


def _zeroed(call: Call, values: Values) -> Any:
    result = call.run()
    other = (_tokens(call) != values["padding_idx"]).unsqueeze(-1)
    return result * other.to(result.dtype)


def _rows_trained(site: FunctionSite, context: Context) -> Iterator[Values]:
    if site.place.function == "module":
        if is_lookup(site, context):
            yield from ({"padding_idx": index} for index in _indices(site))
        return
    own = site.arguments.get("padding_idx")
    yield from ({"padding_idx": index} for index in (None, *_indices(site)) if index != own)


def _with_row(call: Call, values: Values) -> Any:
    import torch

    if call.function == "embedding":
        return call.run(padding_idx=values["padding_idx"])
    result = call.run()
    here = (_tokens(call) == values["padding_idx"]).unsqueeze(-1)
    return torch.where(here, result.detach(), result)


_TABLE = {"e": ("nn.Embedding(10, 8)", "nn.Embedding(10, 8)")}


def _bag_modes(site: FunctionSite, context: Context) -> Iterator[Values]:
    own = site.arguments.get("mode", "mean")
    for mode in ("sum", "mean", "max"):
        # Weights of samples are defined for sums alone.
        if mode != own and site.arguments.get("per_sample_weights") is None:
            yield {"mode": mode}


HYPOTHESES = (
    FunctionHypothesis(
        "embedding_scale",
        "embedding.scale",
        ("embedding", "module"),
        _scale,
        lambda call, values: call.run() * (values["scale"] / values["own"]),
        "embeddings multiplied by {port} instead of {reference}",
        numbers=(Number("scale", _SCALES),),
        rank=2,
        reference_value=_factor_behind,
        examples=(
            Example(
                "self.e(x) * 8 ** 0.5 + 1.0",
                "self.e(x) + 1.0",
                ((4, 6),),
                _TABLE,
                {"x": 10},
                port_value=1.0,
            ),
            Example(
                "F.embedding(x, self.e.weight).relu()",
                "ops.relu(self.e(x) * 3.0)",
                ((4, 6),),
                _TABLE,
                {"x": 10},
                port_value=3.0,
            ),
        ),
    ),
    FunctionHypothesis(
        "embedding_padding_zeroed",
        "embedding.padding_idx",
        ("embedding", "module"),
        _padding,
        _zeroed,
        "the embedding of index {port} is zero",
        rank=3,
        port_value=lambda values: values["padding_idx"],
        examples=(
            Example(
                "self.e(x).relu()",
                "ops.relu(self.e(x) * (x != 1).unsqueeze(-1))",
                ((4, 6),),
                _TABLE,
                {"x": 10},
                port_value=1,
            ),
        ),
    ),
    FunctionHypothesis(
        "embedding_padding_gradient",
        "embedding.padding_idx",
        ("embedding", "module"),
        _rows_trained,
        _with_row,
        "the embedding of index {reference} gets a gradient as if the padding index were {port}",
        argument="padding_idx",
        backward=True,
        rank=2,
        examples=(
            Example(
                "self.e(x) + 1.0",
                "self.e(x) + 1.0",
                ((4, 6),),
                {"e": ("nn.Embedding(10, 8, padding_idx=2)", "nn.Embedding(10, 8)")},
                {"x": 10},
                proved=False,
            ),
            Example(
                "self.e(x).relu()",
                "e = self.e(x)\nm = (x != 0).unsqueeze(-1)\n"
                "return ops.relu(ops.where(m, e, ops.stop_gradient(e)))",
                ((4, 6),),
                _TABLE,
                {"x": 10},
                port_value=0,
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "embedding_bag_mode",
        "embedding_bag.mode",
        ("embedding_bag",),
        _bag_modes,
        lambda call, values: call.run(mode=values["mode"]),
        "the rows of a bag are joined by {port} instead of {reference}",
        argument="mode",
        rank=2,
        examples=(
            Example(
                "self.e(x) + 1.0",
                "self.e(x).sum(1) + 1.0",
                ((4, 6),),
                {"e": ("nn.EmbeddingBag(10, 8)", "nn.Embedding(10, 8)")},
                {"x": 10},
                port_value="sum",
            ),
            Example(
                "F.embedding_bag(x, self.e.weight, mode='sum').relu()",
                "ops.relu(ops.amax(self.e(x), 1))",
                ((4, 6),),
                _TABLE,
                {"x": 10},
                port_value="max",
            ),
        ),
    ),
)
