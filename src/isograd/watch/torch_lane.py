"""One optimizer of a watched torch training: its steps, and its gradients as they were."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd.watch.observation import Network, StepRecord
from isograd.watch.torch_calls import (
    NetworkCall,
)


@dataclass
class Lane:
    """One optimizer and the steps that it has made.

    marks: identity and version of the gradients, by which it is known whether anyone zeroed them.
    is_used: they hold what an update has used already.
    closures: backward passes within the present `step(closure)`; None outside of one.
    """

    optimizer: torch.optim.Optimizer
    parameters: list[torch.nn.Parameter]
    network: Network
    number: int
    step: int = 0
    backward_count: int = 0
    is_accumulated: bool = False
    is_used: bool = False
    is_repeated: bool = False
    closures: int | None = None
    marks: list[Mark] = field(default_factory=list)
    where: str = ""
    record: StepRecord | None = None
    schedule: weakref.ref[Any] | None = None


@dataclass(frozen=True)
class StepState:
    """What is kept of a step, for its replay.

    losses: with which the last backward pass began.
    """

    step: int
    parameter_names: tuple[str, ...]
    parameters: list[torch.nn.Parameter]
    optimizer: str
    update_where: str
    calls: list[NetworkCall]
    operators: list[Any]
    losses: list[torch.Tensor]
    is_loss_bad: bool
    names: dict[int, str]


@dataclass(frozen=True)
class Mark:
    """A parameter's gradient by identity and version, as it was right after an update."""

    parameter: torch.nn.Parameter
    gradient: weakref.ref[torch.Tensor]
    version: int

    def is_untouched(self) -> bool:
        """Whether the parameter still has this gradient, and nobody has changed it."""
        now = self.parameter.grad
        # Others may keep a gradient alive that the parameter has no more.
        return now is not None and now is self.gradient() and now._version == self.version


def marks_of(parameters: list[torch.nn.Parameter]) -> list[Mark]:
    """Marks of all gradients that are there."""
    pairs = ((p, p.grad) for p in parameters)
    return [Mark(p, weakref.ref(g), g._version) for p, g in pairs if g is not None]


def are_untouched(marks: list[Mark]) -> bool:
    return bool(marks) and all(mark.is_untouched() for mark in marks)


def gradient_norms(
    parameters: list[torch.nn.Parameter], loss: torch.Tensor | None
) -> tuple[Any, Any, float | None]:
    """Norms of the gradients, which are absent, and the loss: one transfer from the device."""
    absent = np.array([p.grad is None for p in parameters], dtype=bool)
    gradients = list(_dense(parameters))
    norms = np.full(len(parameters), np.nan)
    numbers: list[torch.Tensor] = []
    device = gradients[0].device if gradients else None if loss is None else loss.device
    if gradients:
        found = torch._foreach_norm(gradients)
        # A network may lie on several devices; as a rule nothing is to be done.
        is_alike = all(n.dtype == torch.float32 and n.device == device for n in found)
        numbers = list(found) if is_alike else [n.float().to(device) for n in found]
    if loss is not None:
        numbers.append(loss.float().reshape(()).to(device))
    values = torch.stack(numbers).tolist() if numbers else []
    # A norm overflows long before its elements do: in float16 above 65,504, in float32 above 2e19.
    norms[~absent] = [
        value if math.isfinite(value) else _scaled_norm(gradient)
        for value, gradient in zip(values, gradients, strict=False)
    ]
    exact = None if loss is None else float(loss) if loss.device.type == "cpu" else values[-1]
    return norms, absent, exact


def _scaled_norm(gradient: torch.Tensor) -> float:
    """The norm by way of the greatest magnitude, NaN where an element is not finite."""
    sizes = gradient.detach().abs()
    sizes = sizes if sizes.dtype == torch.float64 else sizes.float()
    largest = float(sizes.max())
    if not math.isfinite(largest):
        return math.nan
    # a sum over all of it needs the greater range of a Python float
    return min(float(torch.linalg.vector_norm(sizes / largest)) * largest, sys.float_info.max)


def largest_gradient(parameters: list[torch.nn.Parameter]) -> float:
    """The greatest magnitude among the gradients, 0 where there are none: one transfer."""
    gradients = [gradient for gradient in _dense(parameters) if gradient.numel()]
    if not gradients:
        return 0.0
    norms = torch._foreach_norm(gradients, math.inf)
    device = gradients[0].device  # a network may lie on several
    return float(torch.stack([norm.float().to(device) for norm in norms]).max())


def _dense(parameters: list[torch.nn.Parameter]) -> Iterator[torch.Tensor]:
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is not None:
            yield gradient.coalesce().values() if gradient.is_sparse else gradient
