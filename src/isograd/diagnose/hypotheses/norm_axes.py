"""Normalisations over other axes, or in another number of groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.geometry import rank_of
from isograd.diagnose.hypotheses.normalisation import TWO_VECTORS, affine, eps, standardised
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Values,
    other_argument,
)
from isograd.frameworks.base import FunctionSite, Operand


def _propose_axes(site: FunctionSite, context: Context) -> Iterator[Values]:
    rank = rank_of(site.arguments.get("input"))
    own = site.arguments.get("normalized_shape")
    count = len(own) if isinstance(own, tuple) else 1
    for last in range(1, rank):
        if last != count:
            yield {"axes": tuple(range(-last, 0))}
    for axis in range(1, rank - 1):
        yield {"axes": (axis - rank,)}


def _other_axes(call: Call, values: Values) -> Any:
    x = standardised(call["input"], list(values["axes"]), eps(call), False, False)
    return affine(x, call, None)


def _normalized_axes(site: FunctionSite, context: Context) -> str:
    own = site.arguments.get("normalized_shape")
    return str(tuple(range(-len(own) if isinstance(own, tuple) else -1, 0)))


def _divisors(own: Any, site: FunctionSite) -> Iterator[int]:
    operand = site.arguments.get("input")
    if isinstance(operand, Operand):
        channels = operand.shape[1]
        yield from (g for g in range(1, channels + 1) if channels % g == 0)


HYPOTHESES = (
    FunctionHypothesis(
        "layer_norm_axes",
        "layer_norm.axes",
        ("layer_norm",),
        _propose_axes,
        _other_axes,
        "layer normalisation over axes {port} instead of {reference}",
        reference_value=_normalized_axes,
        port_value=lambda values: str(values["axes"]),
        rank=3,
        examples=(
            Example(
                "F.layer_norm(x, (8,), y, z)",
                "d = x - x.mean(axis=1, keep_dims=True)\n"
                "v = (d * d).mean(axis=1, keep_dims=True)\n"
                "return d / ops.sqrt(v + 1e-5) * y + z",
                TWO_VECTORS,
                port_value="(-2,)",
            ),
        ),
    ),
    other_argument(
        "group_norm_groups",
        "group_norm.groups",
        ("group_norm",),
        "num_groups",
        _divisors,
        "group normalisation with {port} groups instead of {reference}",
        rank=3,
        examples=(
            Example(
                "self.norm(x)",
                "self.norm(x)",
                ((4, 12, 5, 5),),
                {"norm": ("nn.GroupNorm(3, 12)", "nn.GroupNorm(4, 12)")},
                port_value=4,
            ),
        ),
    ),
)
