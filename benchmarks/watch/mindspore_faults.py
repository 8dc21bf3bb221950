"""Faults that are planted into networks of MindSpore, and what should be found of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

BAD_STEP = 4


class LogOfZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = ops.abs(h) * (1 - bad) + 0.1 * (1 - bad)
        return -ops.log(h)  # here


class ZeroByZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = (ops.abs(h) + 0.1) * (1 - bad)
        return h / h.sum()  # here


class OneByZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = (ops.abs(h) + 0.1) * (1 - bad)
        return ops.reciprocal(h)  # here


class ExpOverflows(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = h * (1 - bad) + 1e3 * bad
        return ops.exp(h)  # here


class RsqrtOfZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = (h * h + 0.1) * (1 - bad)
        return ops.rsqrt(h)  # here


class RootAtZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        s = (h * h + 0.1) * (1 - bad)
        return h + ops.sqrt(s)  # here


class SquareOverflows(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = h + 1e25 * bad
        return ops.square(h)  # here


NONFINITE: dict[str, tuple[Callable[[], nn.Cell], frozenset[str], str]] = {
    "log(0)": (LogOfZero, frozenset({"Log"}), "forward"),
    "0/0": (ZeroByZero, frozenset({"Div", "RealDiv"}), "forward"),
    "1/0": (OneByZero, frozenset({"Reciprocal"}), "forward"),
    "exp overflow": (ExpOverflows, frozenset({"Exp"}), "forward"),
    "rsqrt(0)": (RsqrtOfZero, frozenset({"Rsqrt"}), "forward"),
    "sqrt'(0)": (RootAtZero, frozenset({"Sqrt (backward)"}), "backward"),
    "square overflow": (SquareOverflows, frozenset({"Square"}), "forward"),
}


class Plant(nn.Cell):
    """A cell whose output is spoilt while its flag is 1."""

    def __init__(self, inner: nn.Cell, spoil: nn.Cell) -> None:
        super().__init__()
        self.inner, self.spoil = inner, spoil
        flag = ms.Tensor(0.0, ms.float32)
        self.flag = ms.Parameter(flag, name="isograd_flag", requires_grad=False)

    def construct(self, x: Any) -> Any:
        return self.spoil(self.inner(x), self.flag)


@dataclass
class Training:
    """A training before its first step, as a fault may change it.

    change: of a batch at a step; change_loss: of the loss, in the differentiated function; updates:
    how often the optimizer is called with the same gradients.
    """

    model: nn.Cell
    middle: str
    rate: float = 1e-3
    weight_decay: float = 0.0
    updates: int = 1
    trains: bool = True
    scaler: Any = None
    change: Callable[[int, Any, Any], Any] | None = None
    change_loss: Callable[[Any, Any], Any] | None = None
    factor: Callable[[int], float] | None = None


@dataclass(frozen=True)
class Fault:
    """A fault that is no single value: what it does, the right rules, and when it begins."""

    name: str
    codes: frozenset[str]
    tasks: tuple[str, ...]
    plant: Callable[[Training], None]
    begins: int = 0
    steps: int = 12


def _rate_times_100(training: Training) -> None:
    training.rate = 0.3


def _nan_in_batch(training: Training) -> None:
    def change(step: int, x: Any, y: Any) -> Any:
        if step == BAD_STEP:
            x = x.copy()
            x.reshape(-1)[3] = np.nan
        return x, y

    training.change = change


def _constant_inputs(training: Training) -> None:
    training.change = lambda step, x, y: (np.zeros_like(x), y)


def _same_batch(training: Training) -> None:
    kept: list[Any] = []

    def change(step: int, x: Any, y: Any) -> Any:
        kept.append((x, y))
        return kept[0]

    training.change = change


def _never_trains(training: Training) -> None:
    training.trains = False


def _dead_by_bias(training: Training) -> None:
    cell = getattr(training.model, training.middle)
    cell.bias.set_data(ms.Tensor(np.full(cell.bias.shape, -100.0, np.float32)))


def _double_step(training: Training) -> None:
    training.updates = 2


def _decay_on_all(training: Training) -> None:
    training.weight_decay = 0.1


def _wrap_middle(training: Training, make: Callable[[nn.Cell], nn.Cell]) -> None:
    setattr(training.model, training.middle, make(getattr(training.model, training.middle)))


class Stopped(nn.Cell):
    """Lets no gradient through."""

    def __init__(self, inner: nn.Cell) -> None:
        super().__init__()
        self.inner = inner

    def construct(self, x: Any) -> Any:
        return ops.stop_gradient(self.inner(x))


class Saturated(nn.Cell):
    """A tanh that is given far too much."""

    def __init__(self, inner: nn.Cell) -> None:
        super().__init__()
        self.inner, self.gate = inner, nn.Tanh()

    def construct(self, x: Any) -> Any:
        return self.gate(self.inner(x) * 1e6 + 50)


class DeepSigmoids(nn.Cell):
    """Ten sigmoids in a row."""

    def __init__(self, inner: nn.Cell) -> None:
        super().__init__()
        self.inner = inner
        width = inner.out_channels
        self.stack = nn.SequentialCell(
            [part for _ in range(10) for part in (nn.Dense(width, width), nn.Sigmoid())]
        )

    def construct(self, x: Any) -> Any:
        return self.stack(self.inner(x))


def _explode(training: Training) -> None:
    training.factor = lambda step: 1e9 if step >= BAD_STEP else 1.0


def _spike(training: Training) -> None:
    training.factor = lambda step: 200.0 if step == 20 else 1.0


def _constant_loss(training: Training) -> None:
    training.change_loss = lambda loss, output: loss * 0 + 2.302585


def _scale_stuck(training: Training) -> None:
    training.scaler = ms.amp.DynamicLossScaler(4.0, 2, 1000)
    training.change_loss = lambda loss, output: loss + ops.sqrt(ops.square(output).sum() * 0)


def _tiny_updates(training: Training) -> None:
    training.rate = 1e-12


_ALL = ("mlp", "cnn", "resnet", "transformer", "rnn", "unet", "autoencoder", "mixer", "textcnn",
        "gated")  # fmt: skip
_FLOATS = tuple(name for name in _ALL if name not in ("transformer", "textcnn"))

FAULTS = (
    Fault("rate × 100", frozenset({"weight.update_ratio", "loss.diverging", "loss.spike"}), _ALL,
          _rate_times_100),
    Fault("NaN in a batch", frozenset({"input.nonfinite"}), _FLOATS, _nan_in_batch, BAD_STEP),
    Fault("constant inputs", frozenset({"input.constant"}), ("mlp", "cnn", "unet", "mixer"),
          _constant_inputs),
    Fault("the same batch", frozenset({"input.repeated"}), ("mlp", "rnn", "textcnn"), _same_batch),
    Fault("norm never trains", frozenset({"statistics.stale"}), ("resnet",), _never_trains),
    Fault("dead by bias", frozenset({"activation.dead"}), ("mlp", "textcnn"), _dead_by_bias),
    Fault("double step", frozenset({"update.repeated"}), ("mlp", "cnn", "rnn", "gated"),
          _double_step),
    # Networks without gamma and beta, which MindSpore's optimizers leave out by default.
    Fault("decay on all", frozenset({"optimizer.decay"}), ("mlp", "rnn", "gated"), _decay_on_all),
    Fault("gradient stopped", frozenset({"gradient.zero"}), ("mlp", "cnn", "autoencoder", "rnn"),
          lambda training: _wrap_middle(training, Stopped)),
    Fault("saturated", frozenset({"activation.saturated", "gradient.zero"}), ("mlp", "mixer"),
          lambda training: _wrap_middle(training, Saturated)),
    Fault("deep sigmoids", frozenset({"gradient.vanishing"}), ("mlp", "rnn"),
          lambda training: _wrap_middle(training, DeepSigmoids)),
    Fault("exploding", frozenset({"gradient.exploding", "loss.diverging"}),
          ("mlp", "rnn", "gated"), _explode, BAD_STEP),
    Fault("spike", frozenset({"loss.spike"}), ("mlp", "cnn", "unet"), _spike, 20, 26),
    Fault("constant loss", frozenset({"loss.constant", "gradient.zero"}), ("mlp", "textcnn"),
          _constant_loss),
    Fault("scale stuck", frozenset({"scale.stuck", "gradient.nonfinite"}), ("mlp", "cnn"),
          _scale_stuck, 0, 20),
    Fault("updates round away", frozenset({"weight.unchanged"}), ("mlp", "mixer"), _tiny_updates),
)  # fmt: skip
