"""Fused attention (`scaled_dot_product_attention`) whose parts a port writes by hand otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand

_FUSED = ("scaled_dot_product_attention",)
_PLACES = {-2: "-2 (queries)", 1: "1 (heads)", 0: "0 (batch)"}


def _propose_axis(site: FunctionSite, context: Context) -> Iterator[Values]:
    query = site.arguments.get("query")
    if not isinstance(query, Operand):
        return
    rank = len(query.shape)
    axes = [-2, *(axis for axis in range(rank - 2) if query.shape[axis] > 1)]
    masked = site.arguments.get("is_causal") or site.arguments.get("attn_mask") is not None
    for axis in axes:
        # where all of a row is hidden, -inf gives NaN and a port's large number the mean
        for hidden in (-1e30, -math.inf) if masked else (-1e30,):
            yield {"dim": axis, "where": _PLACES.get(axis, str(axis)), "hidden": hidden}


def _scores(call: Call, hidden: float) -> Any:
    import torch

    query, key = call["query"], call["key"]
    scale = call.arguments.get("scale") or 1 / math.sqrt(query.shape[-1])
    scores = query @ key.transpose(-1, -2) * scale
    mask = call.arguments.get("attn_mask")
    if call.arguments.get("is_causal"):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, hidden)
    return scores + mask.masked_fill(mask == -math.inf, hidden)


def _over_other_axis(call: Call, values: Values) -> Any:
    if call.arguments.get("enable_gqa"):
        raise ValueError("heads are shared")
    return _scores(call, values["hidden"]).softmax(values["dim"]) @ call["value"]


_SPLITS = ("split as (width, heads)", "split and merged as (width, heads)", "no exchange of axes")
_MERGE = "merged without exchanging their axis with the positions"


def _propose_heads(site: FunctionSite, context: Context) -> Iterator[Values]:
    query, key = site.arguments.get("query"), site.arguments.get("key")
    if not isinstance(query, Operand) or not isinstance(key, Operand):
        return
    if len(query.shape) == 4 and query.shape[1] > 1 and not site.arguments.get("enable_gqa"):
        for how in (*_SPLITS, _MERGE):
            yield {"how": how}


def _other_heads(call: Call, values: Values) -> Any:
    how = values["how"]
    if how == _MERGE:
        mixed = call.run()
        batch, heads, length, width = mixed.shape
        return mixed.reshape(batch, length, heads, width).transpose(1, 2)

    def split(given: Any) -> Any:
        batch, heads, length, width = given.shape
        flat = given.transpose(1, 2).reshape(batch, length, heads * width)
        if how == _SPLITS[2]:
            return flat.reshape(batch, heads, length, width)
        return flat.reshape(batch, length, width, heads).permute(0, 3, 1, 2)

    mixed = call.run(**{name: split(call[name]) for name in ("query", "key", "value")})
    if how == _SPLITS[1]:
        batch, heads, length, width = mixed.shape
        flat = mixed.permute(0, 2, 3, 1).reshape(batch, length, heads, width)
        return flat.transpose(1, 2)
    return mixed


_CALL = "F.scaled_dot_product_attention(x, y, x * y)"
_BY_HAND = "s = ops.matmul(q, k.swapaxes(-1, -2)) * 4 ** -0.5\n"
_GIVEN = "q, k, v = x, y, x * y\n"
_SHAPES = ((2, 2, 5, 4), (2, 2, 5, 4))
_SPLIT = "f = lambda a: a.swapaxes(1, 2).reshape(2, 5, 8)\n"

HYPOTHESES = (
    FunctionHypothesis(
        "attention_softmax_axis",
        "softmax.axis",
        _FUSED,
        _propose_axis,
        _over_other_axis,
        "the softmax of attention over axis {port} instead of -1 (keys)",
        rank=1,
        reference_value=lambda site, context: -1,
        port_value=lambda values: values["dim"],
        examples=(
            Example(
                _CALL,
                _GIVEN + _BY_HAND + "return ops.matmul(ops.softmax(s, axis=-2), v)",
                _SHAPES,
                port_value=-2,
                proved=True,
            ),
            Example(
                "F.scaled_dot_product_attention(x, y, x * y, is_causal=True)",
                _GIVEN
                + _BY_HAND
                + "s = s + ops.triu(ops.ones((5, 5), ms.float32), 1) * -1e9\n"
                + "return ops.matmul(ops.softmax(s, axis=1), v)",
                _SHAPES,
                port_value=1,
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_heads_fused",
        "attention.heads",
        _FUSED,
        _propose_heads,
        _other_heads,
        "the heads of query, key and value are split or merged otherwise: {port}",
        rank=4,
        port_value=lambda values: values["how"],
        examples=(
            Example(
                _CALL,
                _SPLIT
                + "q, k, v = [f(a).reshape(2, 5, 4, 2).transpose(0, 3, 1, 2) for a in "
                + "(x, y, x * y)]\n"
                + _BY_HAND
                + "return ops.matmul(ops.softmax(s, axis=-1), v)",
                _SHAPES,
                port_value=_SPLITS[0],
            ),
            Example(
                _CALL,
                _SPLIT
                + "q, k, v = [f(a).reshape(2, 2, 5, 4) for a in (x, y, x * y)]\n"
                + _BY_HAND
                + "return ops.matmul(ops.softmax(s, axis=-1), v)",
                _SHAPES,
                port_value=_SPLITS[2],
            ),
            Example(
                _CALL,
                _GIVEN
                + _BY_HAND
                + "r = ops.matmul(ops.softmax(s, axis=-1), v)\n"
                + "return r.reshape(2, 5, 2, 4).swapaxes(1, 2)",
                _SHAPES,
                port_value=_MERGE,
            ),
        ),
    ),
)
