"""The causal mask of attention: left out, shifted, turned round, or present in the port only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import PRODUCTS, SCORING, Flow, flow_of, name_of
from isograd.diagnose.hypotheses.attention_masks import (
    applied,
    change_mask,
    finite,
    mask_of,
    word,
)
from isograd.diagnose.hypotheses.attention_parts import (
    MASKING,
    is_causal,
    weighs,
)
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand

_SDPA = "scaled_dot_product_attention"

_WORDS = {
    "missing": "left out",
    "inverted": "inverted",
    "negated": "with the other sign",
    "transposed": "along the other axis",
    "one more": "one position later",
    "one less": "one position earlier",
    "present": "present",
}


def _triangle(site: FunctionSite, context: Context) -> Iterator[Values]:
    flow = flow_of(context)
    users = ("masked_fill", "where", "add", "sub", "baddbmm", _SDPA, "softmax", "mul")
    user = flow.ahead(site, lambda s: s.place.function in users, MASKING)
    if user is None or (user.place.function != _SDPA and not _leads_to_scores(flow, site)):
        return
    own = site.arguments.get("diagonal", 0)
    for diagonal in (own + 1, own - 1, own + 2, own - 2):
        yield {"how": "diagonal", "diagonal": diagonal}
    rows, columns = site.outputs[0].shape[-2:]
    if rows != columns:  # aligned at the bottom right instead of the top left, or the reverse
        yield {"how": "diagonal", "diagonal": own + columns - rows}
        yield {"how": "diagonal", "diagonal": own - columns + rows}
    yield {"how": "missing"}
    yield {"how": "the other triangle"}


def _leads_to_scores(flow: Flow, site: FunctionSite) -> bool:
    return (
        flow.ahead(
            site,
            lambda s: (
                s.place.function == _SDPA
                or (name_of(s) == "softmax" and weighs(flow, s))
                or s.place.function == "baddbmm"
            ),
            MASKING | SCORING,
        )
        is not None
    )


def _change_triangle(call: Call, values: Values) -> Any:
    import torch

    upper = call.function == "triu"
    if values["how"] == "diagonal":
        return call.run(diagonal=values["diagonal"])
    if values["how"] == "missing":
        return torch.zeros_like(call["input"]) if upper else call["input"].clone()
    other = torch.tril if upper else torch.triu
    return other(call["input"], -call.arguments.get("diagonal", 0))


def _absent(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A causal mask where the reference has none."""
    flow = flow_of(context)
    if site.place.function == _SDPA:
        if site.arguments.get("is_causal"):
            for how in ("missing", "one more", "one less", "aligned at the end"):
                yield {"how": how}
            # The first row is hidden whole: -inf gives NaN there and a large number the mean.
            yield {"how": "one less", "finite": True}
        elif not is_causal(flow, site.arguments.get("attn_mask")):
            yield {"how": "present"}
        return
    if not weighs(flow, site):
        return
    scores = site.arguments.get("input", site.arguments.get("0"))
    if not isinstance(scores, Operand) or len(scores.shape) < 2:
        return
    if site.arguments.get("dim", -1) not in (-1, len(scores.shape) - 1):
        return
    if site.place.function == "module":
        return
    for before in flow.behind(scores, SCORING | PRODUCTS):
        found = mask_of(flow, before) if before.place.function in _MASKED else None
        if found is not None and is_causal(flow, before.arguments[found[0]]):
            return
    yield {"how": "present"}


def _add_causal(call: Call, values: Values) -> Any:
    import torch

    if call.function != _SDPA:
        scores = call["input"]
        rows, columns = scores.shape[-2:]
        future = torch.ones(rows, columns, dtype=torch.bool, device=scores.device).triu(1)
        return call.run(input=scores.masked_fill(future, float("-inf")))
    if values["how"] == "missing":
        return call.run(is_causal=False)
    rows, columns = call["query"].shape[-2], call["key"].shape[-2]
    diagonal = {"one more": 1, "one less": -1, "aligned at the end": columns - rows}
    keep = torch.ones(rows, columns, dtype=torch.bool, device=call["query"].device)
    keep = keep.tril(diagonal.get(values["how"], 0))
    mask = call.arguments.get("attn_mask")
    if mask is not None:
        keep = mask & keep if mask.dtype == torch.bool else mask.masked_fill(~keep, -torch.inf)
    if values.get("finite") and keep.dtype == torch.bool:
        keep = finite(keep, call["query"].dtype)
    return call.run(attn_mask=keep, is_causal=False)


_MASKED = ("masked_fill", "where", "add", "sub", "baddbmm", _SDPA)

_SCORES = "s = x @ x.transpose(-1, -2) / 4.0\n"

_MS_SCORES = "s = ops.matmul(x, x.swapaxes(-1, -2)) / 4.0\n"

_FUTURE = "m = torch.ones(6, 6, dtype=torch.bool).triu(1)\n"

_MS_FUTURE = "m = ops.triu(ops.ones((6, 6), ms.float32), {}) > 0\n"

_FILLED = "return torch.softmax(s.masked_fill(m, float('-inf')), -1) @ x"

_MS_FILLED = "return ops.matmul(ops.softmax(ops.masked_fill(s, m, -1e9), axis=-1), x)"

_X = ((2, 6, 8),)

HYPOTHESES = (
    FunctionHypothesis(
        "attention_causal_diagonal",
        "attention.causal",
        ("triu", "tril"),
        _triangle,
        _change_triangle,
        "causal mask: {port} instead of diagonal {reference}",
        rank=1,
        reference_value=lambda site, context: site.arguments.get("diagonal", 0),
        port_value=lambda values: values.get("diagonal", word(values)),
        examples=(
            Example(
                _SCORES + _FUTURE + _FILLED,
                _MS_SCORES + _MS_FUTURE.format(2) + _MS_FILLED,
                _X,
                port_value=2,
            ),
            Example(
                _SCORES + _FUTURE + _FILLED,
                _MS_SCORES + "return ops.matmul(ops.softmax(s, axis=-1), x)",
                _X,
                port_value="left out",
            ),
            Example(
                _SCORES + "m = torch.tril(torch.ones(6, 6))\n"
                "return torch.softmax(s.masked_fill(m == 0, -1e9), -1) @ x",
                _MS_SCORES + "m = ops.triu(ops.ones((6, 6), ms.float32)) == 0\n" + _MS_FILLED,
                _X,
                port_value="the other triangle",
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_causal_mask",
        "attention.causal",
        _MASKED,
        applied(True),
        change_mask,
        "causal mask {port}",
        rank=2,
        port_value=word,
        examples=(
            Example(
                _SCORES + "m = torch.arange(6)[None, :] > torch.arange(6)[:, None]\n" + _FILLED,
                _MS_SCORES + _MS_FUTURE.format(2) + _MS_FILLED,
                _X,
                port_value="one position later",
            ),
            Example(
                _SCORES + "m = torch.full((6, 6), float('-inf')).triu(1)\n"
                "return torch.softmax(s + self.mask[:6, :6], -1) @ x",
                _MS_SCORES + "return ops.matmul(ops.softmax(s, axis=-1), x)",
                _X,
                {
                    "mask": (
                        "nn.Buffer(torch.full((9, 9), -1e9).triu(1))",
                        "None",
                    )
                },
                port_value="left out",
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_causal_kind",
        "attention.causal",
        ("softmax", _SDPA),
        _absent,
        _add_causal,
        "causal mask {port}",
        rank=2,
        port_value=word,
        examples=(
            Example(
                "return torch.softmax(x @ x.transpose(-1, -2) / 4.0, -1) @ x",
                _MS_SCORES + _MS_FUTURE.format(1) + _MS_FILLED,
                _X,
                port_value="present",
            ),
            Example(
                "F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.25)",
                _MS_SCORES + "return ops.matmul(ops.softmax(s, axis=-1), x)",
                _X,
                port_value="left out",
            ),
            Example(
                "F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.25)",
                _MS_SCORES + _MS_FUTURE.format(0) + _MS_FILLED,
                _X,
                port_value="one position earlier",
            ),
        ),
    ),
)
