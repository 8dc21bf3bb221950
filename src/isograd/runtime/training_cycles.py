"""Torch's cyclic learning-rate schedules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from isograd.runtime.training_schedules import LRScheduler, each


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down along a cosine, again and again."""

    def __init__(
        self,
        optimizer: Any,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: Any = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates."""
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        least = self.eta_min
        return [least + (base - least) * height / 2 for base in self.base_lrs]

    def _set(self, epoch: Any = None) -> None:
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            rounds = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**rounds - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**rounds
        self.last_epoch = math.floor(epoch)
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr = self._rates()


def _set_momentum(group: dict[str, Any], value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """Up and down between two rates, the momentum the other way."""

    _kept_apart = ("optimizer", "_scale")

    def __init__(
        self,
        optimizer: Any,
        base_lr: Any,
        max_lr: Any,
        step_size_up: float = 2000,
        step_size_down: float | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        lowest = each(base_lr, optimizer)
        self.max_lrs = each(max_lr, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        own = {"triangular": lambda _: 1.0, "triangular2": lambda cycle: 1 / 2.0 ** (cycle - 1)}
        self._scale = scale_fn or own.get(mode, lambda step: gamma**step)
        self._by_step = (scale_mode if scale_fn else mode) in ("iterations", "exp_range")
        self.cycle_momentum = cycle_momentum
        self.base_momentums = each(base_momentum, optimizer)
        self.max_momentums = each(max_momentum, optimizer)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, lowest, strict=True):
                group["lr"] = rate
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def get_lr(self) -> list[float]:
        """The next rates; the momentum is set with them."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        part = 1.0 + self.last_epoch / self.total_size - cycle
        is_up = part <= self.step_ratio
        height = part / self.step_ratio if is_up else (part - 1) / (self.step_ratio - 1)
        scale = self._scale(self.last_epoch if self._by_step else cycle)
        if self.cycle_momentum:
            momenta = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (least, most) in zip(self.optimizer.param_groups, momenta, strict=True):
                _set_momentum(group, most - (most - least) * height * scale)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [base + (most - base) * height * scale for base, most in pairs]


class OneCycleLR(LRScheduler):
    """Up to the greatest rate, then far down; the momentum the other way."""

    def __init__(
        self,
        optimizer: Any,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = total_steps or (epochs or 0) * (steps_per_epoch or 0)
        rise, total = float(pct_start * self.total_steps) - 1, self.total_steps
        self._phases = [(rise, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            fall = float(2 * pct_start * total) - 2
            self._phases.append((fall, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
            self._phases.append((total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
        else:
            self._phases.append((total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
        self._anneal, self.cycle_momentum = anneal_strategy, cycle_momentum
        if last_epoch == -1:
            settings = zip(
                optimizer.param_groups,
                each(max_lr, optimizer),
                each(base_momentum, optimizer),
                each(max_momentum, optimizer),
                strict=True,
            )
            for group, most, low, high in settings:
                group["initial_lr"], group["max_lr"] = most / div_factor, most
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    _set_momentum(group, high)
                    group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal == "cos":
            return end + (start - end) / 2.0 * (1 + math.cos(math.pi * part))
        return (end - start) * part + start

    def get_lr(self) -> list[float]:
        """The next rates; the momentum is set with them."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times, of {self.total_steps} in all")
        start, number = 0.0, 0
        while step > self._phases[number][0] and number < len(self._phases) - 1:
            start, number = self._phases[number][0], number + 1
        end, first, last, first_momentum, last_momentum = self._phases[number]
        part = (step - start) / (end - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[first], group[last], part))
            if self.cycle_momentum:
                momenta = group[first_momentum], group[last_momentum]
                _set_momentum(group, self._between(*momenta, part))
        return rates
