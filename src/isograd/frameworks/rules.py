"""Optimizers as plain rules: what each of the known ones does to one parameter, in any arithmetic.

The same lines run on numpy arrays (the search for a cause), on torch tensors in float64 and with
simulated rounding (the envelope of a hypothesis) and on MindSpore's tensors (the proof), so the
rules say with operators and five functions what torch.optim 2.13 does, plus the switches that
torch has not: where MindSpore's optimizers put eps, start their averages, or correct bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Elements of a tensor that are watched while the optimizers run: enough for the search and the
#: envelope of a rule that works element by element, and bounded for large networks.
WATCHED_ELEMENTS = 2048


class Kind(str, Enum):
    """The optimizers that are known; the values are the names of torch's classes."""

    SGD = "SGD"
    ADAM = "Adam"
    RMSPROP = "RMSprop"
    ADAGRAD = "Adagrad"
    ADADELTA = "Adadelta"
    ADAMAX = "Adamax"
    NADAM = "NAdam"
    LION = "Lion"


class EpsPlace(str, Enum):
    """Where eps is added to the root of the mean square.

    CORRECTED: to the bias-corrected root (torch); RAW: to the root before its correction, the
    "epsilon hat" of Kingma and Ba (MindSpore's nn.Adam); ROOT: under the root.
    """

    CORRECTED = "outside the root, after bias correction"
    RAW = "outside the root, before bias correction"
    ROOT = "inside the root"


class Clip(str, Enum):
    """What is done to the gradients before the rule sees them."""

    REFERENCE = "as in the reference"
    NONE = "not clipped"
    NORM = "by the global norm"
    VALUE = "by value"
    PARAMETER = "by the norm of each parameter"


@dataclass(frozen=True)
class Rule:
    """One optimizer's rule for one parameter; names and meanings as in torch.optim.

    lr: one learning rate for each step.
    first_square: what the mean square (or the sum of squares) starts at.
    damp_first: dampening also at the first step, where torch has none.
    lr_in_buffer: the momentum buffer collects lr times the direction.
    clip_at: greatest norm or value; gradient_scale: a factor on the gradients.
    low_powers: the powers of bias correction are kept in float32, as MindSpore does.
    """

    kind: Kind
    lr: tuple[float, ...]
    momentum: float = 0.0
    dampening: float = 0.0
    nesterov: bool = False
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    eps_place: EpsPlace = EpsPlace.CORRECTED
    correct_first: bool = True
    correct_second: bool = True
    weight_decay: float = 0.0
    decoupled: bool = False
    alpha: float = 0.99
    centered: bool = False
    first_square: float = 0.0
    lr_decay: float = 0.0
    momentum_decay: float = 0.004
    amsgrad: bool = False
    maximize: bool = False
    damp_first: bool = False
    lr_in_buffer: bool = False
    clip: Clip = Clip.REFERENCE
    clip_at: float = 1.0
    gradient_scale: float = 1.0
    frozen: bool = False
    low_powers: bool = False

    def lr_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0; the last one holds on."""
        return self.lr[min(step, len(self.lr) - 1)]

    def correction(self, beta: float, step: int) -> float:
        """What an average of a share beta lacks after this step, counted from 0."""
        if not self.low_powers:
            return 1.0 - beta ** (step + 1)
        power = one = np.float32(1.0)
        for _ in range(step + 1):
            power = np.float32(power * np.float32(beta))
        return float(one - power)

    def plain(self) -> dict[str, Any]:
        """As a mapping of plain values, which crosses the pipe."""
        return {
            name: list(value) if isinstance(value, tuple) else getattr(value, "value", value)
            for name, value in vars(self).items()
        }


def rule_from(plain: dict[str, Any]) -> Rule:
    """The rule of `Rule.plain`."""
    made = Rule(**{**plain, "lr": tuple(plain["lr"]), "kind": Kind(plain["kind"])})
    return replace(made, eps_place=EpsPlace(made.eps_place), clip=Clip(made.clip))


@dataclass(frozen=True)
class Functions:
    """What a rule needs besides operators, for one kind of array."""

    sqrt: Callable[[Any], Any]
    absolute: Callable[[Any], Any]
    maximum: Callable[[Any, Any], Any]
    sign: Callable[[Any], Any]
    clamp: Callable[[Any, float, float], Any]


NUMPY = Functions(np.sqrt, np.abs, np.maximum, np.sign, np.clip)


def watched(gradient: NDArray[Any]) -> NDArray[np.int64]:
    """Flat indices of the elements to watch, evenly spread over those with a gradient.

    Of an embedding few rows have one; elsewhere nothing would be seen of the averages.

    gradient: any shape and float dtype.
    returns: (watched,) int64.
    """
    flat = gradient.reshape(-1)
    if flat.size <= WATCHED_ELEMENTS:
        return np.arange(flat.size)
    chosen = np.linspace(0, flat.size - 1, WATCHED_ELEMENTS).astype(np.int64)
    if np.count_nonzero(flat[chosen]) >= WATCHED_ELEMENTS // 2:
        return chosen
    alive = np.flatnonzero(flat)
    if not alive.size:
        return chosen
    count = min(alive.size, WATCHED_ELEMENTS // 2)
    some = alive[np.linspace(0, alive.size - 1, count).astype(np.int64)]
    together: NDArray[np.int64] = np.unique(np.concatenate([some, chosen[::2]]))
    return together


def incoming(
    rule: Rule, given: Any, effective: Any, total_norm: float, own_norm: Any, functions: Functions
) -> Any:
    """The gradient that the rule sees.

    given: as computed; effective: what the reference's optimizer made of it.
    total_norm: norm of all gradients together; own_norm: norm of this parameter's.
    The coefficient is that of torch.nn.utils.clip_grad_norm_.
    """
    scale = rule.gradient_scale
    if rule.clip is Clip.REFERENCE:
        return effective * scale if scale != 1.0 else effective
    found = given * scale if scale != 1.0 else given
    if rule.clip is Clip.NORM:
        return found * min(1.0, rule.clip_at / (abs(scale) * total_norm + 1e-6))
    if rule.clip is Clip.VALUE:
        return functions.clamp(found, -rule.clip_at, rule.clip_at)
    if rule.clip is Clip.PARAMETER:
        factor = rule.clip_at / (abs(scale) * own_norm + 1e-6)
        alone = isinstance(factor, (int, float))
        return found * (min(1.0, factor) if alone else functions.clamp(factor, 0.0, 1.0))
    return found


def advance(
    rule: Rule, step: int, value: Any, gradient: Any, state: dict[str, Any], functions: Functions
) -> Any:
    """The parameter after one step, counted from 0; `state` is carried from step to step."""
    if rule.frozen:
        return value
    lr = rule.lr_at(step)
    if rule.maximize:
        gradient = -gradient
    if rule.weight_decay and rule.decoupled:
        value = value * (1.0 - lr * rule.weight_decay)
    elif rule.weight_decay:
        gradient = gradient + value * rule.weight_decay
    change = _CHANGES[rule.kind](rule, step, lr, gradient, state, functions)
    return value - change


def _sgd(
    rule: Rule, step: int, lr: float, gradient: Any, state: dict[str, Any], f: Functions
) -> Any:
    if not rule.momentum:
        return gradient * lr
    if rule.lr_in_buffer:
        gradient = gradient * lr
    if "buffer" in state:
        buffer = state["buffer"] * rule.momentum + gradient * (1.0 - rule.dampening)
    else:
        buffer = gradient * (1.0 - rule.dampening) if rule.damp_first else gradient
    state["buffer"] = buffer
    direction = gradient + buffer * rule.momentum if rule.nesterov else buffer
    return direction if rule.lr_in_buffer else direction * lr


def _average(state: dict[str, Any], key: str, new: Any, share: float, start: float = 0.0) -> Any:
    before = state.get(key, start)
    state[key] = before * share + new * (1.0 - share)
    return state[key]


def _adam(
    rule: Rule, step: int, lr: float, gradient: Any, state: dict[str, Any], f: Functions
) -> Any:
    first = _average(state, "first", gradient, rule.beta1)
    second = _average(state, "second", gradient * gradient, rule.beta2, rule.first_square)
    if rule.amsgrad:
        second = state["greatest"] = f.maximum(state.get("greatest", second), second)
    correct1 = rule.correction(rule.beta1, step) if rule.correct_first else 1.0
    correct2 = rule.correction(rule.beta2, step) if rule.correct_second else 1.0
    if rule.nesterov:
        first = first * rule.beta1 + gradient * (1.0 - rule.beta1)
    if rule.eps_place is EpsPlace.ROOT:
        below = f.sqrt(second * (1.0 / correct2) + rule.eps)
    elif rule.eps_place is EpsPlace.RAW:
        below = (f.sqrt(second) + rule.eps) * (1.0 / math.sqrt(correct2))
    else:
        below = f.sqrt(second) * (1.0 / math.sqrt(correct2)) + rule.eps
    return first / below * (lr / correct1)


def _rmsprop(
    rule: Rule, step: int, lr: float, gradient: Any, state: dict[str, Any], f: Functions
) -> Any:
    second = _average(state, "second", gradient * gradient, rule.alpha, rule.first_square)
    if rule.centered:
        first = _average(state, "first", gradient, rule.alpha)
        # Rounding may leave a variance below zero.
        second = f.maximum(second - first * first, second * 0.0)
    if rule.eps_place is EpsPlace.ROOT:
        below = f.sqrt(second + rule.eps)
    else:
        below = f.sqrt(second) + rule.eps
    direction = gradient / below
    if not rule.momentum:
        return direction * lr
    if rule.lr_in_buffer:
        direction = direction * lr
    buffer = direction
    if "buffer" in state:
        buffer = state["buffer"] * rule.momentum + direction
    state["buffer"] = buffer
    return buffer if rule.lr_in_buffer else buffer * lr


def _adagrad(
    rule: Rule, step: int, lr: float, gradient: Any, state: dict[str, Any], f: Functions
) -> Any:
    second = state.get("second", rule.first_square) + gradient * gradient
    state["second"] = second
    rate = lr / (1.0 + step * rule.lr_decay)
    if rule.eps_place is EpsPlace.ROOT:
        return gradient / f.sqrt(second + rule.eps) * rate
    return gradient / (f.sqrt(second) + rule.eps) * rate


def _adadelta(
    rule: Rule, step: int, lr: float, gradient: Any, state: dict[str, Any], f: Functions
) -> Any:
    second = _average(state, "second", gradient * gradient, rule.alpha, rule.first_square)
    travelled = state.get("travelled", second * 0.0)
    change = f.sqrt(travelled + rule.eps) / f.sqrt(second + rule.eps) * gradient
    state["travelled"] = travelled * rule.alpha + change * change * (1.0 - rule.alpha)
    return change * lr


def _adamax(
    rule: Rule, step: int, lr: float, gradient: Any, state: dict[str, Any], f: Functions
) -> Any:
    first = _average(state, "first", gradient, rule.beta1)
    size = f.absolute(gradient)
    inside = rule.eps_place is EpsPlace.CORRECTED
    if inside:
        size = size + rule.eps
    if "greatest" in state:
        size = f.maximum(state["greatest"] * rule.beta2, size)
    state["greatest"] = size
    correct = rule.correction(rule.beta1, step) if rule.correct_first else 1.0
    return first / (size if inside else size + rule.eps) * (lr / correct)


def _nadam(
    rule: Rule, step: int, lr: float, gradient: Any, state: dict[str, Any], f: Functions
) -> Any:
    first = _average(state, "first", gradient, rule.beta1)
    second = _average(state, "second", gradient * gradient, rule.beta2, rule.first_square)
    now = rule.beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * rule.momentum_decay))
    then = rule.beta1 * (1.0 - 0.5 * 0.96 ** ((step + 2) * rule.momentum_decay))
    product = state["product"] = state.get("product", 1.0) * now
    correct2 = rule.correction(rule.beta2, step) if rule.correct_second else 1.0
    below = f.sqrt(second * (1.0 / correct2)) + rule.eps
    ahead = first / below * (lr * then / (1.0 - product * then))
    return gradient / below * (lr * (1.0 - now) / (1.0 - product)) + ahead


def _lion(
    rule: Rule, step: int, lr: float, gradient: Any, state: dict[str, Any], f: Functions
) -> Any:
    before = state.get("first", 0.0)
    direction = f.sign(before * rule.beta1 + gradient * (1.0 - rule.beta1))
    _average(state, "first", gradient, rule.beta2)
    return direction * lr


_CHANGES: dict[Kind, Callable[..., Any]] = {
    Kind.SGD: _sgd,
    Kind.ADAM: _adam,
    Kind.RMSPROP: _rmsprop,
    Kind.ADAGRAD: _adagrad,
    Kind.ADADELTA: _adadelta,
    Kind.ADAMAX: _adamax,
    Kind.NADAM: _nadam,
    Kind.LION: _lion,
}
