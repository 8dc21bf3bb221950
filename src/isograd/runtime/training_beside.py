"""Compiled steps in a program that takes gradients elsewhere as it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.training_gradients import no_grad, record_gradients, track
from isograd.runtime.training_step_rules import (
    GraphAdadelta,
    GraphAdagrad,
    GraphAdamax,
    GraphRMSprop,
)
from isograd.runtime.training_steps import GraphAdam, GraphAdamW, GraphOptimizer, GraphSGD


def unrecorded_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function of which nothing is recorded."""
    compiled = ms.jit(function)

    @functools.wraps(function)
    def unrecorded(*inputs: Any, **named: Any) -> Any:
        with no_grad():
            return compiled(*inputs, **named)

    return unrecorded


class Recording(GraphOptimizer):
    """A compiled step's optimizer that steps by the `grad` of its parameters, too."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        track(self.learned)
        record_gradients()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step with recorded gradients.

        Raises RuntimeError where some of the parameters have none: torch leaves those as they are,
        and counts the steps of each; a compiled rule counts one for all.
        """
        loss = closure() if closure is not None else None
        found = [getattr(part, "grad", None) for part in self.learned]
        if any(gradient is None for gradient in found):
            missing = next(
                part.name for part, one in zip(self.learned, found, strict=True) if one is None
            )
            raise RuntimeError(f"{missing} has no gradient; convert with --eager.")
        with no_grad():
            self(tuple(found))
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        super().zero_grad(set_to_none)
        for part in self.learned:
            held = getattr(part, "grad", None)
            if held is not None:
                part.grad = None if set_to_none else ops.zeros_like(held)


class RecordingSGD(Recording, GraphSGD):
    """torch.optim.SGD."""


class RecordingAdam(Recording, GraphAdam):
    """torch.optim.Adam."""


class RecordingAdamW(Recording, GraphAdamW):
    """torch.optim.AdamW."""


class RecordingRMSprop(Recording, GraphRMSprop):
    """torch.optim.RMSprop."""


class RecordingAdagrad(Recording, GraphAdagrad):
    """torch.optim.Adagrad."""


class RecordingAdadelta(Recording, GraphAdadelta):
    """torch.optim.Adadelta."""


class RecordingAdamax(Recording, GraphAdamax):
    """torch.optim.Adamax."""
