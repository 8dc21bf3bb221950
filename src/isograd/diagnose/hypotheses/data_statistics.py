"""Means and deviations with which the network's input is standardised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isograd.diagnose.hypotheses.data import (
    CONVOLUTION,
    IMAGE,
    channel_axes,
    first_argument,
    near_input,
    network_input,
    with_input,
)
from isograd.diagnose.hypothesis import (
    Call,
    Context,
    Example,
    FunctionHypothesis,
    Values,
)
from isograd.frameworks.base import FunctionSite, Operand

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


def _propose_statistics(site: FunctionSite, context: Context) -> Iterator[Values]:
    operand = network_input(site, context)
    if operand is None:
        return
    for axis in channel_axes(operand) or ([1] if len(operand.shape) == 4 else []):
        for name, (mean, deviation) in STATISTICS.items():
            if operand.shape[axis] in (3, len(mean)):
                yield {"statistics": name, "axis": axis, "mean": mean, "deviation": deviation}


def _along(x: Any, numbers: tuple[float, ...], axis: int) -> Any:
    import torch

    vector = torch.tensor(numbers, dtype=x.dtype)
    return vector.reshape([-1 if d == axis % x.dim() else 1 for d in range(x.dim())])


def _statistics(call: Call, values: Values) -> Any:
    x = call[first_argument(call)]
    mean = _along(x, values["mean"], values["axis"])
    deviation = _along(x, values["deviation"], values["axis"])
    return with_input(call, (x - mean) / deviation)


def _propose_own(site: FunctionSite, context: Context) -> Iterator[Values]:
    """The reference takes off a mean, or divides by a deviation, in its own code."""
    other = site.arguments.get("other")
    if not isinstance(other, Operand) or not near_input(site, context):
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


HYPOTHESES = (
    FunctionHypothesis(
        "data_normalize",
        "data.normalize",
        ("module",),
        _propose_statistics,
        _statistics,
        "the network's input standardised with {port} mean and deviation",
        reference_value=lambda site, context: "none",
        port_value=lambda values: values["statistics"],
        rank=7,
        within=True,
        examples=(
            Example(
                "self.conv(x)",
                "self.conv((x - 0.5) / 0.5)",
                IMAGE,
                CONVOLUTION,
                port_value="one half",
            ),
        ),
    ),
    FunctionHypothesis(
        "data_normalize_own",
        "data.normalize",
        ("sub", "div"),
        _propose_own,
        _own,
        "the network's input standardised with another {what}: {port}",
        reference_value=lambda site, context: "its own",
        port_value=lambda values: values["statistics"],
        rank=3,
        within=True,
        examples=(
            Example(
                "m = torch.tensor([0.485, 0.456, 0.406])[:, None, None]\n"
                "s = torch.tensor([0.229, 0.224, 0.225])[:, None, None]\n"
                "return self.conv((x - m) / s)",
                "m = ms.Tensor([0.485, 0.456, 0.406])[:, None, None]\n"
                "s = ms.Tensor([0.247, 0.2435, 0.2616])[:, None, None]\n"
                "return self.conv((x - m) / s)",
                IMAGE,
                CONVOLUTION,
                port_value="CIFAR-10's",
            ),
        ),
    ),
)
