"""Heads of attention: split and merged along other axes, and shared in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import ARRANGING, Flow, flow_of
from isograd.diagnose.hypotheses.attention_order import leads_to_attention
from isograd.diagnose.hypotheses.reshaping import groups
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values, operands
from isograd.frameworks.base import FunctionSite, Intervention, Operand

_VIEWING = ("view", "reshape", "unflatten", "flatten")
_TURNING = ("transpose", "permute")


def _given(site: FunctionSite) -> Operand | None:
    return next(iter(operands(site)), None)


def _is_split(site: FunctionSite) -> bool:
    """Whether the last axis is split in two."""
    given = _given(site)
    if site.place.function not in _VIEWING or given is None or not site.outputs:
        return False
    shape = site.outputs[0].shape
    return any(
        (end - start, stop - begin, stop) == (1, 2, len(shape))
        for start, end, begin, stop in groups(given.shape, shape)
    )


def _merge(site: FunctionSite) -> bool:
    """Whether the last two axes are merged."""
    given = _given(site)
    if site.place.function not in _VIEWING or given is None or not site.outputs:
        return False
    return any(
        (end - start, end) == (2, len(given.shape))
        for start, end, _, _ in groups(given.shape, site.outputs[0].shape)
    )


def _splits(flow: Flow, site: FunctionSite) -> list[FunctionSite]:
    """The heads of query, key and value are split off at these functions of a module."""
    own = site.place.module
    found = [
        s
        for s in flow.sites[: site.event]
        if s.place.module == own and _is_split(s) and leads_to_attention(flow, s)
    ]
    return found if len(found) >= 2 else []


def _together(site: FunctionSite, context: Context) -> Iterator[Values]:
    flow = flow_of(context)
    splits = _splits(flow, site)
    if not splits:
        return
    own = site.place.module
    places = tuple(s.place for s in splits)
    yield {"name": own, "how": "split as (width, heads)", "places": places, "merges": ()}
    merges = tuple(
        s.place
        for s in flow.sites[splits[-1].event + 1 : site.event]
        if s.place.module == own and _merge(s)
    )
    if merges:
        yield {"name": own, "how": "split as (width, heads)", "places": places, "merges": merges}
    turns = tuple(u.place for s in splits for u in flow.after(s) if u.place.function in _TURNING)
    if len(turns) == len(splits):
        yield {"name": own, "how": "no exchange of axes", "places": turns, "merges": ()}


def _change_heads(call: Call, values: Values) -> Any:
    def split(site: Any, _: Values) -> Any:
        result = site.run()
        shape = (*result.shape[:-2], result.shape[-1], result.shape[-2])
        return result.reshape(shape).transpose(-1, -2)

    def merge(site: Any, _: Values) -> Any:
        shape = site.run().shape
        return site["input"].transpose(-1, -2).reshape(shape)

    def leave(site: Any, _: Values) -> Any:
        return site["input"].reshape(site.run().shape)

    change = leave if values["how"] == "no exchange of axes" else split
    changes = tuple(Intervention(p, change) for p in values["places"])
    changes += tuple(Intervention(p, merge) for p in values["merges"])
    return call.together(values["name"], changes)


def _merged(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Heads are merged after an exchange of axes."""
    flow = flow_of(context)
    given = _given(site)
    maker = flow.maker(given)
    if not _merge(site) or maker is None or maker.place.function not in _TURNING:
        return
    before = (*ARRANGING, "mul", "div")
    products = ("matmul", "bmm", "einsum", "scaled_dot_product_attention")
    if not any(s.place.function in products for s in flow.behind(given, frozenset(before))):
        return
    arguments = maker.arguments
    if maker.place.function == "transpose":
        yield {"dims": (arguments["dim0"], arguments["dim1"]), "swap": True}
    elif isinstance(arguments.get("dims"), tuple):
        yield {"dims": arguments["dims"], "swap": False}


def _merge_directly(call: Call, values: Values) -> Any:
    dims = values["dims"]
    given = call["input"]
    if values["swap"]:
        before = given.transpose(*dims)
    else:
        before = given.permute([list(dims).index(i) for i in range(len(dims))])
    return before.reshape(call.run().shape)


def _shared(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Key and value heads are repeated for several queries, in a module."""
    flow = flow_of(context)
    own = site.place.module
    found = [
        s.place
        for s in flow.sites[: site.event]
        if s.place.module == own and _repeats(flow, s) and leads_to_attention(flow, s)
    ]
    if found:
        yield {"name": own, "places": tuple(found), "which": ""}
    if len(found) == 2:
        for place, which in zip(found, ("first", "second"), strict=True):
            yield {"name": own, "places": (place,), "which": f" ({which} of the two only)"}


def _repeats(flow: Flow, site: FunctionSite) -> bool:
    function, arguments = site.place.function, site.arguments
    if function == "repeat_interleave":
        return isinstance(arguments.get("repeats"), int) and isinstance(arguments.get("dim"), int)
    if function == "repeat":
        shape = arguments.get("shape")
        given = arguments.get("input")
        if not isinstance(shape, tuple) or not isinstance(given, Operand):
            return False
        # one axis, which is already longer than 1: else both ways are the same
        many = [i for i, n in enumerate(shape) if n != 1]
        return len(many) == 1 and len(shape) == len(given.shape) and given.shape[many[0]] > 1
    if function not in _VIEWING:
        return False
    maker = flow.maker(_given(site))
    return maker is not None and maker.place.function == "expand"


def _change_repeats(call: Call, values: Values) -> Any:
    def other(site: Any, _: Values) -> Any:
        import torch

        given = site["input"]
        if site.function == "repeat_interleave":
            return torch.cat([given] * site["repeats"], site["dim"])
        if site.function == "repeat":
            axis = next(i for i, n in enumerate(site["shape"]) if n != 1)
            return given.repeat_interleave(site["shape"][axis], axis)
        repeated = site.run()
        start, end = next(iter(groups(tuple(given.shape), tuple(repeated.shape))))[:2]
        return given.transpose(start, end - 1).reshape(repeated.shape)

    changes = tuple(Intervention(place, other) for place in values["places"])
    return call.together(values["name"], changes)


def _grouped(site: FunctionSite, context: Context) -> Iterator[Values]:
    if site.arguments.get("enable_gqa"):
        yield {}


def _tiled(call: Call, values: Values) -> Any:
    import torch

    times = call["query"].shape[-3] // call["key"].shape[-3]
    key, value = (torch.cat([call[name]] * times, -3) for name in ("key", "value"))
    return call.run(key=key, value=value, enable_gqa=False)


_MIX = "w = torch.softmax(q @ k.transpose(-1, -2) / 4.0, -1)\n"
_MS_MIX = "w = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / 4.0, axis=-1)\n"
_HEADS = "q, k, v = [a.view(2, 6, 2, 4).transpose(1, 2) for a in (x, x * y, y)]\n"
_END = "return (w @ v).transpose(1, 2).reshape(2, 6, 8)"
_MS_HEADS = "q, k, v = [a.reshape(2, 6, 2, 4).swapaxes(1, 2) for a in (x, x * y, y)]\n"
_MS_END = "return ops.matmul(w, v).swapaxes(1, 2).reshape(2, 6, 8)"
_XY = ((2, 6, 8), (2, 6, 8))
_QKV = ((2, 4, 5, 3), (2, 2, 5, 3))

HYPOTHESES = (
    FunctionHypothesis(
        "attention_heads",
        "attention.heads",
        ("module",),
        _together,
        _change_heads,
        "the heads of query, key and value are split or merged otherwise: {port}",
        rank=3,
        port_value=lambda values: values["how"],
        examples=(
            Example(
                _HEADS + _MIX + _END,
                "q, k, v = [a.reshape(2, 6, 4, 2).transpose(0, 3, 1, 2) for a in (x, x * y, y)]\n"
                + _MS_MIX
                + _MS_END,
                _XY,
                port_value="split as (width, heads)",
                proved=False,
            ),
            Example(
                _HEADS + _MIX + _END,
                "q, k, v = [a.reshape(2, 2, 6, 4) for a in (x, x * y, y)]\n" + _MS_MIX + _MS_END,
                _XY,
                port_value="no exchange of axes",
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_merge",
        "attention.heads",
        _VIEWING,
        _merged,
        _merge_directly,
        "heads are merged without exchanging their axis with the positions",
        rank=2,
        examples=(
            Example(
                _HEADS + _MIX + _END,
                _MS_HEADS + _MS_MIX + "return ops.matmul(w, v).reshape(2, 6, 8)",
                _XY,
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_kv_heads",
        "attention.kv_heads",
        ("module",),
        _shared,
        _change_repeats,
        "the heads of key and value are repeated in the other order{port}",
        rank=3,
        port_value=lambda values: values["which"],
        examples=(
            Example(
                "k = y[:, :, None].expand(2, 2, 2, 5, 3).reshape(2, 4, 5, 3)\nq, v = x, k * k\n"
                + _MIX
                + "return w @ v",
                "k = ops.cat((y, y), 1)\nq, v = x, k * k\n" + _MS_MIX + "return ops.matmul(w, v)",
                _QKV,
                proved=False,
            ),
            Example(
                "k, v = y.repeat_interleave(2, 1), y.exp().repeat_interleave(2, dim=1)\nq = x\n"
                + _MIX
                + "return w @ v",
                "k = ops.cat((y, y), 1)\nq, v = x, ops.exp(k)\n"
                + _MS_MIX
                + "return ops.matmul(w, v)",
                _QKV,
                proved=False,
            ),
            Example(
                "k, v = y.repeat_interleave(2, 1), y.exp().repeat_interleave(2, dim=1)\nq = x\n"
                + _MIX
                + "return w @ v",
                "k, v = ops.repeat_interleave(y, 2, 1), ops.exp(ops.cat((y, y), 1))\nq = x\n"
                + _MS_MIX
                + "return ops.matmul(w, v)",
                _QKV,
                port_value=" (second of the two only)",
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_kv_groups",
        "attention.kv_heads",
        ("scaled_dot_product_attention",),
        _grouped,
        _tiled,
        "the heads of key and value are repeated in the other order",
        rank=3,
        examples=(
            Example(
                "F.scaled_dot_product_attention(x, y, y, enable_gqa=True, scale=0.25)",
                "q, k = x, ops.cat((y, y), 1)\n" + _MS_MIX + "return ops.matmul(w, k)",
                _QKV,
                proved=False,
            ),
        ),
    ),
)
