"""Normalisations that the reference's own code computes, and F.normalize: eps and divisors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isograd.diagnose.hypotheses.normalisation import EPS
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Values,
    operands,
)
from isograd.frameworks.base import FunctionSite

_ROOTS = ("sqrt", "rsqrt", "pow")
_SPREADS = ("var", "std")


def _statistic(site: FunctionSite, context: Context) -> FunctionSite | None:
    """The mean of squares, variance or deviation to which a plain number is added."""
    number = site.arguments.get("other")
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    found = context.producer(site.arguments.get("input"))
    if found is not None and found.place.function in ("sqrt", "clamp"):
        found = context.producer(found.arguments.get("input"))
    wanted = (*_SPREADS, "mean", "sum", "norm", "vector_norm", "var_mean", "std_mean")
    if found is None or found.place.function not in wanted:
        return None
    ends = (*_ROOTS, "div", "rdiv", "reciprocal", "truediv")
    if not any(c.place.function in ends for c in context.consumers(site)):
        return None
    if found.place.function in ("mean", "sum"):
        squares = [context.producer(o) for o in operands(found)]
        if not any(s is not None and s.place.function in ("pow", "square", "mul") for s in squares):
            return None
    return found


def _kind(statistic: FunctionSite, context: Context) -> str:
    """Which normalisation a statistic belongs to, by its axes and by whether the mean is off."""
    dim = statistic.arguments.get("dim")
    dims = dim if isinstance(dim, tuple) else (dim,)
    centred = statistic.place.function.startswith(_SPREADS) or context.comes_from(
        statistic, ("sub",), 2
    )
    if not centred:
        return (
            "normalize"
            if statistic.place.function in ("sum", "norm", "vector_norm")
            else "rms_norm"
        )
    return "batch_norm" if 0 in dims else "layer_norm"


def _where(kind: str) -> Callable[[FunctionSite, Context], Iterator[Values]]:
    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        statistic = _statistic(site, context)
        if statistic is not None and _kind(statistic, context) == kind:
            yield {}

    return propose


def _eps(kind: str, words: str, *examples: Example) -> FunctionHypothesis:
    return FunctionHypothesis(
        f"{kind}_eps_by_hand",
        f"{kind}.eps",
        ("add",),
        _where(kind),
        lambda call, values: call.run(other=values["eps"]),
        words + " with eps {port} instead of {reference}",
        numbers=(EPS,),
        rank=4,
        reference_value=lambda site, context: site.arguments.get("other"),
        examples=examples,
    )


def _propose_place(kind: str) -> Callable[[FunctionSite, Context], Iterator[Values]]:
    """Where eps is added: to the variance, or to its root."""

    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        statistic = _statistic(site, context)
        if statistic is None or _kind(statistic, context) != kind:
            return
        users = {c.place.function for c in context.consumers(site)}
        if users & set(_ROOTS):
            yield {"place": "outside the root"}
        elif users & {"div", "rdiv", "reciprocal", "truediv"}:
            yield {"place": "inside the root"}

    return propose


def _at_other_place(call: Call, values: Values) -> Any:
    given, eps = call["input"], call["other"]
    if values["place"] == "outside the root":
        return (given.sqrt() + eps) ** 2
    return (given**2 + eps).sqrt()


def _place(kind: str, words: str, *examples: Example) -> FunctionHypothesis:
    return FunctionHypothesis(
        f"{kind}_eps_place_by_hand",
        f"{kind}.eps",
        ("add",),
        _propose_place(kind),
        _at_other_place,
        words + " with eps added {port}",
        quiet=True,
        rank=4,
        reference_value=lambda site, context: site.arguments.get("other"),
        port_value=lambda values: values["place"],
        examples=examples,
    )


def _propose_spread(site: FunctionSite, context: Context) -> Iterator[Values]:
    own = site.arguments.get("unbiased", site.arguments.get("correction", 1))
    if context.leads_to(site, ("div", "rdiv", "rsqrt", "reciprocal"), 4) and own in (0, 1):
        yield {"unbiased": not own, "batch": 0 in _dims(site)}


def _dims(site: FunctionSite) -> tuple[Any, ...]:
    dim = site.arguments.get("dim")
    return dim if isinstance(dim, tuple) else (dim,)


def _spread(call: Call, values: Values) -> Any:
    dim = call.arguments.get("dim")
    keep = bool(call.arguments.get("keepdim", False))
    function = getattr(call["input"], call.function)
    if dim is None:
        return function(unbiased=values["unbiased"])
    return function(dim, unbiased=values["unbiased"], keepdim=keep)


def _unbiased(site: FunctionSite, context: Context) -> bool:
    return bool(site.arguments.get("unbiased", site.arguments.get("correction", 1)))


def _divisor(kind: str, batch: bool, *examples: Example) -> FunctionHypothesis:
    return FunctionHypothesis(
        f"{kind}_unbiased_by_hand",
        f"{kind}.unbiased",
        _SPREADS,
        lambda site, context: (v for v in _propose_spread(site, context) if v["batch"] == batch),
        _spread,
        "{function} with unbiased={port} instead of {reference}",
        quiet=True,
        rank=3,
        reference_value=_unbiased,
        port_value=lambda values: values["unbiased"],
        examples=examples,
    )


def _propose_normalize(site: FunctionSite, context: Context) -> Iterator[Values]:
    if float(site.arguments.get("p", 2.0)) == 2.0:
        yield {"form": "added to the norm"}
        yield {"form": "added to the sum of squares"}
        yield {"form": "smallest norm"}
        yield {"form": "smallest sum of squares"}


def _normalize(call: Call, values: Values) -> Any:
    x, dim, eps = call["input"], call.arguments.get("dim", 1), values["eps"]
    squares = x.square().sum(dim, keepdim=True)
    if values["form"] == "smallest norm":
        return x / squares.sqrt().clamp(min=eps)
    if values["form"] == "smallest sum of squares":
        return x / squares.clamp(min=eps).sqrt()
    if values["form"] == "added to the norm":
        return x / (squares.sqrt() + eps)
    return x / (squares + eps).sqrt()


_LAYER = (
    "d = x - x.mean({axis}, keepdim=True)\n"
    "return d / torch.sqrt(d.pow(2).mean({axis}, keepdim=True) + 1e-5)"
)
_PORT = (
    "d = x - x.mean(axis={axis}, keep_dims=True)\n"
    "return d / ops.sqrt((d * d).mean(axis={axis}, keep_dims=True) + 2e-3)"
)

HYPOTHESES = (
    _eps(
        "rms_norm",
        "RMS normalisation",
        Example(
            "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
            "x * ops.rsqrt(ops.square(x).mean(axis=-1, keep_dims=True) + 1e-3)",
            port_value=1e-3,
        ),
        Example(
            "x / torch.sqrt(1e-6 + (x * x).mean(-1, keepdim=True)) * y",
            "x * ops.rsqrt(ops.square(x).mean(axis=-1, keep_dims=True) + 3e-4) * y",
            ((4, 6, 8), (8,)),
            port_value=3e-4,
        ),
    ),
    _eps(
        "layer_norm",
        "layer normalisation",
        Example(_LAYER.format(axis=-1), _PORT.format(axis=-1), port_value=2e-3),
        Example(
            "(x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)",
            "(x - x.mean(axis=-1, keep_dims=True))"
            " / (x.std(axis=-1, ddof=1, keepdims=True) + 0.01)",
            port_value=0.01,
        ),
    ),
    _eps(
        "batch_norm",
        "batch normalisation",
        Example(
            _LAYER.format(axis="(0, 2, 3)"),
            _PORT.format(axis="(0, 2, 3)"),
            ((4, 6, 5, 5),),
            port_value=2e-3,
        ),
    ),
    _eps(
        "normalize",
        "L2 normalisation",
        Example(
            "x / (x.norm(dim=-1, keepdim=True) + 1e-8)",
            "x / (ops.sqrt(ops.square(x).sum(axis=-1, keepdims=True)) + 0.01)",
            port_value=0.01,
        ),
    ),
    _place(
        "rms_norm",
        "RMS normalisation",
        Example(
            "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3)",
            "x / (ops.sqrt(ops.square(x).mean(axis=-1, keep_dims=True)) + 1e-3)",
            port_value="outside the root",
        ),
        Example(
            "x / (x.pow(2).mean(-1, keepdim=True).sqrt() + 1e-3)",
            "x * ops.rsqrt(ops.square(x).mean(axis=-1, keep_dims=True) + 1e-3)",
            port_value="inside the root",
        ),
    ),
    _place(
        "layer_norm",
        "layer normalisation",
        Example(
            "(x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-2)",
            "m, v = x.mean(axis=-1, keep_dims=True), x.var(axis=-1, ddof=1, keepdims=True)\n"
            "return (x - m) / ops.sqrt(v + 1e-2)",
            port_value="inside the root",
        ),
    ),
    _divisor(
        "layer_norm",
        False,
        Example(
            "(x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)",
            "(x - x.mean(axis=-1, keep_dims=True)) / (x.std(axis=-1, keepdims=True) + 1e-6)",
            port_value=False,
        ),
        Example(
            "v, m = x.var(-1, unbiased=False, keepdim=True), x.mean(-1, keepdim=True)\n"
            "return (x - m) * torch.rsqrt(v + 1e-5)",
            "v, m = x.var(axis=-1, ddof=1, keepdims=True), x.mean(axis=-1, keep_dims=True)\n"
            "return (x - m) * ops.rsqrt(v + 1e-5)",
            port_value=True,
        ),
    ),
    _divisor(
        "batch_norm",
        True,
        Example(
            "(x - x.mean((0, 2, 3), keepdim=True)) / (x.std((0, 2, 3), keepdim=True) + 1e-6)",
            "m = x.mean(axis=(0, 2, 3), keep_dims=True)\n"
            "return (x - m)"
            " / (ops.sqrt(((x - m) ** 2).mean(axis=(0, 2, 3), keep_dims=True)) + 1e-6)",
            ((4, 6, 5, 5),),
            port_value=False,
        ),
    ),
    FunctionHypothesis(
        "normalize_eps",
        "normalize.eps",
        ("normalize",),
        _propose_normalize,
        _normalize,
        "L2 normalisation with eps {port} ({form}) instead of {reference} (smallest norm)",
        numbers=(Number("eps", (1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)),),
        rank=4,
        reference_value=lambda site, context: site.arguments.get("eps", 1e-12),
        examples=(
            Example(
                "F.normalize(x, dim=-1)",
                "x / ops.sqrt(ops.square(x).sum(axis=-1, keepdims=True) + 0.002)",
                port_value=0.002,
            ),
            Example(
                "F.normalize(x * 0.1, dim=-1)",
                "ops.L2Normalize(-1, 0.1)(x * 0.1)",
                port_value=0.1,
            ),
        ),
    ),
)
