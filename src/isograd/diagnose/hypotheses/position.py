"""Positions: where they start, and the base of sinusoidal and rotary tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.flow import ARRANGING, Flow, flow_of, name_of
from isograd.diagnose.hypotheses.attention_parts import is_score
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Number, Values
from isograd.frameworks.base import FunctionSite, Operand

_OFFSETS = (1, -1, 2, 3, 4, -2, 5, 6, 7, 8)
_LOOKUPS = ("embedding", "module Embedding", "index_select", "gather")
_ANGLES = ("sin", "cos")
_TO_USE = ARRANGING | frozenset(
    "mul div add sub outer einsum matmul pow cat stack int long".split()
)
_BASES = (10000.0, 1000.0, 5e5, 1e6, 100.0, 1e5, 500.0)


def _use(flow: Flow, site: FunctionSite) -> str | None:
    """What positions are used for: "rows" of a table, "angles"; None for neither."""
    rows = flow.ahead(site, lambda s: name_of(s) in _LOOKUPS or _indexes(s, site), _TO_USE)
    if rows is not None:
        return "rows"
    angles = flow.ahead(site, lambda s: name_of(s) in _ANGLES, _TO_USE)
    return "angles" if angles is not None else None


def _indexes(user: FunctionSite, site: FunctionSite) -> bool:
    """Whether a table is indexed by the site's own result."""
    index = user.arguments.get("index")
    parts = index if isinstance(index, tuple) else (index,)
    return user.place.function == "getitem" and any(
        isinstance(p, Operand) and p.source.startswith(f"event.{site.event}.") for p in parts
    )


def _counted(site: FunctionSite, context: Context) -> Iterator[Values]:
    if context.is_loss or not site.outputs or len(site.outputs[0].shape) != 1:
        return
    use = _use(flow_of(context), site)
    if use is not None:
        for offset in _OFFSETS:
            yield {"offset": offset, "own": _start(site)}


def _start(site: FunctionSite) -> float:
    start = site.arguments.get("start", site.arguments.get("0") if "1" in site.arguments else 0)
    return start if isinstance(start, (int, float)) else 0


def _looked_up(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Rows of a table by positions that are computed, or held by the module."""
    flow = flow_of(context)
    if name_of(site) not in _LOOKUPS or flow.is_computed(site):
        return
    name = "0" if site.place.function == "module" else "input"
    index = site.arguments.get(name)
    if not isinstance(index, Operand) or index.source.startswith("input."):
        return
    makers = list(flow.behind(index, _TO_USE))
    if any(m.place.function == "arange" for m in makers):
        return  # tried where they are counted
    if any(s.startswith("input.") for s in flow.sources(index, _TO_USE)):
        return
    for offset in _OFFSETS:
        yield {"offset": offset, "index": name}


def _sliced(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A slice of a table of positions that the module holds."""
    given = site.arguments.get("input")
    if context.is_loss or not isinstance(given, Operand) or given.dtype in ("bool", "int64"):
        return
    if given.source != "other" and not given.source.startswith("parameter."):
        return
    flow = flow_of(context)
    if is_score(flow, site):
        return  # a mask
    found = slice_of(site.arguments.get("index"))
    if found is None:
        return
    axis, stop = found
    for offset in _OFFSETS[:5]:
        if offset >= 0 and stop + offset <= given.shape[axis]:
            yield {"offset": offset, "axis": axis}


def slice_of(index: Any) -> tuple[int, int] | None:
    """Axis and end of the only bounded slice of an index from the start, as it is described."""
    parts = index if isinstance(index, tuple) else (index,)
    found = []
    axis = 0
    for part in parts:
        if part == "Ellipsis":
            return None
        words = str(part).removeprefix("slice(").removesuffix(")").split(", ")
        if str(part).startswith("slice(") and words[1].isdigit():
            if words[0] not in ("None", "0") or words[2] not in ("None", "1"):
                return None
            found.append((axis, int(words[1])))
        axis += part is not None
    return found[0] if len(found) == 1 else None


def _shift_slice(call: Call, values: Values) -> Any:
    table, axis, offset = call["input"], values["axis"], values["offset"]
    moved = table.narrow(axis, offset, table.shape[axis] - offset)
    return call.run(input=moved)


def _base(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A power of a plain number that becomes angles."""
    name = "other" if site.place.function == "rpow" else "input"
    number = site.arguments.get(name)
    if isinstance(number, (int, float)) and number > 1:
        flow = flow_of(context)
        if flow.ahead(site, lambda s: name_of(s) in _ANGLES, _TO_USE | {"rdiv", "reciprocal"}):
            yield {"argument": name}


def _with_base(call: Call, values: Values) -> Any:
    import torch

    exponent = call["input"] if values["argument"] == "other" else call.arguments["exponent"]
    return torch.pow(values["base"], exponent)


def _frequencies(site: FunctionSite, context: Context) -> Iterator[Values]:
    """A product of positions and frequencies that the module holds."""
    flow = flow_of(context)
    if flow.ahead(site, lambda s: name_of(s) in _ANGLES, _TO_USE) is None:
        return
    if site.place.function == "exp":
        if site.outputs and 2 < math.prod(site.outputs[0].shape) == max(site.outputs[0].shape):
            yield {"argument": ""}
        return
    for name, operand in site.arguments.items():
        if not isinstance(operand, Operand) or not operand.dtype.startswith("float"):
            continue
        if flow.sources(operand, ARRANGING) == {"other"} and max(operand.shape, default=0) > 2:
            if math.prod(operand.shape) == max(operand.shape):
                yield {"argument": name}


def _with_frequencies(call: Call, values: Values) -> Any:
    import torch

    name = values["argument"]
    given = call[name] if name else call.run()
    logs = torch.log(given.flatten())
    if not torch.isfinite(logs).all() or abs(float(logs[0])) > 1e-6:
        raise ValueError("not frequencies")
    base = math.exp(-float(logs[1]) * given.numel())
    if base <= 1:
        raise ValueError("not frequencies")
    other = given ** (math.log(values["base"]) / math.log(base))
    return call.run(**{name: other}) if name else other


_POSITIONS = {
    "e": ("nn.Embedding(10, 8)", "nn.Embedding(10, 8)"),
    "p": ("nn.Embedding(17, 8)", "nn.Embedding(17, 8)"),
}
_ANGLE = "t = torch.arange(6.0)[:, None] * {} ** (-torch.arange(0, 8, 2) / 8.0)\n"
_MS_ANGLE = (
    "t = ops.arange(6).astype(ms.float32)[:, None]"
    " * ops.pow({}, -ops.arange(0, 8, 2).astype(ms.float32) / 8.0)\n"
)

HYPOTHESES = (
    FunctionHypothesis(
        "position_offset",
        "position.offset",
        ("arange",),
        _counted,
        lambda call, values: call.run() + values["offset"],
        "positions start at {port} instead of {reference}",
        rank=2,
        reference_value=lambda site, context: _start(site),
        port_value=lambda values: values["own"] + values["offset"],
        examples=(
            Example(
                "self.e(x) + self.p(torch.arange(6))",
                "self.e(x) + self.p(ops.arange(6) + 2)",
                ((4, 6),),
                _POSITIONS,
                {"x": 10},
                port_value=2,
            ),
            Example(
                _ANGLE.format("10000.0") + "return x + torch.cat((t.sin(), t.cos()), -1)",
                _MS_ANGLE.format("10000.0").replace("ops.arange(6)", "ops.arange(1, 7)", 1)
                + "return x + ops.cat((ops.sin(t), ops.cos(t)), -1)",
                ((4, 6, 8),),
                port_value=1,
                proved=False,
            ),
        ),
    ),
    FunctionHypothesis(
        "position_index_offset",
        "position.offset",
        ("embedding", "module", "index_select"),
        _looked_up,
        lambda call, values: call.run(
            **{values["index"]: call[values["index"]] + values["offset"]}
        ),
        "positions are moved by {port}",
        rank=2,
        port_value=lambda values: values["offset"],
        examples=(
            Example(
                "self.e(x) + self.p(self.i[:6])",
                "self.e(x) + self.p(ops.arange(6) + 1)",
                ((4, 6),),
                {**_POSITIONS, "i": ("nn.Buffer(torch.arange(12))", "None")},
                {"x": 10},
                port_value=1,
            ),
        ),
    ),
    FunctionHypothesis(
        "position_slice",
        "position.offset",
        ("getitem",),
        _sliced,
        _shift_slice,
        "the table of positions is read from row {port} instead of 0",
        rank=3,
        port_value=lambda values: values["offset"],
        examples=(
            Example(
                "x + self.p.weight[:6]",
                "x + self.p.embedding_table[2:8]",
                ((4, 6, 8),),
                {"p": _POSITIONS["p"]},
                port_value=2,
            ),
        ),
    ),
    FunctionHypothesis(
        "position_base",
        "position.base",
        ("pow", "rpow"),
        _base,
        _with_base,
        "base {port} instead of {reference} for the angles of positions",
        numbers=(Number("base", _BASES),),
        rank=3,
        reference_value=lambda site, context: site.arguments.get(
            "other" if site.place.function == "rpow" else "input"
        ),
        examples=(
            Example(
                _ANGLE.format("10000.0") + "return x + torch.cat((t.sin(), t.cos()), -1)",
                _MS_ANGLE.format("2000.0") + "return x + ops.cat((ops.sin(t), ops.cos(t)), -1)",
                ((4, 6, 8),),
                port_value=2000.0,
            ),
        ),
    ),
    FunctionHypothesis(
        "position_frequencies",
        "position.base",
        ("mul", "outer", "einsum", "matmul", "exp"),
        _frequencies,
        _with_frequencies,
        "base {port} for the angles of positions",
        numbers=(Number("base", _BASES),),
        rank=3,
        examples=(
            Example(
                "t = torch.outer(torch.arange(6.0), self.f)\n"
                "return x + torch.cat((t.sin(), t.cos()), -1)",
                _MS_ANGLE.format("500000.0") + "return x + ops.cat((ops.sin(t), ops.cos(t)), -1)",
                ((4, 6, 8),),
                {"f": ("nn.Buffer(10000.0 ** (-torch.arange(0, 8, 2) / 8.0))", "None")},
                port_value=500000.0,
            ),
        ),
    ),
)
