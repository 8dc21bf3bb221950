"""Averages of weights over training, by torch.optim.swa_utils' rules."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.module_functions import buffers, parameters
from isograd.runtime.storages import copies_own_their_memory
from isograd.runtime.torch_module import Module
from isograd.runtime.torch_norms import TrackingNorm
from isograd.runtime.training_gradients import no_grad
from isograd.runtime.training_schedules import LRScheduler
from isograd.runtime.writing import write

#: Takes an average, the current value and how many were averaged; the next average.
Average = Callable[[Any, Any, Any], Any]
#: The same of many at once, which it writes into the averages.
Averages = Callable[[Sequence[Any], Sequence[Any], Any], None]


def get_swa_avg_fn() -> Average:
    """The mean of all."""

    def averaged(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        kept, current = ops.stop_gradient(averaged_param), ops.stop_gradient(current_param)
        return kept + (current - kept) / (num_averaged + 1)

    return averaged


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average; raises ValueError for a decay outside of 0 to 1."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided: it has to be in [0, 1].")

    def averaged(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        kept, current = ops.stop_gradient(ema_param), ops.stop_gradient(current_param)
        return decay * kept + (1 - decay) * current

    return averaged


def _of_many(average: Average) -> Averages:
    def averaged(averages: Sequence[Any], values: Sequence[Any], num_averaged: Any) -> None:
        for held, value in zip(averages, values, strict=True):
            write(held, average(held, value, num_averaged))

    return averaged


def get_swa_multi_avg_fn() -> Averages:
    """The mean of all, of many at once."""
    return _of_many(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """The exponential moving average, of many at once."""
    return _of_many(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """torch.optim.swa_utils.AveragedModel: a copy of a network whose weights are averages."""

    n_averaged: Any

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        copies_own_their_memory()
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", ms.Tensor(0, ms.int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def construct(self, *inputs: Any, **named: Any) -> Any:
        """What the averaged network computes."""
        return self.module(*inputs, **named)

    def update_parameters(self, model: Any) -> None:
        """Take the weights that a network has now into the averages."""
        held, values = list(parameters(self.module)), list(parameters(model))
        averages, statistics = list(buffers(self.module)), list(buffers(model))
        if self.use_buffers:
            held, values = held + averages, values + statistics
        count = int(self.n_averaged)
        if count == 0:
            for average, value in zip(held, values, strict=True):
                write(average, value)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(held, values, count)
        else:
            _of_many(self.avg_fn or get_swa_avg_fn())(held, values, count)
        if not self.use_buffers:
            for average, value in zip(averages, statistics, strict=True):
                write(average, value)
        self.n_averaged = ms.Tensor(count + 1, ms.int64)


class _Averaged:
    """A BatchNorm of MindSpore whose statistics become the mean over the calls that follow."""

    def __init__(self, norm: Any) -> None:
        if not norm.momentum:
            raise NotImplementedError("a BatchNorm with momentum=1.0 does not show a batch's mean")
        self._norm, self._calls = norm, 0
        self._statistics = (norm.moving_mean, norm.moving_variance)
        self._means = [ms.ops.zeros_like(each) for each in self._statistics]
        self._begin()
        self._hook = norm.register_forward_hook(self._measure)

    def _begin(self) -> None:
        """Zeros, so that the next call leaves its own statistics times the momentum."""
        for statistic in self._statistics:
            write(statistic, ms.ops.zeros_like(statistic))

    def _measure(self, *_: Any) -> None:
        self._calls += 1
        for at, statistic in enumerate(self._statistics):
            mean = self._means[at]
            self._means[at] = mean + (statistic / self._norm.momentum - mean) / self._calls
        self._begin()

    def end(self) -> None:
        """Write the means; 0 and 1 where nothing called the norm, as torch's reset leaves them."""
        self._hook.remove()
        if not self._calls:
            self._means[1] = ms.ops.ones_like(self._means[1])
        for statistic, mean in zip(self._statistics, self._means, strict=True):
            write(statistic, mean)


@no_grad
def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Measure the running statistics of batch norms anew: the mean over all batches alike."""
    own = (ms.nn.BatchNorm1d, ms.nn.BatchNorm2d, ms.nn.SyncBatchNorm)  # that of 3d holds a 2d
    cells = [cell for _, cell in model.cells_and_names()]
    norms = [cell for cell in cells if isinstance(cell, TrackingNorm)]
    if not norms and not any(isinstance(cell, own) for cell in cells):
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    for norm in norms:
        norm.reset_running_stats()
    averaged = [_Averaged(cell) for cell in cells if isinstance(cell, own)]
    model.set_train(True)
    for number, batch in enumerate(loader):
        for norm in norms:
            norm.momentum = 1 / (number + 1)
        model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    for each in averaged:
        each.end()
    model.set_train(was_training)


class SWALR(LRScheduler):
    """torch.optim.swa_utils.SWALR: from each group's rate to that of the averaging."""

    def __init__(
        self,
        optimizer: Any,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be 'cos' or 'linear', not {anneal_strategy}")
        groups = optimizer.param_groups
        rates = swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups)
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the averaging's rate there is at a step."""
        passed = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * passed)) / 2 if self.anneal_strategy == "cos" else passed

    def get_lr(self) -> list[float]:
        """The next rates."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, share = self._share(step - 1), self._share(step)
        found = []
        for group in self.optimizer.param_groups:
            goal, rate = group["swa_lr"], group["lr"]
            start = goal if before == 1 else (rate - before * goal) / (1 - before)
            found.append(goal * share + start * (1 - share))
        return found
