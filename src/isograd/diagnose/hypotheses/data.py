"""What becomes of the network's input before its first layer: scale, channels, statistics, order.

These concern the whole network's own input, wherever the port prepares it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    Hypothesis,
    Numeric,
    Values,
    operands,
)
from isograd.frameworks.base import FunctionSite, Operand

_STEPS = ("to", "float", "permute", "transpose", "div", "mul", "sub", "add", "contiguous", "flip")
#: Means and deviations that people copy, of channels in the range from 0 to 1.
STATISTICS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "ImageNet's": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "one half": ((0.5,), (0.5,)),
    "CIFAR-10's": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "CIFAR-10's (variant)": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "CIFAR-100's": ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
    "CLIP's": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "MNIST's": ((0.1307,), (0.3081,)),
}
_SCALES = (1 / 255, 255.0, 255 / 256, 256 / 255, 1 / 256, 1 / 127.5, 127.5, 2.0, 0.5)


def _input(site: FunctionSite, context: Context) -> Operand | None:
    """The network's first floating input, where this is the call of the network itself."""
    if site.place.module or context.root or context.is_loss or site.place.function != "module":
        return None
    own = next(iter(site.arguments.values()), None)
    return own if isinstance(own, Operand) and own.dtype.startswith(("float", "bfloat")) else None


def _first(call: Call) -> str:
    return next(iter(call.arguments))


def _changed(call: Call, value: Any) -> Any:
    return call.run(**{_first(call): value})


def _near_input(site: FunctionSite, context: Context) -> bool:
    """Whether only steps of preparation lie between the network's input and this."""
    if context.root or context.is_loss:
        return False
    operand = site.arguments.get("input")
    for _ in range(6):
        if not isinstance(operand, Operand):
            return False
        if operand.source.startswith("input."):
            return True
        before = context.producer(operand)
        if before is None or before.place.function not in _STEPS:
            return False
        operand = before.arguments.get("input", before.arguments.get("0"))
    return False


def _propose_scale(site: FunctionSite, context: Context) -> Iterator[Values]:
    if _input(site, context) is not None:
        yield {}


def _scale(call: Call, values: Values) -> Any:
    return _changed(call, call[_first(call)] * values["scale"])


def _propose_number(site: FunctionSite, context: Context) -> Iterator[Values]:
    number, operand = site.arguments.get("other"), site.arguments.get("input")
    if not isinstance(number, (int, float)) or not isinstance(operand, Operand):
        return
    uses = sum(operand.source in [o.source for o in operands(s)] for s in context.sites)
    # the call of the network itself is a use as well; scores of attention are no preparation
    alone = uses <= (2 if operand.source.startswith("input.") else 1)
    if alone and _near_input(site, context) and not context.leads_to(site, ("softmax",), 4):
        yield {}


def _propose_range(site: FunctionSite, context: Context) -> Iterator[Values]:
    if _input(site, context) is not None:
        # of an input that is within 0 and 1 it is a normalisation with one half
        yield {"range": "from -1 to 1", "factor": 2 / 255, "shift": -1.0}
        yield {"range": "from 0 to 1", "factor": 0.5, "shift": 0.5}


def _range(call: Call, values: Values) -> Any:
    return _changed(call, call[_first(call)] * values["factor"] + values["shift"])


def _channel_axes(operand: Operand) -> list[int]:
    """Axes that may hold the colours: three of them, at the usual places."""
    rank = len(operand.shape)
    places = {3: (0, 2), 4: (1, 3), 5: (1, 2, 4)}.get(rank, ())
    return [axis for axis in places if operand.shape[axis] == 3]


def _propose_channels(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand = _input(site, context)
    if operand is not None:
        for axis in _channel_axes(operand):
            yield {"axis": axis}


def _channels(call: Call, values: Values) -> Any:
    return _changed(call, call[_first(call)].flip(values["axis"]))


def _propose_statistics(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand = _input(site, context)
    if operand is None:
        return
    for axis in _channel_axes(operand) or ([1] if len(operand.shape) == 4 else []):
        for name, (mean, deviation) in STATISTICS.items():
            if operand.shape[axis] in (3, len(mean)):
                yield {"statistics": name, "axis": axis, "mean": mean, "deviation": deviation}


def _along(x: Any, numbers: tuple[float, ...], axis: int) -> Any:
    import torch

    vector = torch.tensor(numbers, dtype=x.dtype)
    return vector.reshape([-1 if d == axis % x.dim() else 1 for d in range(x.dim())])


def _statistics(call: Call, values: Values) -> Any:
    x = call[_first(call)]
    mean = _along(x, values["mean"], values["axis"])
    deviation = _along(x, values["deviation"], values["axis"])
    return _changed(call, (x - mean) / deviation)


def _propose_own(site: FunctionSite, context: Context) -> Iterator[Values]:
    """The reference takes off a mean, or divides by a deviation, in its own code."""
    other = site.arguments.get("other")
    if not isinstance(other, Operand) or not _near_input(site, context):
        return
    if other.source.startswith(("input.", "event.")) and math.prod(other.shape) > 3:
        return
    what = "mean" if site.place.function == "sub" else "deviation"
    yield {"what": what, "statistics": "none", "numbers": None}
    for name, both in STATISTICS.items():
        numbers = both[0] if what == "mean" else both[1]
        if math.prod(other.shape) in (1, len(numbers)) or len(numbers) == 1:
            yield {"what": what, "statistics": name, "numbers": numbers}
    yield {"what": what, "statistics": "1 / 255 of it", "numbers": 1 / 255}
    yield {"what": what, "statistics": "255 times it", "numbers": 255.0}
    if math.prod(other.shape) > 1:
        yield {"what": what, "statistics": "channels reversed", "numbers": "reversed"}


def _own(call: Call, values: Values) -> Any:
    own, numbers = call["other"], values["numbers"]
    if numbers is None:
        return call["input"] * 1.0
    if numbers == "reversed":
        return call.run(other=own.reshape(-1).flip(0).reshape(own.shape))
    if isinstance(numbers, float):
        return call.run(other=own * numbers)
    import torch

    given = torch.tensor(numbers, dtype=own.dtype)
    return call.run(other=(given.reshape(own.shape) if own.numel() == given.numel() else given))


def _propose_order(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand = _input(site, context)
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
    x, axis = call[_first(call)], values["axis"]
    if axis is None:
        return _changed(call, x.transpose(2, 3))
    moved = x.roll(values["roll"], axis) if values["roll"] else x.flip(axis)
    return _changed(call, moved)


_LAYER = {"conv": ("nn.Conv2d(3, 4, 3)", "nn.Conv2d(3, 4, 3, pad_mode='valid', has_bias=True)")}
_IMAGE = ((4, 3, 7, 9),)
_PORT_255 = "self.conv(x / 256)"

HYPOTHESES = (
    Hypothesis(
        "data_scale",
        "data.scale",
        ("module",),
        _propose_scale,
        _scale,
        "the network's input times {port}",
        numeric=Numeric("scale", _SCALES),
        reference_value=lambda site, context: 1.0,
        rank=8,
        examples=(
            Example("self.conv(x)", "self.conv(x / 255)", _IMAGE, _LAYER, port_value=1 / 255),
        ),
    ),
    Hypothesis(
        "data_scale_number",
        "data.scale",
        ("div", "mul"),
        _propose_number,
        lambda call, values: call.run(other=values["number"]),
        "the network's input scaled ({function}) by {port} instead of {reference}",
        numeric=Numeric("number", (255.0, 256.0, 1.0, 127.5, 1 / 255, 1 / 256, 2.0, 0.5)),
        reference_value=lambda site, context: site.arguments.get("other"),
        rank=4,
        examples=(Example("self.conv(x / 255)", _PORT_255, _IMAGE, _LAYER, port_value=256.0),),
    ),
    Hypothesis(
        "data_range",
        "data.scale",
        ("module",),
        _propose_range,
        _range,
        "the network's input moved to the range {port}",
        reference_value=lambda site, context: "as given",
        port_value=lambda values: values["range"],
        rank=7,
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(x / 127.5 - 1)",
                _IMAGE,
                _LAYER,
                port_value="from -1 to 1",
            ),
        ),
    ),
    Hypothesis(
        "data_channel_order",
        "data.channel_order",
        ("module",),
        _propose_channels,
        _channels,
        "the channels of the network's input in the reverse order",
        reference_value=lambda site, context: "RGB",
        port_value=lambda values: "BGR",
        rank=7,
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(ops.stack((x[:, 2], x[:, 1], x[:, 0]), 1))",
                _IMAGE,
                _LAYER,
                port_value="BGR",
            ),
        ),
    ),
    Hypothesis(
        "data_normalize",
        "data.normalize",
        ("module",),
        _propose_statistics,
        _statistics,
        "the network's input standardised with {port} mean and deviation",
        reference_value=lambda site, context: "none",
        port_value=lambda values: values["statistics"],
        rank=7,
        examples=(
            Example(
                "self.conv(x)", "self.conv((x - 0.5) / 0.5)", _IMAGE, _LAYER, port_value="one half"
            ),
        ),
    ),
    Hypothesis(
        "data_normalize_own",
        "data.normalize",
        ("sub", "div"),
        _propose_own,
        _own,
        "the network's input standardised with another {what}: {port}",
        reference_value=lambda site, context: "its own",
        port_value=lambda values: values["statistics"],
        rank=3,
        examples=(
            Example(
                "m = torch.tensor([0.485, 0.456, 0.406])[:, None, None]\n"
                "s = torch.tensor([0.229, 0.224, 0.225])[:, None, None]\n"
                "return self.conv((x - m) / s)",
                "m = ms.Tensor([0.485, 0.456, 0.406])[:, None, None]\n"
                "s = ms.Tensor([0.247, 0.2435, 0.2616])[:, None, None]\n"
                "return self.conv((x - m) / s)",
                _IMAGE,
                _LAYER,
                port_value="CIFAR-10's",
            ),
        ),
    ),
    Hypothesis(
        "data_order",
        "data.order",
        ("module",),
        _propose_order,
        _order,
        "the network's input in another order: {port}",
        reference_value=lambda site, context: "as given",
        port_value=lambda values: values["order"],
        rank=8,
        examples=(
            Example(
                "self.conv(x)",
                "self.conv(x.flip((3,)))",
                _IMAGE,
                _LAYER,
                port_value="left and right swapped",
            ),
        ),
    ),
)
