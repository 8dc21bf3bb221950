"""The order and the axis of concatenating, stacking and splitting; how far tensors are rolled."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import flow_of
from isograd.diagnose.hypotheses.attention_order import leads_to_attention
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Values,
    other_argument,
)
from isograd.frameworks.base import FunctionSite, Intervention, Operand

#: Every order of so many parts is tried; of more, only exchanges of two and the reverse.
_ALL_ORDERS = 4


def orders(count: int) -> Iterator[tuple[int, ...]]:
    """Orders of parts other than their own: all of few, exchanges and the reverse of many."""
    own = tuple(range(count))
    if count <= _ALL_ORDERS:
        yield from (o for o in itertools.permutations(own) if o != own)
        return
    yield own[::-1]
    for first, second in itertools.combinations(own, 2):
        order = list(own)
        order[first], order[second] = order[second], order[first]
        yield tuple(order)


def _part_orders(site: FunctionSite, context: Context) -> Iterator[Values]:
    parts = site.arguments.get("tensors")
    if not isinstance(parts, tuple) or len(parts) < 2:
        return
    sources = [p.source for p in parts if isinstance(p, Operand)]
    for order in orders(min(len(parts), 12)):
        if [sources[i] for i in order] != sources[: len(order)]:
            yield {"order": order}


def _in_order(call: Call, values: Values) -> Any:
    parts = list(call["tensors"])
    return call.run(tensors=[parts[i] for i in values["order"]] + parts[len(values["order"]) :])


def _axes(own: Any, site: FunctionSite) -> Iterator[int]:
    count = len(site.outputs[0].shape)
    for axis in range(count):
        if isinstance(own, int) and axis != own % count:
            yield axis


def _other_axes(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Other axes; the port may give the result the shape again that is expected."""
    for axis in _axes(site.arguments.get("dim", 0), site):
        yield {"dim": axis}
        yield {"dim": axis, "shape": site.outputs[0].shape}


def _along_other_axis(call: Call, values: Values) -> Any:
    result = call.run(dim=values["dim"])
    return result.reshape(values["shape"]) if "shape" in values else result


def _split_orders(site: FunctionSite, context: Context) -> Iterator[Values]:
    count = len(site.outputs)
    shapes = {o.shape for o in site.outputs}
    if count < 2 or len(shapes) != 1 or count > 12:
        return
    if count == 3 and leads_to_attention(flow_of(context), site):
        return  # attention.qkv_order
    for order in orders(count):
        yield {"order": order}


def _split_in_order(call: Call, values: Values) -> Any:
    result = call.run()
    return type(result)([result[i] for i in values["order"]])


def _slice_pairs(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Modules that slice one tensor into two equal parts."""
    own = site.place.module
    slices: dict[str, list[FunctionSite]] = {}
    for one in context.sites[: site.event]:
        if one.place.module == own and one.place.function == "getitem" and one.outputs:
            given = one.arguments.get("input")
            if isinstance(given, Operand) and "slice" in str(one.arguments.get("index")):
                slices.setdefault(given.source, []).append(one)
    for found in slices.values():
        if len(found) == 2 and found[0].outputs[0].shape == found[1].outputs[0].shape:
            if found[0].arguments["index"] != found[1].arguments["index"]:
                yield {"name": own, "first": found[0].place, "second": found[1].place}


def _slices_exchanged(call: Call, values: Values) -> Any:
    indices: list[Any] = []

    def note(site: Any, _: Values) -> Any:
        indices.append(site["index"])
        return site.run()

    # once to learn both indices, once with each in the other's place
    places = (values["first"], values["second"])
    _ = call.together(values["name"], tuple(Intervention(p, note) for p in places))
    first, second = indices[:2]

    def with_index(index: Any) -> Any:
        return lambda site, _: site.run(index=index)

    changes = (
        Intervention(places[0], with_index(second)),
        Intervention(places[1], with_index(first)),
    )
    return call.together(values["name"], changes)


def _other_shifts(own: Any, site: FunctionSite) -> Iterator[Any]:
    """Not rolled, the other way, the axes exchanged, and one element more or less."""
    many = own if isinstance(own, tuple) else (own,)
    if not all(isinstance(shift, int) for shift in many):
        return
    opposite = tuple(-shift for shift in many)
    found = [(0,) * len(many), opposite, many[::-1], opposite[::-1]]
    found += [tuple(shift + step for shift in many) for step in (1, -1)]
    for shifts in dict.fromkeys(found):
        if shifts != many:
            yield shifts if isinstance(own, tuple) else shifts[0]


_PAIR = ((4, 6), (4, 6))

HYPOTHESES = (
    FunctionHypothesis(
        "cat_order",
        "cat.order",
        ("cat",),
        _part_orders,
        _in_order,
        "tensors concatenated in the order {port}",
        rank=3,
        port_value=lambda values: ", ".join(map(str, values["order"])),
        examples=(
            Example("torch.cat((x, y), 1)", "ops.cat((y, x), 1)", _PAIR, port_value="1, 0"),
            Example(
                "torch.cat([x, y, x * 2, y * 3], -1)",
                "ops.cat((y, x * 2, x, y * 3), -1)",
                _PAIR,
                port_value="1, 2, 0, 3",
            ),
        ),
    ),
    FunctionHypothesis(
        "stack_order",
        "stack.order",
        ("stack",),
        _part_orders,
        _in_order,
        "tensors stacked in the order {port}",
        rank=3,
        port_value=lambda values: ", ".join(map(str, values["order"])),
        examples=(Example("torch.stack((x, y))", "ops.stack((y, x))", _PAIR, port_value="1, 0"),),
    ),
    FunctionHypothesis(
        "cat_axis",
        "cat.axis",
        ("cat",),
        _other_axes,
        _along_other_axis,
        "concatenated along axis {port} instead of {reference}",
        "dim",
        rank=3,
        examples=(
            Example(
                "torch.cat((x, y), 1).reshape(4, 12)",
                "ops.cat((x, y), 0).reshape(4, 12)",
                _PAIR,
                port_value=0,
            ),
            Example(
                "torch.cat((x, y), 1) * 2",
                "ops.cat((x, y), 0).reshape(4, -1) * 2",
                _PAIR,
                port_value=0,
            ),
        ),
    ),
    other_argument(
        "stack_axis",
        "stack.axis",
        ("stack",),
        "dim",
        _axes,
        "stacked along axis {port} instead of {reference}",
        rank=3,
        examples=(
            Example(
                "torch.stack((x, y), -1).flatten(1)",
                "ops.stack((x, y), 1).reshape(4, 12)",
                _PAIR,
                port_value=1,
            ),
        ),
    ),
    FunctionHypothesis(
        "split_order",
        "split.order",
        ("chunk", "split", "tensor_split", "unbind"),
        _split_orders,
        _split_in_order,
        "the parts of a tensor are taken in the order {port}",
        rank=3,
        port_value=lambda values: ", ".join(map(str, values["order"])),
        examples=(
            Example(
                "a, b = x.chunk(2, -1)\nreturn a * torch.sigmoid(b)",
                "a, b = ops.chunk(x, 2, -1)\nreturn b * ops.sigmoid(a)",
                ((4, 8),),
                port_value="1, 0",
            ),
            Example(
                "i, f, g, o = x.split(2, dim=1)\nreturn i.sigmoid() * g.tanh() + f * o.exp()",
                "i, g, f, o = ops.split(x, 2, axis=1)\n"
                "return ops.sigmoid(i) * ops.tanh(g) + f * ops.exp(o)",
                ((4, 8),),
                port_value="0, 2, 1, 3",
            ),
        ),
    ),
    other_argument(
        "roll_shift",
        "roll.shift",
        ("roll",),
        "shifts",
        _other_shifts,
        "rolled by {port} instead of {reference}",
        rank=3,
        examples=(
            Example(
                "torch.roll(x, 2, 1) * 2",
                "ops.cat((x[:, 2:], x[:, :2]), 1) * 2",
                ((4, 6),),
                port_value=-2,
            ),
            Example(
                "torch.roll(x, (-1, -2), (0, 1)) + 1",
                "x + 1",
                ((4, 6),),
                port_value="(0, 0)",
            ),
            Example(
                "torch.roll(x, 1, 0)",
                "ops.cat((x[-2:], x[:-2]), 0)",
                ((5, 6),),
                port_value=2,
            ),
        ),
    ),
    FunctionHypothesis(
        "slice_order",
        "split.order",
        ("module",),
        _slice_pairs,
        _slices_exchanged,
        "the parts of a sliced tensor are exchanged",
        rank=4,
        examples=(
            Example(
                "x[:, :4] * torch.sigmoid(x[:, 4:])",
                "x[:, 4:] * ops.sigmoid(x[:, :4])",
                ((4, 8),),
                proved=False,
            ),
        ),
    ),
)
