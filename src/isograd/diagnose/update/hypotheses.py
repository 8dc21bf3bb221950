"""The hypotheses about an optimizer, as data: what each changes of the reference's rule.

A hypothesis sets fields of a `Rule` (a switch) or has unknown numbers that are estimated.  The
order is that of likelihood: where the data cannot tell two apart, the first is named and the
other listed.  `example` is a pair of optimizers that differ by it; the tests run every one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from isograd.frameworks.rules import Clip, EpsPlace, Kind, Rule


class Scale(Enum):
    """On which scale a number is searched."""

    LINEAR = "linear"
    LOG = "log"
    LOGIT = "logit"


@dataclass(frozen=True)
class Unknown:
    """A number to be estimated.

    name: a field of `Rule`; "lr" is a factor on all learning rates, "lr.3" that of step 3.
    grid: where to start; usual: values that people write, preferred where they fit as well.
    """

    name: str
    scale: Scale
    grid: tuple[float, ...]
    usual: tuple[float, ...] = ()


@dataclass(frozen=True)
class Hypothesis:
    """One way in which the port's rule may differ.

    applies: whether it makes sense for the reference's rule.
    rare: named only where nothing else explains as much.
    """

    key: str
    cause: str
    applies: Callable[[Rule], bool]
    fixed: dict[str, Any] = field(default_factory=dict)
    toggled: tuple[str, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    rare: bool = False

    def apply(self, rule: Rule, values: tuple[float, ...]) -> Rule:
        """The reference's rule changed so."""
        changes: dict[str, Any] = dict(self.fixed)
        changes |= {name: not getattr(rule, name) for name in self.toggled}
        for unknown, value in zip(self.unknowns, values, strict=True):
            changes[unknown.name] = value
        steps = [changes.pop(f"lr.{i}", lr) for i, lr in enumerate(rule.lr)]
        factor = changes.pop("lr", 1.0)
        return replace(rule, **changes, lr=tuple(lr * factor for lr in steps))

    def fields(self) -> set[str]:
        """The fields of a rule that this sets."""
        names = {u.name.partition(".")[0] for u in self.unknowns}
        return names | set(self.fixed) | set(self.toggled)


_LR = Unknown("lr", Scale.LOG, (0.01, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0, 100.0))
_SCALE = Unknown(
    "gradient_scale",
    Scale.LOG,
    (2.0**-16, 1 / 1024, 1 / 64, 0.1, 0.5, 2.0, 10.0, 64.0, 1024.0, 2.0**16),
    (*(2.0**-k for k in range(1, 17)), *(2.0**k for k in range(1, 17)), 0.1, 0.01),
)
_MOMENTUM = Unknown("momentum", Scale.LOGIT, (0.3, 0.7, 0.9, 0.97), (0.9, 0.95, 0.99, 0.5, 0.8))
_BETA1 = Unknown("beta1", Scale.LOGIT, (0.3, 0.7, 0.9, 0.97), (0.9, 0.95, 0.5, 0.8, 0.99))
_BETA2 = Unknown(
    "beta2", Scale.LOGIT, (0.7, 0.95, 0.99, 0.999), (0.999, 0.99, 0.95, 0.98, 0.9, 0.9999)
)
_ALPHA = Unknown("alpha", Scale.LOGIT, (0.7, 0.95, 0.99, 0.999), (0.99, 0.9, 0.95, 0.999, 0.5))
_EPS = Unknown(
    "eps",
    Scale.LOG,
    (1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
    (1e-8, 1e-6, 1e-5, 1e-7, 1e-10, 1e-12, 1e-4, 1e-3, 1e-2),
)
_DECAY = Unknown(
    "weight_decay",
    Scale.LOG,
    (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5),
    (1e-4, 5e-4, 1e-2, 0.1, 1e-3, 0.05, 1e-5),
)
_DAMPENING = Unknown("dampening", Scale.LOGIT, (0.1, 0.5, 0.9), (0.9, 0.1, 0.5))
_FIRST_SQUARE = Unknown("first_square", Scale.LOG, (1e-4, 1e-2, 0.1, 1.0), (1.0, 0.1, 0.01))
_LR_DECAY = Unknown("lr_decay", Scale.LOG, (1e-4, 1e-2, 0.1), (0.01, 0.1, 1e-3))
_NORM = Unknown(
    "clip_at",
    Scale.LOG,
    (1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    (1.0, 0.5, 5.0, 10.0, 0.1, 2.0, 0.25, 0.01),
)
_VALUE = replace(_NORM, grid=(1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0))

_SQUARED = (Kind.ADAM, Kind.RMSPROP, Kind.ADAGRAD, Kind.ADADELTA, Kind.NADAM)
_WITH_BETAS = (Kind.ADAM, Kind.ADAMAX, Kind.NADAM)
_WITH_EPS = (*_SQUARED, Kind.ADAMAX)


def _is(*kinds: Kind) -> Callable[[Rule], bool]:
    return lambda rule: rule.kind in kinds


def _always(rule: Rule) -> bool:
    return True


def _has_buffer(rule: Rule) -> bool:
    return rule.kind in (Kind.SGD, Kind.RMSPROP) and rule.momentum > 0


def _sgd_momentum(rule: Rule) -> bool:
    return rule.kind is Kind.SGD and rule.momentum > 0


#: In the order of likelihood.
HYPOTHESES: tuple[Hypothesis, ...] = (
    Hypothesis("frozen", "optimizer.frozen", _always, {"frozen": True}),
    Hypothesis(
        "no weight decay", "optimizer.weight_decay", lambda r: r.weight_decay > 0,
        {"weight_decay": 0.0},
    ),
    Hypothesis("lr", "optimizer.lr", _always, unknowns=(_LR,)),
    Hypothesis("weight decay", "optimizer.weight_decay", _always, unknowns=(_DECAY,)),
    Hypothesis(
        "weight decay of the other way", "optimizer.weight_decay",
        lambda r: r.weight_decay == 0, toggled=("decoupled",), unknowns=(_DECAY,),
    ),
    Hypothesis("no momentum", "optimizer.momentum", _has_buffer, {"momentum": 0.0}),
    Hypothesis(
        "momentum", "optimizer.momentum", _is(Kind.SGD, Kind.RMSPROP), unknowns=(_MOMENTUM,)
    ),
    Hypothesis("nesterov", "optimizer.nesterov", _sgd_momentum, toggled=("nesterov",)),
    Hypothesis(
        "no dampening", "optimizer.dampening", lambda r: _sgd_momentum(r) and r.dampening > 0,
        {"dampening": 0.0},
    ),
    Hypothesis("dampening", "optimizer.dampening", _sgd_momentum, unknowns=(_DAMPENING,)),
    Hypothesis(
        "dampening at once", "optimizer.dampening",
        lambda r: _sgd_momentum(r) and r.dampening > 0, {"damp_first": True},
    ),
    Hypothesis(
        "dampening always", "optimizer.dampening", _sgd_momentum, {"damp_first": True},
        unknowns=(_DAMPENING,), rare=True,
    ),
    Hypothesis("beta1", "optimizer.betas", _is(*_WITH_BETAS, Kind.LION), unknowns=(_BETA1,)),
    Hypothesis("beta2", "optimizer.betas", _is(*_WITH_BETAS, Kind.LION), unknowns=(_BETA2,)),
    Hypothesis("alpha", "optimizer.alpha", _is(Kind.RMSPROP, Kind.ADADELTA), unknowns=(_ALPHA,)),
    Hypothesis(
        "eps before correction", "optimizer.eps", _is(Kind.ADAM, Kind.ADAMAX),
        {"eps_place": EpsPlace.RAW},
    ),
    Hypothesis(
        "eps inside", "optimizer.eps", _is(Kind.ADAM, Kind.RMSPROP, Kind.ADAGRAD),
        {"eps_place": EpsPlace.ROOT},
    ),
    Hypothesis("eps", "optimizer.eps", _is(*_WITH_EPS), unknowns=(_EPS,)),
    Hypothesis(
        "decoupled", "optimizer.decoupled", lambda r: r.weight_decay > 0, toggled=("decoupled",)
    ),
    Hypothesis(
        "no bias correction", "optimizer.bias_correction", _is(Kind.ADAM),
        {"correct_first": False, "correct_second": False},
    ),
    Hypothesis(
        "no first bias correction", "optimizer.bias_correction", _is(Kind.ADAM, Kind.ADAMAX),
        {"correct_first": False},
    ),
    Hypothesis(
        "no second bias correction", "optimizer.bias_correction", _is(Kind.ADAM, Kind.NADAM),
        {"correct_second": False},
    ),
    Hypothesis(
        "empty start", "optimizer.initial_state", lambda r: r.first_square > 0,
        {"first_square": 0.0},
    ),
    Hypothesis(
        "initial state", "optimizer.initial_state", _is(*_SQUARED), unknowns=(_FIRST_SQUARE,)
    ),
    Hypothesis("centered", "optimizer.centered", _is(Kind.RMSPROP), toggled=("centered",)),
    Hypothesis("amsgrad", "optimizer.amsgrad", _is(Kind.ADAM), toggled=("amsgrad",)),
    Hypothesis("maximize", "optimizer.maximize", _always, toggled=("maximize",)),
    Hypothesis("adam nesterov", "optimizer.nesterov", _is(Kind.ADAM), {"nesterov": True}),
    Hypothesis(
        "lr in buffer", "optimizer.momentum", _has_buffer, toggled=("lr_in_buffer",),
        rare=True,
    ),
    Hypothesis("lr decay", "optimizer.lr_decay", _is(Kind.ADAGRAD), unknowns=(_LR_DECAY,)),
    Hypothesis("not clipped", "optimizer.clip", _always, {"clip": Clip.NONE}),
    Hypothesis(
        "clipped by norm", "optimizer.clip", _always, {"clip": Clip.NORM}, unknowns=(_NORM,)
    ),
    Hypothesis(
        "clipped by value", "optimizer.clip", _always, {"clip": Clip.VALUE}, unknowns=(_VALUE,)
    ),
    Hypothesis(
        "clipped by parameter", "optimizer.clip", _always, {"clip": Clip.PARAMETER},
        unknowns=(_NORM,),
    ),
    Hypothesis("gradient scale", "gradient.scale", _always, unknowns=(_SCALE,)),
    Hypothesis("both betas", "optimizer.betas", _is(*_WITH_BETAS), unknowns=(_BETA1, _BETA2)),
    Hypothesis(
        "eps before correction, other", "optimizer.eps", _is(Kind.ADAM, Kind.ADAMAX),
        {"eps_place": EpsPlace.RAW}, unknowns=(_EPS,),
    ),
    Hypothesis(
        "eps inside, other", "optimizer.eps", _is(Kind.ADAM, Kind.RMSPROP, Kind.ADAGRAD),
        {"eps_place": EpsPlace.ROOT}, unknowns=(_EPS,),
    ),
)  # fmt: skip


def _variants(rule: Rule) -> list[tuple[str, Rule]]:
    """Optimizers of the other kinds with the hyper-parameters that people leave them."""
    base = Rule(
        Kind.SGD,
        rule.lr,
        weight_decay=rule.weight_decay,
        clip=rule.clip,
        clip_at=rule.clip_at,
        maximize=rule.maximize,
    )
    betas: dict[str, Any] = {"beta1": rule.beta1, "beta2": rule.beta2, "eps": rule.eps}
    return [
        ("SGD", base),
        ("SGD with momentum", replace(base, momentum=rule.momentum or 0.9)),
        ("SGD with Nesterov momentum", replace(base, momentum=rule.momentum or 0.9, nesterov=True)),
        ("Adam", replace(base, kind=Kind.ADAM)),
        ("Adam", replace(base, kind=Kind.ADAM, eps_place=EpsPlace.RAW)),
        ("AdamW", replace(base, kind=Kind.ADAM, decoupled=True)),
        ("AdamW", replace(base, kind=Kind.ADAM, decoupled=True, weight_decay=0.01)),
        ("RMSprop", replace(base, kind=Kind.RMSPROP)),
        ("RMSprop", replace(base, kind=Kind.RMSPROP, alpha=0.9)),
        (
            "RMSprop that starts at 1",
            replace(
                base, kind=Kind.RMSPROP, alpha=0.9, first_square=1.0,
                eps=1e-10, eps_place=EpsPlace.ROOT,
            ),
        ),
        ("Adagrad", replace(base, kind=Kind.ADAGRAD, eps=1e-10)),
        (
            "Adagrad that starts at 0.1",
            replace(base, kind=Kind.ADAGRAD, eps=1e-10, first_square=0.1),
        ),
        ("Adamax", replace(base, kind=Kind.ADAMAX, **betas)),
        (
            "Adamax with eps outside the maximum",
            replace(base, kind=Kind.ADAMAX, eps_place=EpsPlace.RAW, **betas),
        ),
        ("NAdam", replace(base, kind=Kind.NADAM, **betas)),
        (
            "NAdam with decoupled decay",
            replace(base, kind=Kind.NADAM, decoupled=True, **betas),
        ),
        ("Adadelta", replace(base, kind=Kind.ADADELTA, alpha=0.9, eps=1e-6)),
        ("Lion", replace(base, kind=Kind.LION, decoupled=True, beta2=0.99)),
    ]  # fmt: skip


def other_kinds(rule: Rule) -> list[tuple[str, Hypothesis]]:
    """Altogether another optimizer, with the reference's learning rate or with its own."""
    found = []
    for name, other in _variants(rule):
        if other.kind is rule.kind:
            continue
        fixed = {k: v for k, v in vars(other).items() if k != "lr"}
        for decay in dict.fromkeys((fixed["weight_decay"], 0.0)):
            for unknowns in ((), (_LR,)):
                key = f"kind {name} {decay} {len(unknowns)}"
                changed = {**fixed, "weight_decay": decay}
                made = Hypothesis(key, "optimizer.kind", _always, changed, unknowns=unknowns)
                found.append((name, made))
    return found


def schedule(rule: Rule) -> Hypothesis:
    """Any learning rate at any step."""
    typical = max(abs(lr) for lr in rule.lr) or 1.0
    unknowns = tuple(
        Unknown(f"lr.{i}", Scale.LINEAR, (lr or typical,)) for i, lr in enumerate(rule.lr)
    )
    return Hypothesis("schedule", "optimizer.schedule", _always, unknowns=unknowns)
