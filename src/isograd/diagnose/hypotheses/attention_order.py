"""Query, key and value exchanged: as operands, in a fused projection, between projections."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import ARRANGING, PRODUCTS, Flow, flow_of, name_of
from isograd.diagnose.hypotheses.attention_parts import softmax_of
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values, operands
from isograd.frameworks.base import FunctionSite, Operand

_SDPA = "scaled_dot_product_attention"
_ROLES = ("query", "key", "value")
_ORDERS = [o for o in itertools.permutations(range(3)) if o != (0, 1, 2)]
#: What query and key pass through between their projection and their product.
_TO_PRODUCT = ARRANGING | frozenset(
    "mul div add sub neg cat stack rms_norm layer_norm normalize rsqrt pow mean view_as_complex "
    "view_as_real".split()
)


def leads_to_attention(flow: Flow, site: FunctionSite) -> bool:
    """Whether a site's result becomes query, key or value."""

    def stop(later: FunctionSite) -> bool:
        if later.place.function == _SDPA or softmax_of(flow, later) is not None:
            return True
        return name_of(later) in PRODUCTS and any(
            name_of(s) == "softmax"
            for o in operands(later)
            for s in flow.behind(o, ARRANGING | {"mul", "div"})
        )

    return flow.ahead(site, stop, _TO_PRODUCT) is not None


def _words(order: tuple[int, ...]) -> str:
    return ", ".join(_ROLES[i] for i in order)


def _operand_orders(site: FunctionSite, context: Context) -> Iterator[Values]:
    if site.place.function == _SDPA:
        shapes = [site.arguments[name].shape for name in _ROLES]
        for order in _ORDERS:
            if all(shapes[i] == shapes[j] for i, j in enumerate(order)):
                yield {"order": order}
        return
    shape = site.outputs[0].shape if site.outputs else ()
    if len(shape) > 1 and shape[-1] == shape[-2] > 1:
        if softmax_of(flow_of(context), site) is not None:
            yield {"order": (1, 0, 2)}


def _exchange_operands(call: Call, values: Values) -> Any:
    if call.function == _SDPA:
        given = [call[name] for name in _ROLES]
        order = values["order"]
        return call.run(**{name: given[i] for name, i in zip(_ROLES, order, strict=True)})
    if call.function == "baddbmm":  # its first argument is a mask, which stays as it is
        first, second = call["batch1"], call["batch2"]
        return call.run(batch1=second.transpose(-1, -2), batch2=first.transpose(-1, -2))
    return call.run().transpose(-1, -2)


def _parts(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A fused projection taken apart: into three results, or along an axis of three."""
    flow = flow_of(context)
    function = site.place.function
    if function in ("chunk", "split", "tensor_split", "unbind"):
        shapes = {o.shape for o in site.outputs}
        if len(site.outputs) == 3 and len(shapes) == 1 and leads_to_attention(flow, site):
            for order in _ORDERS:
                yield {"order": order}
            heads = _heads_behind(flow, site)
            if heads and function != "unbind":
                yield {"order": (0, 1, 2), "heads": heads}
        return
    shape = site.outputs[0].shape
    given = next(iter(operands(site)), None)
    if given is None or not leads_to_attention(flow, site):
        return
    for axis, size in enumerate(shape):
        if size == 3 and (axis >= len(given.shape) or given.shape[axis] != 3 or len(shape) > 3):
            for order in _ORDERS:
                yield {"order": order, "axis": axis}
            for other in (axis - 1, axis + 1):
                if 0 < other < len(shape) - 1 and shape[other] != 3:
                    yield {"order": (0, 1, 2), "axis": axis, "exchanged": other}


def _heads_behind(flow: Flow, site: FunctionSite) -> int:
    """The number of heads into which the parts are viewed later, 0 if unknown."""
    viewing = ("view", "reshape", "unflatten")
    found = flow.ahead(site, lambda s: s.place.function in viewing, ARRANGING)
    if found is None or len(found.outputs[0].shape) < 3:
        return 0
    heads, width = found.outputs[0].shape[-2:]
    return heads if heads * width == site.outputs[0].shape[-1] else 0


def _exchange_parts(call: Call, values: Values) -> Any:
    import torch

    order = list(values["order"])
    if "heads" in values:  # the parts of each head next to each other
        whole = torch.cat(tuple(call.run()), -1)
        apart = whole.reshape(*whole.shape[:-1], values["heads"], 3, -1)
        return tuple(part.flatten(-2) for part in apart.unbind(-2))
    result = call.run()
    if "exchanged" in values:
        shape = list(result.shape)
        one, other = values["axis"], values["exchanged"]
        shape[one], shape[other] = shape[other], shape[one]
        return result.reshape(shape).transpose(one, other)
    if "axis" in values:
        index = torch.tensor(order, device=result.device)
        return result.index_select(values["axis"], index)
    return type(result)(result[i] for i in order)


def _projections(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A module whose projections of one input become query, key and value."""
    flow = flow_of(context)
    own = site.place.module
    prefix = f"{own}." if own else ""
    alike: dict[tuple[str, tuple[int, ...]], list[FunctionSite]] = {}
    for child in flow.sites[: site.event]:
        inside = child.place.module.startswith(prefix) and child.place.module != own
        if child.place.function != "module" or not inside or len(child.outputs) != 1:
            continue
        if not ("Linear" in child.kind or "Conv" in child.kind) or "0" not in child.arguments:
            continue
        given = child.arguments["0"]
        if isinstance(given, Operand) and _becomes_operand(flow, child):
            alike.setdefault((given.source, child.outputs[0].shape), []).append(child)
    for children in alike.values():
        names = tuple(c.place.module.removeprefix(prefix) for c in children)
        if len(set(names)) != len(names) or not 2 <= len(names) <= 3:
            continue
        if _depth(names) and len({n.rpartition(".")[0] for n in names}) == 1:
            continue  # a module further in holds them all
        for order in itertools.permutations(range(len(names))):
            if order != tuple(range(len(names))):
                yield {"children": names, "order": order}


def _depth(names: tuple[str, ...]) -> bool:
    return all("." in n for n in names)


def _becomes_operand(flow: Flow, child: FunctionSite) -> bool:
    return leads_to_attention(flow, child) or any(
        leads_to_attention(flow, s) for s in flow.sites if flow.ends.get(s.event) is child
    )


def _exchange_projections(call: Call, values: Values) -> Any:
    """Each projection yields what another one would; all have the same input."""
    children = [call.module.get_submodule(name) for name in values["children"]]
    before = [child.__dict__.get("forward") for child in children]
    original = [child.forward for child in children]
    results: dict[int, Any] = {}
    asked: set[int] = set()

    def yielding(number: int, wanted: int) -> Any:
        def forward(*args: Any, **kwargs: Any) -> Any:
            if number in asked:  # the module is called once more
                asked.clear()
                results.clear()
            asked.add(number)
            if wanted not in results:
                results[wanted] = original[wanted](*args, **kwargs)
            return results[wanted]

        return forward

    try:
        for number, (child, wanted) in enumerate(zip(children, values["order"], strict=True)):
            child.__dict__["forward"] = yielding(number, wanted)
        return call.run()
    finally:
        for child, own in zip(children, before, strict=True):
            if own is None:
                child.__dict__.pop("forward", None)
            else:
                child.__dict__["forward"] = own


_BY_HAND = """
w = torch.softmax(q @ k.transpose(-1, -2) / 4.0, dim=-1)
return w @ v"""
_MS_BY_HAND = """
w = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / 4.0, axis=-1)
return ops.matmul(w, v)"""
_LINEARS = dict.fromkeys("qkv", ("nn.Linear(8, 8)", "nn.Dense(8, 8)"))
_FUSED = {"qkv": ("nn.Linear(8, 24)", "nn.Dense(8, 24)")}
_EACH = "q, k, v = self.q(x), self.k(x), self.v(x)"
_X = ((2, 6, 8),)

HYPOTHESES = (
    FunctionHypothesis(
        "attention_operand_order",
        "attention.qkv_order",
        ("matmul", "bmm", "baddbmm", "einsum", _SDPA),
        _operand_orders,
        _exchange_operands,
        "query, key and value are exchanged: {port} stand in their places",
        rank=2,
        reference_value=lambda site, context: _words((0, 1, 2)),
        port_value=lambda values: _words(values["order"]),
        examples=(
            Example(
                _EACH + _BY_HAND,
                "k, q, v = self.q(x), self.k(x), self.v(x)" + _MS_BY_HAND,
                _X,
                _LINEARS,
                port_value="key, query, value",
            ),
            Example(
                _EACH + "\nreturn F.scaled_dot_product_attention(q, k, v, scale=0.25)",
                "v, k, q = self.q(x), self.k(x), self.v(x)" + _MS_BY_HAND,
                _X,
                _LINEARS,
                port_value="value, key, query",
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_fused_order",
        "attention.qkv_order",
        ("chunk", "split", "tensor_split", "unbind", "view", "reshape", "unflatten"),
        _parts,
        _exchange_parts,
        "the fused projection is taken apart in another order: {port}",
        rank=3,
        reference_value=lambda site, context: _words((0, 1, 2)),
        port_value=lambda values: (
            "heads before query, key and value"
            if "heads" in values or "exchanged" in values
            else _words(values["order"])
        ),
        examples=(
            Example(
                "q, k, v = self.qkv(x).chunk(3, -1)" + _BY_HAND,
                "k, v, q = ops.chunk(self.qkv(x), 3, -1)" + _MS_BY_HAND,
                _X,
                _FUSED,
            ),
            Example(
                "q, k, v = self.qkv(x).view(2, 6, 3, 2, 4).permute(2, 0, 3, 1, 4)" + _BY_HAND,
                "a = self.qkv(x).reshape(2, 6, 2, 3, 4).transpose(3, 0, 2, 1, 4)\n"
                "q, k, v = a[0], a[1], a[2]" + _MS_BY_HAND,
                _X,
                _FUSED,
                port_value="heads before query, key and value",
            ),
            Example(
                "a = self.qkv(x).reshape(2, 6, 3, 8)\nq, k, v = a[:, :, 0], a[:, :, 1], a[:, :, 2]"
                + _BY_HAND,
                "v, q, k = ops.chunk(self.qkv(x), 3, -1)" + _MS_BY_HAND,
                _X,
                _FUSED,
            ),
        ),
    ),
    FunctionHypothesis(
        "attention_projection_order",
        "attention.qkv_order",
        ("module",),
        _projections,
        _exchange_projections,
        "the projections to query, key and value are exchanged",
        rank=4,
        port_value=lambda values: ", ".join(values["children"][i] for i in values["order"]),
        examples=(
            Example(
                _EACH + _BY_HAND,
                "q, v, k = self.q(x), self.k(x), self.v(x)" + _MS_BY_HAND,
                _X,
                _LINEARS,
                port_value="q, v, k",
                proved=False,
            ),
        ),
    ),
)
