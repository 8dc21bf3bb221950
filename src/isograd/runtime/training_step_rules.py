"""torch's other rules in a compiled step: without Adam's two means."""

from __future__ import annotations

import math
from typing import Any

from mindspore import ops  # noqa: TID253

from isograd.runtime.training_steps import GraphOptimizer


class GraphRMSprop(GraphOptimizer):
    """torch.optim.RMSprop: eps is added to the root, momentum moves what was divided by it.

    `mindspore.nn.RMSProp` adds eps before the root.
    """

    switches = ("weight_decay", "momentum", "centered", "maximize")

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-08,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        settings |= {"momentum": momentum, "centered": centered, "maximize": maximize}
        super().__init__(params, settings)

    def state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """What is kept for each parameter of a group, by torch's names."""
        moved = ("momentum_buffer",) if group["momentum"] else ()
        return ("square_avg", *moved, *(("grad_avg",) if group["centered"] else ()))

    def numbers(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the step reads of a group."""
        alpha = float(group["alpha"])
        rest = (group["momentum"], group["eps"])
        return (group["lr"], group["weight_decay"], alpha, 1 - alpha, *rest)

    def change(self, number: int, gradient: Any, numbers: Any, rule: Any, steps: Any) -> Any:
        """One parameter's step."""
        weight = self.weights[number]
        if rule[3]:
            gradient = -gradient
        if rule[0]:
            gradient = gradient + numbers[1] * weight
        square = self.first[number] * numbers[2] + gradient * gradient * numbers[3]
        ops.assign(self.first[number], square)
        if rule[2]:
            kept = self.third[number] if rule[1] else self.second[number]
            mean = kept + numbers[3] * (gradient - kept)
            ops.assign(kept, mean)
            square = square - mean * mean
        moved = gradient / (ops.sqrt(square) + numbers[5])
        if rule[1]:
            moved = numbers[4] * self.second[number] + moved
            ops.assign(self.second[number], moved)
        return ops.assign(weight, weight - numbers[0] * moved)


class GraphAdagrad(GraphOptimizer):
    """torch.optim.Adagrad: the rate falls with the steps, the squares are added up from a value."""

    switches = ("weight_decay", "maximize")

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
        settings |= {"initial_accumulator_value": initial_accumulator_value, "maximize": maximize}
        super().__init__(params, settings)
        for number, place in enumerate(self.group_of):
            value = self.param_groups[place]["initial_accumulator_value"]
            ops.assign(self.first[number], ops.zeros_like(self.first[number]) + value)

    def state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """What is kept for each parameter of a group, by torch's names."""
        return ("sum",)

    def numbers(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the step reads of a group."""
        return (group["lr"], group["weight_decay"], group["lr_decay"], group["eps"])

    def change(self, number: int, gradient: Any, numbers: Any, rule: Any, steps: Any) -> Any:
        """One parameter's step."""
        weight = self.weights[number]
        if rule[1]:
            gradient = -gradient
        if rule[0]:
            gradient = gradient + numbers[1] * weight
        rate = numbers[0] / (1.0 + (steps - 1.0) * numbers[2])
        total = self.first[number] + gradient * gradient
        ops.assign(self.first[number], total)
        return ops.assign(weight, weight - rate * gradient / (ops.sqrt(total) + numbers[3]))


class GraphAdadelta(GraphOptimizer):
    """torch.optim.Adadelta: steps in the size of earlier steps.

    `mindspore.nn.Adadelta` has one rate for all groups and keeps no settings.
    """

    switches = ("weight_decay", "maximize")

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-06,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """What is kept for each parameter of a group, by torch's names."""
        return ("square_avg", "acc_delta")

    def numbers(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the step reads of a group."""
        rho = float(group["rho"])
        return (group["lr"], group["weight_decay"], rho, 1 - rho, group["eps"])

    def change(self, number: int, gradient: Any, numbers: Any, rule: Any, steps: Any) -> Any:
        """One parameter's step."""
        weight, held = self.weights[number], self.second[number]
        if rule[1]:
            gradient = -gradient
        if rule[0]:
            gradient = gradient + numbers[1] * weight
        square = self.first[number] * numbers[2] + gradient * gradient * numbers[3]
        ops.assign(self.first[number], square)
        moved = ops.sqrt(held + numbers[4]) / ops.sqrt(square + numbers[4]) * gradient
        ops.assign(self.second[number], held * numbers[2] + moved * moved * numbers[3])
        return ops.assign(weight, weight - numbers[0] * moved)


class GraphAdamax(GraphOptimizer):
    """torch.optim.Adamax: Adam with the greatest gradient in place of the root mean square."""

    switches = ("weight_decay", "maximize")

    def __init__(
        self,
        params: Any,
        lr: float = 0.002,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """What is kept for each parameter of a group, by torch's names."""
        return ("exp_avg", "exp_inf")

    def numbers(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the step reads of a group, computed in float64."""
        first, second = (float(beta) for beta in group["betas"])
        log = math.log(first) if first else -math.inf
        return (group["lr"], group["weight_decay"], first, 1 - first, log, second, group["eps"])

    def change(self, number: int, gradient: Any, numbers: Any, rule: Any, steps: Any) -> Any:
        """One parameter's step."""
        weight = self.weights[number]
        if rule[1]:
            gradient = -gradient
        if rule[0]:
            gradient = gradient + numbers[1] * weight
        mean = self.first[number] * numbers[2] + gradient * numbers[3]
        greatest = ops.maximum(self.second[number] * numbers[5], ops.abs(gradient) + numbers[6])
        ops.assign(self.first[number], mean)
        ops.assign(self.second[number], greatest)
        rate = numbers[0] / -ops.expm1(steps * numbers[4])
        return ops.assign(weight, weight - rate * mean / greatest)
