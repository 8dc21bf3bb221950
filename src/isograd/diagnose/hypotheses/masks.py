"""Masks outside attention's scores: true where they should be false, or along another axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isograd.diagnose.flow import ARRANGING, flow_of
from isograd.diagnose.hypothesis import Call, Context, Example, FunctionHypothesis, Values
from isograd.frameworks.base import FunctionSite, Operand

#: Functions that make masks of numbers, or of other masks.
_MAKERS = (
    *("eq", "ne", "lt", "gt", "le", "ge", "logical_not", "invert", "bitwise_not", "bool"),
    *("logical_and", "logical_or", "and", "or", "isin", "isnan", "isfinite"),
)
#: Where masks are used, with the argument that holds them; a module may get one anywhere.
_USERS = {"masked_fill": "mask", "where": "condition", "getitem": "index"}
#: Functions that a mask goes through on its way from the unit's input to a product.
_THROUGH = ARRANGING | {"float", "to", "type"}
_INVERTED = ("inverted",)
_MOVED = ("with its last two axes exchanged", "counted from the other end")
Propose = Callable[[FunctionSite, Context], Iterator[Values]]


def _is_mask(value: Any) -> bool:
    return isinstance(value, Operand) and value.dtype == "bool"


def _fitting(mask: Operand, hows: tuple[str, ...]) -> Iterator[str]:
    square = len(mask.shape) >= 2 and mask.shape[-1] == mask.shape[-2] > 1
    long = max(mask.shape, default=1) > 1
    for how in hows:
        if how in _INVERTED or (square if how == _MOVED[0] else long):
            yield how


def _made(hows: tuple[str, ...]) -> Propose:
    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        if len(site.outputs) == 1 and _is_mask(site.outputs[0]):
            yield from ({"argument": "", "how": how} for how in _fitting(site.outputs[0], hows))

    return propose


def _used(hows: tuple[str, ...]) -> Propose:
    """Masks that come from elsewhere, or have several uses: else their making is tried."""

    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        flow = flow_of(context)
        wanted = _USERS.get(site.place.function)
        for name, mask in site.arguments.items():
            if not _is_mask(mask) or (wanted is not None and name != wanted):
                continue
            maker = flow.maker(mask)
            if maker is not None and maker.place.function in _MAKERS:
                if len(flow.uses.get(maker.event, ())) == 1:
                    continue
            yield from ({"argument": name, "how": how} for how in _fitting(mask, hows))

    return propose


def _weighed(site: FunctionSite, context: Context) -> Iterator[Values]:
    """Masks of ones and zeros that the unit is given and multiplies by."""
    flow = flow_of(context)
    for name in ("input", "other"):
        given = site.arguments.get(name)
        if not isinstance(given, Operand):
            continue
        sources = flow.sources(given, _THROUGH)
        if sources and all(source.startswith("input.") for source in sources):
            yield {"argument": name, "how": "inverted"}


def _otherwise(mask: Any, how: str) -> Any:
    import torch

    if how == _MOVED[0]:
        return mask.transpose(-1, -2)
    if how == _MOVED[1]:
        axis = max(axis for axis in range(mask.dim()) if mask.shape[axis] > 1)
        return mask.flip(axis)
    if mask.dtype != torch.bool:
        if not bool(((mask == 0) | (mask == 1)).all()):
            raise ValueError("no mask of ones and zeros")
        return 1 - mask
    return ~mask


def _changed(call: Call, values: Values) -> Any:
    name = values["argument"]
    if not name:
        return _otherwise(call.run(), values["how"])
    return call.run(**{name: _otherwise(call[name], values["how"])})


def _word(values: Values) -> str:
    return str(values["how"])


_XY = ((2, 6, 8), (2, 6))
_F = {"f": ("nn.Linear(8, 8)", "nn.Dense(8, 8)"), "g": ("nn.Linear(8, 8)", "nn.Dense(8, 8)")}
_MEAN = "m = (y != 0).unsqueeze(-1).float()\nh = self.f(x)\n"
_MS_MEAN = "m = (y == 0).expand_dims(-1).astype(ms.float32)\nh = self.f(x)\n"

HYPOTHESES = (
    FunctionHypothesis(
        "mask_made",
        "mask.inverted",
        _MAKERS,
        _made(_INVERTED),
        _changed,
        "the mask that {function} makes is {port}",
        rank=5,
        port_value=_word,
        examples=(
            Example(
                _MEAN + "return (h * m).sum(1) / m.sum(1).clamp(min=1)",
                _MS_MEAN + "return (h * m).sum(1) / ops.clamp(m.sum(1), min=1)",
                _XY,
                {"f": _F["f"]},
                {"y": 2},
                port_value="inverted",
            ),
            Example(
                "torch.where(y.unsqueeze(-1) > 0, self.f(x), self.g(x))",
                "ops.where(y.expand_dims(-1) <= 0, self.f(x), self.g(x))",
                _XY,
                _F,
                {"y": 2},
                port_value="inverted",
            ),
        ),
    ),
    FunctionHypothesis(
        "mask_made_along",
        "mask.axis",
        _MAKERS,
        _made(_MOVED),
        _changed,
        "the mask that {function} makes is {port}",
        rank=5,
        port_value=_word,
        examples=(
            Example(
                "self.f(x).masked_fill((y == 0).unsqueeze(-1), 0.0)",
                "ops.masked_fill(self.f(x), ops.flip(y == 0, (-1,)).expand_dims(-1), 0.0)",
                _XY,
                {"f": _F["f"]},
                {"y": 2},
                port_value=_MOVED[1],
            ),
        ),
    ),
    FunctionHypothesis(
        "mask_used",
        "mask.inverted",
        (*_USERS, "module"),
        _used(_INVERTED),
        _changed,
        "the mask that {function} gets is {port}",
        rank=5,
        port_value=_word,
        examples=(
            Example(
                "m = y > 0\nreturn self.f(x).masked_fill(m.unsqueeze(-1), 0.0) + m.unsqueeze(-1)",
                "m = y > 0\nn = ops.logical_not(m).expand_dims(-1)\n"
                "h = ops.masked_fill(self.f(x), n, 0.0)\n"
                "return h + m.expand_dims(-1).astype(ms.float32)",
                _XY,
                {"f": _F["f"]},
                {"y": 2},
                port_value="inverted",
            ),
        ),
    ),
    FunctionHypothesis(
        "mask_used_along",
        "mask.axis",
        (*_USERS, "module"),
        _used(_MOVED),
        _changed,
        "the mask that {function} gets is {port}",
        rank=5,
        port_value=_word,
        examples=(
            Example(
                "m = y > 0\nreturn self.f(x).masked_fill(m.unsqueeze(-1), 0.0) + m.unsqueeze(-1)",
                "m = (y > 0).expand_dims(-1)\n"
                "h = ops.masked_fill(self.f(x), ops.flip(m, (1,)), 0.0)\n"
                "return h + m.astype(ms.float32)",
                _XY,
                {"f": _F["f"]},
                {"y": 2},
            ),
        ),
    ),
    FunctionHypothesis(
        "mask_weight",
        "mask.inverted",
        ("mul",),
        _weighed,
        _changed,
        "the mask by which {function} multiplies is {port}",
        rank=6,
        port_value=_word,
        examples=(
            Example(
                "self.f(x) * y.unsqueeze(-1)",
                "self.f(x) * (1 - y).expand_dims(-1).astype(ms.float32)",
                _XY,
                {"f": _F["f"]},
                {"y": 2},
            ),
        ),
    ),
)
