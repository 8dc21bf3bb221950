"""Compiled steps in a program that takes gradients elsewhere as it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.training_complex_parts import joined, parts_of
from isograd.runtime.training_gradients import no_grad, track
from isograd.runtime.training_recorder import record_gradients
from isograd.runtime.training_step_rules import (
    GraphAdadelta,
    GraphAdagrad,
    GraphAdamax,
    GraphRMSprop,
)
from isograd.runtime.training_steps import OTHER, GraphAdam, GraphAdamW, GraphOptimizer, GraphSGD


def unrecorded_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function of which nothing is recorded."""
    compiled = ms.jit(function)

    @functools.wraps(function)
    def unrecorded(*inputs: Any, **named: Any) -> Any:
        with no_grad():
            return compiled(*inputs, **named)

    return unrecorded


class Recording(GraphOptimizer):
    """A compiled step's optimizer that steps by the `grad` of its parameters, too.

    torch leaves a parameter as it is that has no gradient, and counts the steps of each; missed:
    how many steps went by without one, by the parameter's place.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.missed: dict[int, int] = {}
        track(self.learned)
        record_gradients()

    @property
    def parameters(self) -> Any:
        """As of a compiled step's optimizer.

        Raises RuntimeError after a step without some gradients: a graph counts one step for all.
        """
        learned = super().parameters
        self._look_at_missed()
        return learned

    def _look_at_missed(self) -> None:
        if self.is_taken and any(self.missed.values()):
            name = self.learned[next(place for place, n in self.missed.items() if n)].name
            raise RuntimeError(f"{name} had no gradient in a step. {OTHER}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step with recorded gradients; RuntimeError as of `parameters`."""
        loss = closure() if closure is not None else None
        found = [getattr(part, "grad", None) for part in self.learned]
        with no_grad():
            ops.assign(self.steps, self.steps + 1.0)
            for place, gradient in enumerate(found):
                if gradient is None:
                    self.missed[place] = self.missed.get(place, 0) + 1
                else:
                    self._change_one(place, gradient)
        self._look_at_missed()
        return loss

    def _change_one(self, place: int, gradient: Any) -> None:
        group = self.group_of[place]
        steps = self.steps - float(self.missed.get(place, 0))
        scalars, weight = self.scalars[group], self.weights[place]
        several = [scalars[number] for number in range(scalars.shape[0])]
        rule = self.rules[group]
        if self.has_parts[place]:
            ops.assign(weight, parts_of(self.learned[place]))
            gradient = parts_of(gradient)
        shared = self.shared(several, rule, steps)
        self.change(place, gradient.astype(weight.dtype), shared, rule, steps)
        if self.has_parts[place]:
            ops.assign(self.learned[place], joined(weight))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        super().zero_grad(set_to_none)
        for part in self.learned:
            held = getattr(part, "grad", None)
            if held is not None:
                part.grad = None if set_to_none else ops.zeros_like(held)

    def state_dict(self, *given: Any, **named: Any) -> dict[str, Any]:
        """The state by the parameters' numbers and the groups' settings, as torch keeps them."""
        found = super().state_dict(*given, **named)
        for number, place in self._places().items():
            own = found["state"].get(number)
            if own is not None and self.missed.get(place):
                own["step"] -= self.missed[place]
                if not own["step"]:
                    del found["state"][number]
        return found

    def load_state_dict(self, state_dict: dict[str, Any], *given: Any) -> None:
        """Take over the state and the settings of a checkpoint."""
        super().load_state_dict(state_dict, *given)
        state = {int(number): own for number, own in state_dict["state"].items()}
        last, self.missed = float(self.steps.asnumpy()), {}
        if any("step" in own for own in state.values()):
            for number, place in self._places().items():
                self.missed[place] = int(last - float(state.get(number, {}).get("step", 0)))

    def _places(self) -> dict[int, int]:
        """The places of the parameters that learn by their numbers in a checkpoint."""
        everything = [part for group in self.param_groups for part in group["params"]]
        numbers = {id(part): number for number, part in enumerate(everything)}
        return {numbers[id(part)]: place for place, part in enumerate(self.learned)}


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
