"""Faults that are planted into the torch networks: NaN and Inf, and other illness."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_networks import TASKS, Task, planted

Spoil = Callable[[Tensor], Tensor]
BAD_STEP = 6


class Plant(nn.Module):
    """A module whose output is spoilt in one step."""

    def __init__(self, inner: nn.Module, spoil: Spoil) -> None:
        super().__init__()
        self.inner = inner
        self.spoil = spoil
        self.is_bad = False

    def forward(self, x: Tensor) -> Tensor:
        h = self.inner(x)
        return self.spoil(h) if self.is_bad else h


def log_of_zero(h: Tensor) -> Tensor:
    h = torch.relu(h)
    return -torch.log(h)  # here


def zero_by_zero(h: Tensor) -> Tensor:
    h = h * 0
    return h / h.sum()  # here


def one_by_zero(h: Tensor) -> Tensor:
    h = h * 0
    return torch.reciprocal(h)  # here


def exp_overflows(h: Tensor) -> Tensor:
    e = torch.exp(h.abs() * 1e5)  # here
    return e / e.sum()


def softmax_of_nothing(h: Tensor) -> Tensor:
    h = h.masked_fill(h < 1e30, float("-inf"))
    return torch.softmax(h, -1)  # here


def rsqrt_of_zero(h: Tensor) -> Tensor:
    s = (h * 0).square()
    return h * torch.rsqrt(s)  # here


def log1p_below(h: Tensor) -> Tensor:
    h = -h.abs() - 2
    return torch.log1p(h)  # here


def norm_of_zero(h: Tensor) -> Tensor:
    h = h * 0
    n = h.norm(dim=-1, keepdim=True)
    return h / n  # here


def acos_beyond(h: Tensor) -> Tensor:
    h = h * 0 + 1.5
    return torch.acos(h)  # here


def square_overflows(h: Tensor) -> Tensor:
    h = h + 1e25
    return torch.square(h)  # here


def root_at_zero(h: Tensor) -> Tensor:
    s = (h * 0).sum(-1, keepdim=True)
    return h + torch.sqrt(s)  # here


def power_at_zero(h: Tensor) -> Tensor:
    s = h * 0
    return h + torch.pow(s, 0.5)  # here


def acos_at_one(h: Tensor) -> Tensor:
    s = h * 0 + 1.0
    return h + torch.acos(s)  # here


def masked_log(h: Tensor) -> Tensor:
    kept = (h > 0) * h
    return torch.where(kept > 0, torch.log(kept), h)  # here


def deviation_of_equal(h: Tensor) -> Tensor:
    v = (h * 0 + 3.0).flatten(1).var(1)
    return h + v.sqrt().sum()  # here


#: By name: what spoils, the operators that are right to name, and the phase.
NONFINITE: dict[str, tuple[Spoil, frozenset[str], str]] = {
    "log(0)": (log_of_zero, frozenset({"log"}), "forward"),
    "0/0": (zero_by_zero, frozenset({"div"}), "forward"),
    "1/0": (one_by_zero, frozenset({"reciprocal"}), "forward"),
    "exp overflow": (exp_overflows, frozenset({"exp"}), "forward"),
    "softmax(-inf)": (softmax_of_nothing, frozenset({"_softmax", "softmax"}), "forward"),
    "rsqrt(0)": (rsqrt_of_zero, frozenset({"rsqrt"}), "forward"),
    "log1p(<-1)": (log1p_below, frozenset({"log1p"}), "forward"),
    "x/norm(0)": (norm_of_zero, frozenset({"div"}), "forward"),
    "acos(1.5)": (acos_beyond, frozenset({"acos"}), "forward"),
    "square overflow": (square_overflows, frozenset({"square", "pow"}), "forward"),
    "sqrt'(0)": (root_at_zero, frozenset({"SqrtBackward0"}), "backward"),
    "pow'(0)": (power_at_zero, frozenset({"PowBackward0"}), "backward"),
    "acos'(1)": (acos_at_one, frozenset({"AcosBackward0"}), "backward"),
    "where(log)": (masked_log, frozenset({"LogBackward0"}), "backward"),
    "std'(equal)": (deviation_of_equal, frozenset({"SqrtBackward0"}), "backward"),
}


def line_of(function: Callable[..., Any]) -> str:
    """`file:line` of the line that is marked with `# here`."""
    lines, first = inspect.getsourcelines(function)
    at = next(number for number, line in enumerate(lines) if "# here" in line)
    return f"{Path(__file__).name}:{first + at}"


@dataclass
class Training:
    """What a fault may change of a training before and while it runs."""

    task: Task
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: Any = None
    zero_grad: bool = True
    updates: int = 1
    change_batch: Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    change_loss: Callable[[int, Tensor, Tensor], Tensor] | None = None
    at_step: Callable[[int], None] | None = None

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device


@dataclass(frozen=True)
class Fault:
    """A fault that is no single value: what it does, the right rule, and when it begins."""

    name: str
    code: frozenset[str]
    tasks: tuple[str, ...]
    plant: Callable[[Training], None]
    begins: int = 0
    ends_gpu: bool = False


def _rate_times_100(training: Training) -> None:
    for group in training.optimizer.param_groups:
        group["lr"] *= 100


def _detached(training: Training) -> None:
    class Cut(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x).detach()

    planted(training.model, training.task.middle, Cut)


def _no_zero_grad(training: Training) -> None:
    training.zero_grad = False


def _double_step(training: Training) -> None:
    training.updates = 2


def _dead_by_bias(training: Training) -> None:
    with torch.no_grad():
        for module in training.model.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d, nn.Conv1d)) and module.bias is not None:
                module.bias.fill_(-100.0)
                return


def _constant_inputs(training: Training) -> None:
    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(x) if x.is_floating_point() else torch.ones_like(x), y

    training.change_batch = change


def _nan_in_batch(training: Training) -> None:
    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if step == BAD_STEP:
            x = x.clone()
            x.view(-1)[3] = float("nan")
        return x, y

    training.change_batch = change


def _label_outside(training: Training) -> None:
    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if step == BAD_STEP:
            y = y.clone()
            y.view(-1)[0] = 1000
        return x, y

    training.change_batch = change


def _momentum_zero(training: Training) -> None:
    for module in training.model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.0


def _never_trained_norm(training: Training) -> None:
    for module in training.model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()


def _decay_on_all(training: Training) -> None:
    for group in training.optimizer.param_groups:
        group["weight_decay"] = 0.1


def _half_weights(training: Training) -> None:
    """Weights of float16 whose updates round away: copies in float16 after each step."""
    training.model.to(torch.bfloat16)
    for group in training.optimizer.param_groups:
        group["lr"] = 1e-7

    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x.to(torch.bfloat16) if x.is_floating_point() else x), y

    training.change_batch = change


def _scale_stuck(training: Training) -> None:
    training.scaler = torch.amp.GradScaler(
        training.device.type, init_scale=4.0, growth_interval=1000
    )

    def change(step: int, output: Tensor, loss: Tensor) -> Tensor:
        return loss + torch.sqrt(output.square().sum() * 0)

    training.change_loss = change


def _static_too_large(training: Training) -> None:
    training.scaler = torch.amp.GradScaler(
        training.device.type,
        init_scale=2.0**126,
        growth_factor=1.0000001,
        backoff_factor=0.9999999,
    )

    def change(step: int, output: Tensor, loss: Tensor) -> Tensor:
        return loss * 64

    training.change_loss = change


def _wrong_rate(training: Training) -> None:
    schedule = torch.optim.lr_scheduler.LambdaLR(training.optimizer, lambda step: 0.5)

    def at_step(step: int) -> None:
        schedule.step()
        for group in training.optimizer.param_groups:
            group["lr"] = 1e-2

    training.at_step = at_step


def _loss_of_nothing(training: Training) -> None:
    with torch.no_grad():
        for parameter in training.model.parameters():
            parameter.zero_()

    for group in training.optimizer.param_groups:
        group["lr"] = 1e-3

    def change(step: int, output: Tensor, loss: Tensor) -> Tensor:
        return (loss * 0 + 2.302585).clone()

    training.change_loss = change


def _spike(training: Training) -> None:
    def change(step: int, output: Tensor, loss: Tensor) -> Tensor:
        return loss * 200 if step == 20 else loss

    training.change_loss = change


def _explode(training: Training) -> None:
    def change(step: int, output: Tensor, loss: Tensor) -> Tensor:
        return loss * 1e9 if step >= BAD_STEP else loss

    training.change_loss = change


def _saturate(training: Training) -> None:
    class Saturated(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner
            self.gate = nn.Tanh()

        def forward(self, x: Tensor) -> Tensor:
            return self.gate(self.inner(x) * 1e6 + 50)

    planted(training.model, training.task.middle, Saturated)


def _deep_sigmoids(training: Training) -> None:
    class Deep(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner
            width = getattr(inner, "out_features", 16)
            layers = [part for _ in range(10) for part in (nn.Linear(width, width), nn.Sigmoid())]
            self.stack = nn.Sequential(*layers)

        def forward(self, x: Tensor) -> Tensor:
            return self.stack(self.inner(x))

    deep = planted(training.model, training.task.middle, Deep).to(training.device)
    training.optimizer.add_param_group({"params": list(deep.stack.parameters())})


_ALL = tuple(task.name for task in TASKS)
_CLASSIFIERS = tuple(task.name for task in TASKS if task.is_classifier)
_LINEAR = ("mlp", "gru", "lstm", "mixer", "transformer", "autoencoder")

FAULTS = (
    Fault("rate × 100", frozenset({"weight.update_ratio", "loss.diverging", "loss.spike"}), _ALL,
          _rate_times_100),
    Fault("detached", frozenset({"gradient.zero"}), ("mlp", "cnn", "autoencoder", "gru"),
          _detached),
    Fault("no zero_grad", frozenset({"gradient.accumulated"}), _ALL[:5], _no_zero_grad),
    Fault("double step", frozenset({"update.repeated"}), _ALL[5:], _double_step),
    Fault("dead by bias", frozenset({"activation.dead"}), ("mlp", "cnn"), _dead_by_bias),
    Fault("constant inputs", frozenset({"input.constant"}), ("mlp", "cnn", "unet", "mixer"),
          _constant_inputs),
    Fault("label outside", frozenset({"input.labels"}), ("mlp", "cnn", "resnet", "gru"),
          _label_outside, BAD_STEP, ends_gpu=True),
    Fault("momentum 0", frozenset({"statistics.stale"}), ("resnet",), _momentum_zero),
    Fault("norm in eval", frozenset({"statistics.stale"}), ("resnet",), _never_trained_norm),
    Fault("decay on all", frozenset({"optimizer.decay"}), ("mlp", "transformer", "resnet"),
          _decay_on_all),
    Fault("updates round away", frozenset({"weight.unchanged"}), ("mlp", "mixer"), _half_weights),
    Fault("scale stuck", frozenset({"scale.stuck", "gradient.nonfinite"}), ("mlp", "cnn"),
          _scale_stuck),
    Fault("static scale", frozenset({"scale.too_large", "scale.stuck"}), ("mlp", "gru"),
          _static_too_large),
    Fault("rate off schedule", frozenset({"learning_rate.differs"}), ("mlp", "lstm"), _wrong_rate),
    Fault("constant loss", frozenset({"loss.constant", "gradient.zero"}), ("mlp", "textcnn"),
          _loss_of_nothing),
    Fault("spike", frozenset({"loss.spike"}), ("mlp", "cnn", "unet"), _spike, 20),
    Fault("exploding", frozenset({"gradient.exploding", "loss.diverging"}), ("gru", "lstm", "mlp"),
          _explode, BAD_STEP),
    Fault("saturated", frozenset({"activation.saturated", "gradient.zero"}), ("mlp", "mixer"),
          _saturate),
    Fault("deep sigmoids", frozenset({"gradient.vanishing"}), ("mlp", "gru"), _deep_sigmoids),
)  # fmt: skip
