"""What becomes of the network's input before its first layer: scale, channels, statistics, order.

These concern the whole network's own input, wherever the port prepares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Number,
    Values,
    operands,
)
from isograd.frameworks.base import FunctionSite, Operand

STEPS = (
    *("to", "float", "permute", "transpose", "div", "mul", "sub", "add", "contiguous", "flip"),
    *("interpolate", "unsqueeze", "view", "reshape", "clamp", "getitem", "type"),
)
_MOST_STEPS = 10
#: A factor beyond this is about the range of bytes, also where their values are used twice.
_OF_BYTES = 100.0
_SCALES = (1 / 255, 255.0, 255 / 256, 256 / 255, 1 / 256, 1 / 127.5, 127.5, 2.0, 0.5)


def network_input(site: FunctionSite, context: Context) -> Operand | None:
    """The network's first input, numbers or bytes, at the module that takes it: the innermost."""
    if context.root or context.is_loss or site.place.function != "module":
        return None
    own = next(iter(site.arguments.values()), None)
    if not isinstance(own, Operand) or not own.source.startswith("input."):
        return None
    is_image = len(own.shape) >= 3 and own.dtype.startswith(("uint8", "int"))
    if not own.dtype.startswith(("float", "bfloat")) and not is_image:
        return None
    return own if site.place.module == _taker(own.source, context) else None


def _taker(source: str, context: Context) -> str:
    """The innermost module in which every function stands that uses an input."""
    users = [s.place for s in context.sites if any(o.source == source for o in operands(s))]
    functions = [place.module.split(".") for place in users if place.function != "module"]
    if not functions:
        return ""
    common: list[str] = []
    for parts in zip(*functions, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    takers = [p.module for p in users if p.function == "module"]
    while common and ".".join(common) not in takers:
        common = common[:-1]
    return ".".join(common)


def first_argument(call: Call) -> str:
    return next(iter(call.arguments))


def with_input(call: Call, value: Any) -> Any:
    return call.run(**{first_argument(call): value})


def near_input(site: FunctionSite, context: Context) -> bool:
    """Whether only steps of preparation lie between the network's input and this."""
    if context.root or context.is_loss:
        return False
    operand = site.arguments.get("input")
    for _ in range(_MOST_STEPS):
        if not isinstance(operand, Operand):
            return False
        if operand.source.startswith("input."):
            return True
        before = context.producer(operand)
        if before is None or before.place.function not in STEPS:
            return False
        operand = before.arguments.get("input", before.arguments.get("0"))
    return False


def _propose_scale(site: FunctionSite, context: Context) -> Iterator[Values]:
    if network_input(site, context) is not None:
        yield {}


def _scale(call: Call, values: Values) -> Any:
    return with_input(call, call[first_argument(call)] * values["scale"])


def _propose_number(site: FunctionSite, context: Context) -> Iterator[Values]:
    number, operand = site.arguments.get("other"), site.arguments.get("input")
    if not isinstance(number, (int, float)) or not isinstance(operand, Operand):
        return
    uses = sum(operand.source in [o.source for o in operands(s)] for s in context.sites)
    # the call of the network itself is a use as well; scores of attention are no preparation
    alone = uses <= (2 if operand.source.startswith("input.") else 1)
    of_bytes = number and not 1 / _OF_BYTES < abs(number) < _OF_BYTES
    if (
        (alone or of_bytes)
        and near_input(site, context)
        and not context.leads_to(site, ("softmax",), 4)
    ):
        yield {}


def _propose_range(site: FunctionSite, context: Context) -> Iterator[Values]:
    if network_input(site, context) is not None:
        # of an input that is within 0 and 1 it is a normalisation with one half
        yield {"range": "from -1 to 1", "factor": 2 / 255, "shift": -1.0}
        yield {"range": "from 0 to 1", "factor": 0.5, "shift": 0.5}


def _range(call: Call, values: Values) -> Any:
    return with_input(call, call[first_argument(call)] * values["factor"] + values["shift"])


def channel_axes(operand: Operand) -> list[int]:
    """Axes that may hold the colours: three of them, at the usual places."""
    rank = len(operand.shape)
    places = {3: (0, 2), 4: (1, 3), 5: (1, 2, 4)}.get(rank, ())
    return [axis for axis in places if operand.shape[axis] == 3]


def _propose_channels(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand = network_input(site, context)
    if operand is not None:
        for axis in channel_axes(operand):
            yield {"axis": axis}


def _channels(call: Call, values: Values) -> Any:
    return with_input(call, call[first_argument(call)].flip(values["axis"]))


def _propose_order(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand = network_input(site, context)
    if operand is None:
        return
    shape = operand.shape
    for axis, name in ((0, "batch"), (1, "time") if len(shape) in (2, 3) else (0, "")):
        if name and shape[axis] > 1:
            yield {"order": f"{name} reversed", "axis": axis, "roll": 0}
            yield {"order": f"{name} moved by one", "axis": axis, "roll": 1}
            yield {"order": f"{name} moved back by one", "axis": axis, "roll": -1}
    if len(shape) == 4:
        yield {"order": "left and right swapped", "axis": 3, "roll": 0}
        yield {"order": "top and bottom swapped", "axis": 2, "roll": 0}
        if shape[2] == shape[3] > 1:
            yield {"order": "height and width swapped", "axis": None, "roll": 0}


def _order(call: Call, values: Values) -> Any:
    x, axis = call[first_argument(call)], values["axis"]
    if axis is None:
        moved = x.transpose(2, 3)
    else:
        moved = x.roll(values["roll"], axis) if values["roll"] else x.flip(axis)
    return with_input(call, moved)


CONVOLUTION = {
    "conv": ("nn.Conv2d(3, 4, 3)", "nn.Conv2d(3, 4, 3, pad_mode='valid', has_bias=True)")
}
IMAGE = ((4, 3, 7, 9),)
_PORT_255 = "self.conv(x / 256)"

HYPOTHESES = (
    FunctionHypothesis(
        "data_scale",
        "data.scale",
        ("module",),
        _propose_scale,
        _scale,
        "the network's input times {port}",
        numbers=(Number("scale", _SCALES),),
        reference_value=lambda site, context: 1.0,
        rank=8,
        within=True,
        examples=(
            Example("self.conv(x)", "self.conv(x / 255)", IMAGE, CONVOLUTION, port_value=1 / 255),
        ),
    ),
    FunctionHypothesis(
        "data_scale_number",
        "data.scale",
        ("div", "mul"),
        _propose_number,
        lambda call, values: call.run(other=values["number"]),
        "the network's input scaled ({function}) by {port} instead of {reference}",
        numbers=(Number("number", (255.0, 256.0, 1.0, 127.5, 1 / 255, 1 / 256, 2.0, 0.5)),),
        reference_value=lambda site, context: site.arguments.get("other"),
        rank=4,
        within=True,
        examples=(Example("self.conv(x / 255)", _PORT_255, IMAGE, CONVOLUTION, port_value=256.0),),
    ),
    FunctionHypothesis(
        "data_range",
        "data.scale",
        ("module",),
        _propose_range,
        _range,
        "the network's input moved to the range {port}",
        reference_value=lambda site, context: "as given",
        port_value=lambda values: values["range"],
        rank=7,
        within=True,
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(x / 127.5 - 1)",
                IMAGE,
                CONVOLUTION,
                port_value="from -1 to 1",
            ),
        ),
    ),
    FunctionHypothesis(
        "data_channel_order",
        "data.channel_order",
        ("module",),
        _propose_channels,
        _channels,
        "the channels of the network's input in the reverse order",
        reference_value=lambda site, context: "RGB",
        port_value=lambda values: "BGR",
        rank=7,
        within=True,
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(ops.stack((x[:, 2], x[:, 1], x[:, 0]), 1))",
                IMAGE,
                CONVOLUTION,
                port_value="BGR",
            ),
        ),
    ),
    FunctionHypothesis(
        "data_order",
        "data.order",
        ("module",),
        _propose_order,
        _order,
        "the network's input in another order: {port}",
        reference_value=lambda site, context: "as given",
        port_value=lambda values: values["order"],
        rank=8,
        within=True,
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(x.flip((3,)))",
                IMAGE,
                CONVOLUTION,
                port_value="left and right swapped",
            ),
        ),
    ),
)
