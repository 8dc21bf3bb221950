"""Pooling by maximum, average or sum, over places or tokens, and adaptive pooling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import (
    as_tuple,
    rank_of,
    spatial_rank,
)
from isograd.diagnose.hypotheses.pooling import (
    AVG_POOLS,
    IMAGE,
    MAX_LAYER,
    MAX_POOLS,
    pool_example,
    port_pool,
    windows_of,
)
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand

_ADAPTIVE = tuple(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3))


def _propose_kind(site: FunctionSite, context: Context) -> Iterator[Values]:
    function = site.place.function
    if function in MAX_POOLS:
        yield {"kind": "average", "counted": True}
        if site.arguments.get("padding"):
            yield {"kind": "average", "counted": False}
    elif function in AVG_POOLS or function.startswith("adaptive_avg"):
        yield {"kind": "maximum"}
    elif function.startswith("adaptive_max"):
        yield {"kind": "average"}


def _other_kind(call: Call, values: Values) -> Any:
    from torch.nn import functional

    function = call.function
    if function.startswith("adaptive"):
        swapped = (
            function.replace("avg", "max") if "avg" in function else function.replace("max", "avg")
        )
        return getattr(functional, swapped)(call["input"], call["output_size"])
    kernel, stride, padding = windows_of(call.arguments, function)
    ceil = bool(call.arguments.get("ceil_mode", False))
    if values["kind"] == "maximum":
        pool = getattr(functional, function.replace("avg", "max"))
        return pool(call["input"], kernel, stride, padding, ceil_mode=ceil)
    pool = getattr(functional, function.replace("max", "avg"))
    return pool(call["input"], kernel, stride, padding, ceil, values["counted"])


def _kind_of(site: FunctionSite, context: Context) -> str:
    return "maximum" if "max" in site.place.function else "average"


def _propose_global(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Means, sums and maxima over places or tokens that are no part of a normalisation."""
    if context.is_loss or rank_of(site.arguments.get("input")) < 3:
        return
    if site.arguments.get("dim") is None or "dtype" in site.arguments:
        return
    if any(
        c.place.function in ("sub", "rsqrt", "sqrt", "add", "rsub") for c in context.consumers(site)
    ):
        return
    for kind in ("average", "maximum", "sum"):
        if kind != _global_kind(site, context):
            yield {"kind": kind}


def _global_kind(site: FunctionSite, context: Context) -> str:
    return {"mean": "average", "amax": "maximum", "sum": "sum"}[site.place.function]


def _other_global(call: Call, values: Values) -> Any:
    keep = bool(call.arguments.get("keepdim", False))
    x, dim = call["input"], call["dim"]
    if values["kind"] == "maximum":
        return x.amax(dim, keepdim=keep)
    return x.mean(dim, keepdim=keep) if values["kind"] == "average" else x.sum(dim, keepdim=keep)


def _propose_uneven(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand, wanted = site.arguments.get("input"), site.arguments.get("output_size")
    if not isinstance(operand, Operand):
        return
    rank = spatial_rank(site.place.function)
    sizes = operand.shape[-rank:]
    outputs = wanted if isinstance(wanted, tuple) else (wanted,) * rank
    if all(isinstance(o, int) for o in outputs) and any(
        s % int(o or 1) for s, o in zip(sizes, outputs, strict=True)
    ):
        yield {"windows": "of one size"}


def _even_windows(call: Call, values: Values) -> Any:
    from torch.nn import functional

    rank = spatial_rank(call.function)
    sizes = tuple(call["input"].shape[-rank:])
    outputs = as_tuple(call["output_size"], rank)
    stride = tuple(s // o for s, o in zip(sizes, outputs, strict=True))
    kernel = tuple(s - (o - 1) * t for s, o, t in zip(sizes, outputs, stride, strict=True))
    return getattr(functional, call.function.removeprefix("adaptive_"))(
        call["input"], kernel, stride
    )


HYPOTHESES = (
    FunctionHypothesis(
        "pool_kind",
        "pool.kind",
        (*MAX_POOLS, *AVG_POOLS, *_ADAPTIVE),
        _propose_kind,
        _other_kind,
        "pooling by {port} instead of {reference}",
        rank=3,
        reference_value=_kind_of,
        port_value=lambda values: values["kind"],
        examples=(
            pool_example(MAX_LAYER, port_pool("Avg", "pad_mode='pad', padding=1"), "average"),
            Example(
                "F.adaptive_avg_pool2d(x, 1)",
                "x.max(axis=3, keepdims=True).max(axis=2, keepdims=True)",
                IMAGE,
                port_value="maximum",
            ),
        ),
    ),
    FunctionHypothesis(
        "pool_kind_global",
        "pool.kind",
        ("mean", "sum", "amax"),
        _propose_global,
        _other_global,
        "pooling by {port} instead of {reference}",
        rank=3,
        reference_value=_global_kind,
        port_value=lambda values: values["kind"],
        examples=(
            Example("x.mean((2, 3))", "ops.amax(x, (2, 3))", IMAGE, port_value="maximum"),
            Example("x.mean(dim=1)", "x.sum(axis=1)", port_value="sum"),
        ),
    ),
    FunctionHypothesis(
        "adaptive_pool_windows",
        "adaptive_pool.windows",
        _ADAPTIVE,
        _propose_uneven,
        _even_windows,
        "{function} with windows of one size instead of the adaptive ones",
        rank=3,
        reference_value=lambda site, context: "adaptive",
        port_value=lambda values: values["windows"],
        examples=(
            Example(
                "F.adaptive_avg_pool2d(x, 4)",
                "self.pool(x)",
                IMAGE,
                {"pool": ("nn.Identity()", "nn.AvgPool2d(kernel_size=4, stride=2)")},
            ),
        ),
    ),
)
