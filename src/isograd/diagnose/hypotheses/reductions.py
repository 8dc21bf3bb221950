"""Reductions: along which axis, of which tokens, with or without a mask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from isograd.diagnose.flow import flow_of
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Values,
    other_argument,
)
from isograd.frameworks.base import FunctionSite, Intervention, Operand

_REDUCED = ("mean", "sum", "amax", "amin", "logsumexp", "cumsum", "prod")
_REPORTED = ("mean", "max", "first", "last")
#: How a mask leaves values out of a sum.
_MASKING = ("mul", "masked_fill", "where")
#: What a mask passes through before it is summed or multiplied.
_SHAPING = frozenset("unsqueeze getitem expand to float view reshape type_as eq ne".split())


def _rank(site: FunctionSite) -> int:
    given = site.arguments.get("input")
    return len(given.shape) if isinstance(given, Operand) else 0


def _axes(own: Any, site: FunctionSite) -> Iterator[int]:
    count = _rank(site)
    own = own[0] if isinstance(own, tuple) and len(own) == 1 else own
    for axis in range(count):
        if isinstance(own, int) and not isinstance(own, bool) and axis != own % count:
            yield axis


def _axis(function: str, examples: tuple[Example, ...]) -> FunctionHypothesis:
    return other_argument(
        f"{function}_axis",
        f"{function}.axis",
        (function,),
        "dim",
        _axes,
        f"{function} along axis {{port}} instead of {{reference}}",
        rank=4,
        examples=examples,
    )


def _example(function: str) -> tuple[Example, ...]:
    """The function on the other side of a square, by the MindSpore function that fits."""
    port = {
        "amax": "ops.amax(x, 1)",
        "amin": "ops.amin(x, 1)",
        "logsumexp": "ops.logsumexp(x, 1)",
        "cumsum": "ops.cumsum(x, 1)",
        "prod": "ops.prod(x, 1)",
    }.get(function, f"x.{function}(1)")
    return (Example(f"torch.{function}(x, -1) * 2", f"{port} * 2", ((3, 5, 5),), port_value=1),)


def _pooled(site: FunctionSite, context: Context) -> Iterator[Values]:
    """The tokens of (batch, tokens, width) made one: by their mean, their maximum, or one."""
    given = site.arguments.get("input")
    if context.is_loss or not isinstance(given, Operand) or len(given.shape) != 3:
        return
    own = _pooling_of(site)
    if own is None or not given.dtype.startswith(("float", "bfloat")):
        return
    for kind in _REPORTED:
        if kind != own:
            yield {"pooling": kind}


def _pooling_of(site: FunctionSite) -> str | None:
    function = site.place.function
    if function == "getitem":
        index = site.arguments.get("index")
        whole = "slice(None, None, None)"
        if isinstance(index, tuple) and len(index) in (2, 3) and index[0] == whole:
            if all(part == whole for part in index[2:]) and not isinstance(index[1], bool):
                return {0: "first", -1: "last"}.get(index[1]) if index[1] in (0, -1) else None
        return None
    if function == "select":
        if site.arguments.get("dim") == 1:
            return {0: "first", -1: "last"}.get(site.arguments.get("index", 1))
        return None
    dim = site.arguments.get("dim")
    dim = dim[0] if isinstance(dim, tuple) and len(dim) == 1 else dim
    return {"mean": "mean", "amax": "max", "max": "max"}[function] if dim in (1, -2) else None


def _pool(call: Call, values: Values) -> Any:
    x, own = call["input"], call.run()
    pooled: Callable[[], Any] = {
        "mean": lambda: x.mean(1),
        "max": lambda: x.amax(1),
        "first": lambda: x[:, 0],
        "last": lambda: x[:, -1],
    }[values["pooling"]]
    result = pooled()
    if isinstance(own, tuple):  # max yields indices too
        return type(own)((result.reshape(own[0].shape), own[1]))
    return result.reshape(own.shape)


def _masked_means(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A division of a masked sum by the number of what it keeps: a sum of the mask, or lengths."""
    above, below = site.arguments.get("input"), site.arguments.get("other")
    if not isinstance(above, Operand) or not isinstance(below, Operand):
        return
    flow = flow_of(context)
    total = flow.maker(above)
    counted = any(s.place.function == "sum" for s in flow.behind(below, _SHAPING | {"clamp"}))
    one_each = math.prod(below.shape) < math.prod(above.shape)
    if total is None or total.place.function != "sum" or not (counted or one_each):
        return
    before = total.arguments.get("input")
    product = flow.maker(before)
    if not isinstance(before, Operand) or product is None:
        return
    size = 1
    for length in before.shape:
        size *= length
    for length in total.outputs[0].shape:
        size //= length
    yield {"count": size, "mask": "kept"}


def _divided(call: Call, values: Values) -> Any:
    return call["input"] / values["count"]


def _unmasked_means(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Modules with a masked mean: (x * mask).sum / mask.sum."""
    flow = flow_of(context)
    own = site.place.module
    for one in flow.sites[: site.event]:
        if one.place.module != own or one.place.function != "div":
            continue
        for values in _masked_means(one, context):
            total = flow.maker(one.arguments["input"])
            product = flow.maker(total.arguments["input"]) if total is not None else None
            if product is None or product.place.function not in _MASKING:
                continue
            for kept in ("input", "other"):
                operand = product.arguments.get(kept)
                if isinstance(operand, Operand) and operand.shape == product.outputs[0].shape:
                    yield {
                        "name": own,
                        "product": product.place,
                        "division": one.place,
                        "kept": kept,
                        "count": values["count"],
                    }


def _unmasked(call: Call, values: Values) -> Any:
    changes = (
        Intervention(values["product"], lambda site, _: site[values["kept"]] * 1.0),
        Intervention(values["division"], lambda site, _: site["input"] / values["count"]),
    )
    return call.together(values["name"], changes)


_MASK = "m = (y > 0).{}.unsqueeze(-1)\n"
_MEAN = _MASK.format("to(x)") + "return (x * m).sum(1) / m.sum(1)"
_XY = ((4, 5, 3), (4, 5))

HYPOTHESES = (
    *(_axis(function, _example(function)) for function in _REDUCED),
    FunctionHypothesis(
        "token_pooling",
        "token.pooling",
        ("mean", "amax", "max", "getitem", "select"),
        _pooled,
        _pool,
        "tokens are pooled otherwise: {port} instead of {reference}",
        rank=3,
        reference_value=lambda site, context: _pooling_of(site),
        port_value=lambda values: values["pooling"],
        examples=(
            Example("x[:, 0] * 2", "x.mean(1) * 2", ((3, 5, 4),), port_value="mean"),
            Example("x.mean(dim=1) * 2", "x[:, -1] * 2", ((3, 5, 4),), port_value="last"),
        ),
    ),
    FunctionHypothesis(
        "mean_mask_count",
        "mean.mask",
        ("div",),
        _masked_means,
        _divided,
        "the masked sum is divided by all {port} positions",
        rank=3,
        port_value=lambda values: values["count"],
        examples=(
            Example(
                _MEAN,
                _MASK.format("astype(ms.float32)") + "return (x * m).mean(1)",
                _XY,
                integers={"y": 3},
                port_value=5,
            ),
        ),
    ),
    FunctionHypothesis(
        "mean_mask",
        "mean.mask",
        ("module",),
        _unmasked_means,
        _unmasked,
        "the mean is taken of all positions, without the mask",
        rank=4,
        examples=(
            Example(_MEAN, "x.mean(1)", _XY, integers={"y": 3}, proved=False),
            Example(
                "real = (torch.arange(5) < 1 + y.unsqueeze(1)).unsqueeze(-1)\n"
                "return x.masked_fill(~real, 0).sum(1) / (1 + y.unsqueeze(1))",
                "x.mean(1)",
                ((4, 5, 3), (4,)),
                integers={"y": 4},
                proved=False,
            ),
        ),
    ),
)
