"""Masks and biases of attention: left out, turned round, on the wrong axis, after the softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from isograd.diagnose.flow import SCORING, Flow, flow_of
from isograd.diagnose.hypotheses.attention_parts import (
    is_causal,
    is_learned,
    is_score,
    scored_operand,
    softmax_of,
)
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Scale,
    Values,
)
from isograd.frameworks.base import FunctionSite, Intervention, Operand, Place

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


def mask_of(flow: Flow, site: FunctionSite) -> tuple[str, str] | None:
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
    if flow.maker(site.arguments[mask_name]) in makers_of_scores(flow, site, mask_name):
        return None
    return (mask_name, "adds")


def makers_of_scores(flow: Flow, site: FunctionSite, name: str) -> list[FunctionSite]:
    """The maker of an operand, if products of query and key are in it: it is no mask."""
    operand = site.arguments[name]
    maker = flow.maker(operand)
    if maker is None:
        return []
    found = any(softmax_of(flow, s) is not None for s in flow.behind(operand, SCORING))
    return [maker] if found else []


def applied(causal: bool) -> Callable[[FunctionSite, Context], Iterator[Values]]:
    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        flow = flow_of(context)
        found = mask_of(flow, site)
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
            if polarity == "keeps" and site.place.function == _SDPA and kind != "missing":
                yield {"argument": argument, "does": polarity, "how": kind, "finite": True}

    return propose


def _learned(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A bias of the scores that is learned, as one of relative positions."""
    flow = flow_of(context)
    found = mask_of(flow, site)
    bias = site.arguments[found[0]] if found is not None else None
    if found is None or found[1] != "adds" or not isinstance(bias, Operand):
        return
    if is_learned(flow, bias):
        square = len(bias.shape) >= 2 and bias.shape[-1] == bias.shape[-2]
        for how in ("missing", "negated", *(("transposed",) if square else ())):
            yield {"argument": found[0], "does": "adds", "how": how}


def change_mask(call: Call, values: Values) -> Any:
    name = values["argument"]
    mask = masked_otherwise(call[name], values["does"], values["how"])
    if values.get("finite"):
        mask = finite(mask, call["query"].dtype)
    fill = {"value": values["value"]} if "value" in values else {}
    return call.run(**{name: mask}, **fill)


def finite(keep: Any, dtype: Any) -> Any:
    """A mask that is true where scores stay, as numbers to add: so large that scores vanish.

    keep: any shape, bool or 0 and 1; returns: its shape, of the dtype.
    """
    return keep.to(dtype).sub(1).mul(1e30)


def masked_otherwise(mask: Any, polarity: str, how: str) -> Any:
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


def _late(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Modules within which a mask and its softmax stand."""
    flow = flow_of(context)
    own = site.place.module
    for mask in flow.sites[: site.event]:
        if mask.place.module != own or mask.place.function not in _MASKED:
            continue
        found = mask_of(flow, mask)
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
    kept: list[Any] = []

    def leave_out(site: Any, _: Values) -> Any:
        mask = site[values["argument"]]
        kept.append(mask == 0 if values["does"] == "hides" else mask != 0)
        return site.run(**{values["argument"]: masked_otherwise(mask, values["does"], "missing")})

    def hide(site: Any, _: Values) -> Any:
        result = site.run()
        return result * kept.pop(0).to(result.dtype)

    places: tuple[Place, Place] = (values["mask"], values["softmax"])
    changes = (Intervention(places[0], leave_out), Intervention(places[1], hide))
    return call.together(values["name"], changes)


def _filled(site: FunctionSite, context: Context) -> Iterator[Values]:
    found = mask_of(flow_of(context), site)
    value = site.arguments.get("value")
    if found is not None and isinstance(value, (int, float)) and value < -100:
        yield {}


def _added(site: FunctionSite, context: Context) -> Iterator[Values]:
    found = mask_of(flow_of(context), site)
    if found is not None and found[1] == "adds" and site.place.function == "add":
        mask = site.arguments[found[0]]
        if isinstance(mask, Operand) and not is_learned(flow_of(context), mask):
            yield {"argument": found[0]}


def _weakly(site: FunctionSite, context: Context) -> Iterator[Values]:
    found = mask_of(flow_of(context), site)
    if found is None or site.place.function not in ("masked_fill", "add"):
        return
    mask = site.arguments[found[0]]
    if isinstance(mask, Operand) and not is_learned(flow_of(context), mask):
        yield {"argument": found[0], "does": found[1]}


def _add_where_masked(call: Call, values: Values) -> Any:
    import torch

    mask, name = call[values["argument"]], values["argument"]
    if values["does"] == "hides":
        return call["input"] + mask.to(call["input"].dtype) * values["value"]
    weak = torch.where(mask < -100, torch.full_like(mask, values["value"]), mask)
    return call.run(**{name: weak})


def _set_where_masked(call: Call, values: Values) -> Any:
    import torch

    mask, result = call[values["argument"]], call.run()
    hidden = (mask < -100).expand(result.shape)
    return torch.where(hidden, torch.full_like(result, values["value"]), result)


_MASKED = ("masked_fill", "where", "add", "sub", "baddbmm", _SDPA)

_SCORES = "s = x @ x.transpose(-1, -2) / 4.0\n"

_MS_SCORES = "s = ops.matmul(x, x.swapaxes(-1, -2)) / 4.0\n"

_FILLED = "return torch.softmax(s.masked_fill(m, float('-inf')), -1) @ x"

_MS_FILLED = "return ops.matmul(ops.softmax(ops.masked_fill(s, m, -1e9), axis=-1), x)"

_PADDED = _SCORES + "m = (y == 0)[:, None, :]\n" + _FILLED

_XY = ((2, 6, 8), (2, 6))

_TABLE = {"t": ("nn.Embedding(6, 6)", "nn.Embedding(6, 6)")}


def word(values: Values) -> str:
    return str(_WORDS.get(values["how"], values["how"]))


HYPOTHESES = (
    FunctionHypothesis(
        "attention_mask",
        "attention.mask",
        _MASKED,
        applied(False),
        change_mask,
        "attention mask {port}",
        rank=2,
        special_of=("mask.inverted", "mask.axis"),
        port_value=word,
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
    FunctionHypothesis(
        "attention_bias",
        "attention.bias",
        ("add", "baddbmm", _SDPA),
        _learned,
        change_mask,
        "the learned bias of the attention scores {port}",
        rank=2,
        port_value=word,
        examples=(
            Example(
                _SCORES + "return torch.softmax(s + self.t.weight, -1) @ x",
                _MS_SCORES + "return ops.matmul(ops.softmax(s + 0 * self.t.embedding_table), x)",
                ((2, 6, 8),),
                _TABLE,
                port_value="left out",
            ),
            Example(
                _SCORES + "return torch.softmax(s + self.t.weight[None], -1) @ x",
                _MS_SCORES + "s = s + self.t.embedding_table.swapaxes(0, 1)\n"
                "return ops.matmul(ops.softmax(s, axis=-1), x)",
                ((2, 6, 8),),
                _TABLE,
                port_value="along the other axis",
            ),
        ),
    ),
    FunctionHypothesis(
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
    FunctionHypothesis(
        "attention_mask_value",
        "attention.mask",
        ("masked_fill",),
        _filled,
        lambda call, values: call.run(value=values["value"]),
        "masked scores set to {port} instead of {reference}",
        argument="value",
        numbers=(Number("value", (0.0, -1.0, -10.0, -5.0), Scale.LINEAR),),
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
    FunctionHypothesis(
        "attention_mask_added_value",
        "attention.mask",
        ("add",),
        _added,
        _set_where_masked,
        "masked scores are {port} instead of very small",
        numbers=(Number("value", (0.0, -1.0, -10.0, 1.0), Scale.LINEAR),),
        rank=4,
        examples=(
            Example(
                _SCORES + "m = (y == 0)[:, None, :] * -1e4\nreturn torch.softmax(s + m, -1) @ x",
                _MS_SCORES + "m = (y != 0)[:, None, :]\n"
                "return ops.matmul(ops.softmax(s * m, axis=-1), x)",
                _XY,
                integers={"y": 3},
                port_value=0.0,
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_mask_weak",
        "attention.mask",
        ("masked_fill", "add"),
        _weakly,
        _add_where_masked,
        "{port} is added to masked scores instead of a very small number",
        numbers=(Number("value", (-10.0, -1.0, -5.0, -20.0), Scale.LINEAR),),
        rank=4,
        examples=(
            Example(
                _PADDED,
                _MS_SCORES + "m = (y == 0)[:, None, :] * -6.0\n"
                "return ops.matmul(ops.softmax(s + m, axis=-1), x)",
                _XY,
                integers={"y": 3},
                port_value=-6.0,
            ),
        ),
    ),
)
