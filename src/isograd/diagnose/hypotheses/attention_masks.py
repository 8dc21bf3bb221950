"""Masks of attention: left out, inverted, on the wrong axis, added after the softmax, shifted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from isograd.diagnose.flow import PRODUCTS, SCORING, Flow, flow_of, name_of
from isograd.diagnose.hypotheses.attention_parts import (
    MASKING,
    is_causal,
    is_learned,
    is_score,
    scored_operand,
    softmax_of,
    weighs,
)
from isograd.diagnose.hypothesis import Call, Context, Example, Hypothesis, Numeric, Values
from isograd.frameworks.base import FunctionSite, Operand, Place

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


def _mask_of(flow: Flow, site: FunctionSite) -> tuple[str, str] | None:
    """The argument that masks scores, and what it does: "hides", "keeps" (if true), or "adds"."""
    function = site.place.function
    if function == _SDPA:
        mask = site.arguments.get("attn_mask")
        if not isinstance(mask, Operand):
            return None
        return ("attn_mask", "keeps" if mask.dtype == "bool" else "adds")
    if function == "baddbmm":
        return ("input", "adds") if softmax_of(flow, site) is not None else None
    if not is_score(flow, site):
        return None
    scores = scored_operand(flow, site)
    if scores is None:
        return None
    if function == "masked_fill":
        return ("mask", "hides")
    if function == "where":
        return ("condition", "keeps" if scores == "input" else "hides")
    mask_name = "other" if scores == "input" else "input"
    if not isinstance(site.arguments.get(mask_name), Operand):
        return None
    if flow.maker(site.arguments[mask_name]) in _makers_of_scores(flow, site, mask_name):
        return None
    return (mask_name, "adds")


def _makers_of_scores(flow: Flow, site: FunctionSite, name: str) -> list[FunctionSite]:
    """The maker of an operand, if products of query and key are in it: it is no mask."""
    operand = site.arguments[name]
    maker = flow.maker(operand)
    if maker is None:
        return []
    found = any(softmax_of(flow, s) is not None for s in flow.behind(operand, SCORING))
    return [maker] if found else []


def _applied(causal: bool) -> Callable[[FunctionSite, Context], Iterator[Values]]:
    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        flow = flow_of(context)
        found = _mask_of(flow, site)
        if found is None:
            return
        argument, polarity = found
        mask = site.arguments[argument]
        if is_causal(flow, mask) != causal or not isinstance(mask, Operand):
            return
        if polarity == "adds" and is_learned(flow, mask):
            return
        kinds = ["missing", "inverted"] + (["negated"] if polarity == "adds" else [])
        if len(mask.shape) >= 2 and (mask.shape[-1] == mask.shape[-2] or 1 in mask.shape[-2:]):
            kinds.append("transposed")
        if (causal and polarity != "hides") or (causal and mask.shape[-2:].count(1) == 0):
            kinds += ["one more", "one less"]
        value = site.arguments.get("value")
        for kind in kinds:
            yield {"argument": argument, "does": polarity, "how": kind}
            if value == -math.inf and kind in ("inverted", "transposed", "one less"):
                # where all of a row is hidden, -inf gives NaN and a large number the mean
                yield {"argument": argument, "does": polarity, "how": kind, "value": -1e9}

    return propose


def _change_mask(call: Call, values: Values) -> Any:
    name = values["argument"]
    mask = _masked_otherwise(call[name], values["does"], values["how"])
    fill = {"value": values["value"]} if "value" in values else {}
    return call.run(**{name: mask}, **fill)


def _masked_otherwise(mask: Any, polarity: str, how: str) -> Any:
    import torch

    shows = {"hides": False, "keeps": True, "adds": 0.0}[polarity]
    if how == "missing":
        return torch.full_like(mask, shows)
    if how == "inverted":
        if polarity == "adds":
            return torch.where(mask == 0, mask.min(), torch.zeros_like(mask))
        return ~mask if mask.dtype == torch.bool else (mask == 0).to(mask.dtype)
    if how == "negated":
        return -mask
    if how == "transposed":
        return mask.transpose(-1, -2)
    hidden = mask.min() if polarity == "adds" else torch.tensor(not shows)
    if how == "one more":
        first = torch.full_like(mask[..., :1], shows)
        return torch.cat((first, mask[..., :-1]), -1)
    last = torch.zeros_like(mask[..., :1]) + hidden.to(mask.dtype)
    return torch.cat((mask[..., 1:], last.to(mask.dtype)), -1)


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
        found = _mask_of(flow, before) if before.place.function in _MASKED else None
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
    return call.run(attn_mask=keep, is_causal=False)


def _late(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Modules within which a mask and its softmax stand."""
    flow = flow_of(context)
    own = site.place.module
    for mask in flow.sites[: site.event]:
        if mask.place.module != own or mask.place.function not in _MASKED:
            continue
        found = _mask_of(flow, mask)
        if found is None or mask.place.function == _SDPA or found[1] == "adds":
            continue
        softmax = flow.ahead(mask, lambda s: s.place.function == "softmax", SCORING)
        if softmax is not None:
            yield {
                "name": own,
                "mask": mask.place,
                "softmax": softmax.place,
                "argument": found[0],
                "does": found[1],
            }


def _mask_after(call: Call, values: Values) -> Any:
    from isograd.frameworks.torch.interventions import Intervention, together

    kept: list[Any] = []

    def leave_out(site: Any, _: Values) -> Any:
        mask = site[values["argument"]]
        kept.append(mask == 0 if values["does"] == "hides" else mask != 0)
        return site.run(**{values["argument"]: _masked_otherwise(mask, values["does"], "missing")})

    def hide(site: Any, _: Values) -> Any:
        result = site.run()
        return result * kept.pop(0).to(result.dtype)

    places: tuple[Place, Place] = (values["mask"], values["softmax"])
    changes = (Intervention(places[0], leave_out), Intervention(places[1], hide))
    return together(call, values["name"], changes)  # type: ignore[arg-type]


def _filled(site: FunctionSite, context: Context) -> Iterator[Values]:
    found = _mask_of(flow_of(context), site)
    value = site.arguments.get("value")
    if found is not None and isinstance(value, (int, float)) and value < -100:
        yield {}


_MASKED = ("masked_fill", "where", "add", "sub", "baddbmm", _SDPA)
_SCORES = "s = x @ x.transpose(-1, -2) / 4.0\n"
_MS_SCORES = "s = ops.matmul(x, x.swapaxes(-1, -2)) / 4.0\n"
_FUTURE = "m = torch.ones(6, 6, dtype=torch.bool).triu(1)\n"
_MS_FUTURE = "m = ops.triu(ops.ones((6, 6), ms.float32), {}) > 0\n"
_FILLED = "return torch.softmax(s.masked_fill(m, float('-inf')), -1) @ x"
_MS_FILLED = "return ops.matmul(ops.softmax(ops.masked_fill(s, m, -1e9), axis=-1), x)"
_PADDED = _SCORES + "m = (y == 0)[:, None, :]\n" + _FILLED
_X = ((2, 6, 8),)
_XY = ((2, 6, 8), (2, 6))


def _word(values: Values) -> str:
    return str(_WORDS.get(values["how"], values["how"]))


HYPOTHESES = (
    Hypothesis(
        "attention_causal_diagonal",
        "attention.causal",
        ("triu", "tril"),
        _triangle,
        _change_triangle,
        "causal mask: {port} instead of diagonal {reference}",
        rank=1,
        reference_value=lambda site, context: site.arguments.get("diagonal", 0),
        port_value=lambda values: values.get("diagonal", _word(values)),
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
    Hypothesis(
        "attention_causal_mask",
        "attention.causal",
        _MASKED,
        _applied(True),
        _change_mask,
        "causal mask {port}",
        rank=2,
        port_value=_word,
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
    Hypothesis(
        "attention_causal_kind",
        "attention.causal",
        ("softmax", _SDPA),
        _absent,
        _add_causal,
        "causal mask {port}",
        rank=2,
        port_value=_word,
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
        ),
    ),
    Hypothesis(
        "attention_mask",
        "attention.mask",
        _MASKED,
        _applied(False),
        _change_mask,
        "attention mask {port}",
        rank=2,
        port_value=_word,
        examples=(
            Example(
                _PADDED,
                _MS_SCORES + "return ops.matmul(ops.softmax(s, axis=-1), x)",
                _XY,
                integers={"y": 3},
                port_value="left out",
            ),
            Example(
                _PADDED,
                _MS_SCORES + "m = (y == 0)[:, :, None]\n" + _MS_FILLED,
                _XY,
                integers={"y": 3},
                port_value="along the other axis",
            ),
            Example(
                _SCORES + "m = (y == 0)[:, None, :] * -1e4\nreturn torch.softmax(s + m, -1) @ x",
                _MS_SCORES + "m = (y != 0)[:, None, :] * -1e4\n"
                "return ops.matmul(ops.softmax(s + m, axis=-1), x)",
                _XY,
                integers={"y": 3},
            ),
        ),
    ),
    Hypothesis(
        "attention_mask_after",
        "attention.mask",
        ("module",),
        _late,
        _mask_after,
        "attention mask applied after the softmax instead of before",
        rank=3,
        examples=(
            Example(
                _PADDED,
                _MS_SCORES + "m = (y != 0)[:, None, :]\n"
                "return ops.matmul(ops.softmax(s, axis=-1) * m, x)",
                _XY,
                integers={"y": 3},
                proved=False,
            ),
        ),
    ),
    Hypothesis(
        "attention_mask_value",
        "attention.mask",
        ("masked_fill",),
        _filled,
        lambda call, values: call.run(value=values["value"]),
        "masked scores set to {port} instead of {reference}",
        argument="value",
        numeric=Numeric("value", (0.0, -1.0, -10.0, -5.0), "linear"),
        rank=4,
        examples=(
            Example(
                _PADDED,
                _MS_SCORES + "m = (y == 0)[:, None, :]\n"
                "return ops.matmul(ops.softmax(ops.masked_fill(s, m, 0.0), axis=-1), x)",
                _XY,
                integers={"y": 3},
                port_value=0.0,
            ),
        ),
    ),
)
