"""Optimizers where MindSpore's rule is another."""

from __future__ import annotations

from typing import Any

from mindspore import ops  # noqa: TID253
from mindspore.experimental import optim  # noqa: TID253


class Adam(optim.Adam):  # type: ignore[misc]
    """torch's Adam: eps beside the corrected root, and amsgrad, which MindSpore's ignores."""

    def construct(self, gradients: Any) -> bool:
        """One step with the gradients of all parameters."""
        ops.assign_add(self.state_step, self.increase_tensor)
        step = int(self.state_step.asnumpy())
        for number, group in enumerate(self.param_groups):
            start, end = self.group_start_id[number], self.group_start_id[number + 1]
            rate = group["lr"] if isinstance(group["lr"], float) else self.lrs[number]
            for place in range(start, end):
                self._step(place, gradients[place], group, rate, step)
        return True

    def _step(self, place: int, gradient: Any, group: Any, rate: Any, step: int) -> None:
        first_beta, second_beta = group["betas"]
        parameter = self.parameters[place]
        gradient = -gradient if group["maximize"] else gradient
        gradient = gradient + group["weight_decay"] * parameter
        mean, square = self.exp_avg[place], self.exp_avg_sq[place]
        ops.assign(mean, first_beta * mean + (1 - first_beta) * gradient)
        ops.assign(square, second_beta * square + (1 - second_beta) * gradient * gradient)
        if group["amsgrad"]:
            greatest = self.max_exp_avg_sq[place]
            ops.assign(greatest, ops.maximum(greatest, square))
            square = greatest
        root = ops.sqrt(square / (1 - second_beta**step)) + group["eps"]
        ops.assign(parameter, parameter - rate / (1 - first_beta**step) * mean / root)
