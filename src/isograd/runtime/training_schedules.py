"""torch's schedules of the learning rate, over torch-shaped optimizers; plain arithmetic."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any


class LRScheduler:
    """Sets the rate of each group of an optimizer, step by step, from the rate before.

    A rule of its own defines `get_lr`, and where it has one a closed form in `_closed`.
    """

    _kept_apart: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("param 'initial_lr' is not specified in a parameter group")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch: Any = last_epoch
        self._begin()

    def _begin(self) -> None:
        self._step_count = 0
        self._get_lr_called_within_step = False  # what many schedules of others ask
        self._is_initial = True
        self.step()
        self._is_initial = False

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return list(self._last_lr)

    def get_lr(self) -> list[float]:
        """The next rates."""
        raise NotImplementedError

    def _closed(self) -> list[float]:
        """The rates at `last_epoch`, whatever was before."""
        return self.get_lr()

    def step(self, epoch: Any = None) -> None:
        """Set the next rates, or those of an epoch."""
        self._step_count += 1
        self._set(epoch)

    def _set(self, epoch: Any = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._get_lr_called_within_step = True
        values = self.get_lr() if epoch is None else self._closed()
        self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            group["lr"] = value
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the functions that were given."""
        return {name: v for name, v in self.__dict__.items() if name not in self._kept_apart}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.__dict__.update(state_dict)


def each(value: Any, optimizer: Any) -> list[Any]:
    """A value for each group."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return [value] * len(optimizer.param_groups)


class LambdaLR(LRScheduler):
    """The first rate times a function of the step."""

    _kept_apart = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Callable[[int], float]] = each(lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates."""
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base * function(self.last_epoch) for function, base in pairs]


class MultiplicativeLR(LambdaLR):
    """The rate times a function of the step."""

    def get_lr(self) -> list[float]:
        """The next rates."""
        if self._is_initial:
            return self._rates()
        pairs = zip(self.lr_lambdas, self._rates(), strict=True)
        return [rate * function(self.last_epoch) for function, rate in pairs]


class StepLR(LRScheduler):
    """Times gamma every so many steps."""

    def __init__(
        self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _closed(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at some steps."""

    def __init__(
        self, optimizer: Any, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates."""
        power = self.milestones.count(self.last_epoch)
        return [rate * self.gamma**power if power else rate for rate in self._rates()]

    def _closed(self) -> list[float]:
        power = bisect_right(self.milestones, self.last_epoch)
        return [base * self.gamma**power for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times gamma every step."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates."""
        return [rate if self._is_initial else rate * self.gamma for rate in self._rates()]

    def _closed(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """A part of the rate for the first steps."""

    def __init__(
        self, optimizer: Any, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates."""
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates()]
        if self.last_epoch != self.total_iters:
            return self._rates()
        return [rate * (1.0 / self.factor) for rate in self._rates()]

    def _closed(self) -> list[float]:
        is_over = self.last_epoch >= self.total_iters
        return [base * (self.factor + is_over * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """From one part of the rate to another in equal steps."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates."""
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return [rate * (1.0 + change / before) for rate in self._rates()]

    def _closed(self) -> list[float]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to zero along a power."""

    def __init__(
        self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The next rates."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [rate * (left / before) ** self.power for rate in self._rates()]

    def _closed(self) -> list[float]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Down to eta_min, and up again, along a cosine."""

    def __init__(
        self,
        optimizer: Any,
        T_max: int,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: Any) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> list[float]:
        """The next rates."""
        epoch, least = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and epoch > 0:
            return self._closed()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(self._rates(), self.base_lrs, strict=True)
            return [rate + (base - least) * rise for rate, base in pairs]
        share = self._height(epoch) / self._height(epoch - 1)
        return [share * (rate - least) + least for rate in self._rates()]

    def _closed(self) -> list[float]:
        least, height = self.eta_min, self._height(self.last_epoch)
        return [least + (base - least) * height / 2 for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """One schedule after the other."""

    _kept_apart = ("optimizer", "_schedulers")

    def __init__(
        self,
        optimizer: Any,
        schedulers: Sequence[Any],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("SequentialLR needs one milestone less than schedulers")
        self.optimizer = optimizer
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._undo()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._begin()
        self._last_lr = first.get_last_lr()

    def _undo(self) -> None:
        """The steps that the schedules made when they were built."""
        for scheduler in self._schedulers:
            if isinstance(scheduler, SequentialLR):
                scheduler._undo()
            else:
                scheduler.last_epoch -= 1

    def _begin(self) -> None:
        self._schedulers[0]._begin()

    def step(self, epoch: Any = None) -> None:
        """The next step of the schedule whose turn it is."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._set(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The state of all schedules."""
        return {
            **super().state_dict(),
            "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        held = dict(state_dict)
        for scheduler, state in zip(self._schedulers, held.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(state)
        self.__dict__.update(held)


class ChainedScheduler(SequentialLR):
    """Several schedules at once."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Any = None) -> None:
        self._schedulers = list(schedulers)
        self.optimizer = optimizer or self._schedulers[0].optimizer
        self._last_lr = self._rates()

    def step(self, epoch: Any = None) -> None:
        """A step of each."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()


class ReduceLROnPlateau(LRScheduler):
    """A smaller rate when a value no longer improves."""

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        self.optimizer, self.mode, self.factor = optimizer, mode, factor
        self.patience, self.threshold, self.threshold_mode = patience, threshold, threshold_mode
        self.cooldown, self.min_lrs, self.eps = cooldown, each(min_lr, optimizer), eps
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter, self.num_bad_epochs, self.last_epoch = 0, 0, 0
        self._last_lr = self._rates()

    def _is_better(self, value: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bound = self.best * (1.0 + sign * self.threshold)
        else:
            bound = self.best + sign * self.threshold
        return value < bound if self.mode == "min" else value > bound

    def step(self, metrics: Any = None, epoch: Any = None) -> None:  # type: ignore[override]
        """Look at the value, and lower the rates where it did not improve for long."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._lower()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _lower(self) -> None:
        """Lower the rates.  Raises RuntimeError for a group that has no least rate."""
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"{len(groups)} groups of parameters, {len(self.min_lrs)} min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            rate = max(group["lr"] * self.factor, least)
            if group["lr"] - rate > self.eps:
                group["lr"] = rate
