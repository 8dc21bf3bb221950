"""The hypotheses about an optimizer, as data: what each changes of the reference's rule.

A hypothesis sets fields of a `Rule` (a switch) or has unknown numbers that are estimated.  The
order is that of likelihood: where the data cannot tell two apart, the first is named and the
other listed.  `example` is a pair of optimizers that differ by it; the tests run every one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from isograd.diagnose.hypothesis import RARE, Hypothesis, Number, Scale
from isograd.frameworks.rules import Clip, EpsPlace, Kind, Rule


@dataclass(frozen=True)
class RuleHypothesis(Hypothesis):
    """One way in which the port's rule may differ.

    applies: whether it makes sense for the reference's rule.
    fixed: fields of the rule and what they are under it; toggled: switches that are the other way.
    """

    applies: Callable[[Rule], bool]
    fixed: dict[str, Any] = field(default_factory=dict)
    toggled: tuple[str, ...] = ()

    def change(self, rule: Rule, values: tuple[float, ...]) -> Rule:
        """The reference's rule changed so."""
        changes: dict[str, Any] = dict(self.fixed)
        changes |= {name: not getattr(rule, name) for name in self.toggled}
        for number, value in zip(self.numbers, values, strict=True):
            changes[number.name] = value
        steps = [changes.pop(f"lr.{i}", lr) for i, lr in enumerate(rule.lr)]
        factor = changes.pop("lr", 1.0)
        return replace(rule, **changes, lr=tuple(lr * factor for lr in steps))

    def fields(self) -> set[str]:
        """The fields of a rule that this sets."""
        names = {u.name.partition(".")[0] for u in self.numbers}
        return names | set(self.fixed) | set(self.toggled)


_LR = Number("lr", (0.01, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0, 100.0), Scale.LOG)
_SCALE = Number(
    "gradient_scale",
    (2.0**-16, 1 / 1024, 1 / 64, 0.1, 0.5, 2.0, 10.0, 64.0, 1024.0, 2.0**16),
    Scale.LOG,
    (*(2.0**-k for k in range(1, 17)), *(2.0**k for k in range(1, 17)), 0.1, 0.01),
)
_MOMENTUM = Number("momentum", (0.3, 0.7, 0.9, 0.97), Scale.LOGIT, (0.9, 0.95, 0.99, 0.5, 0.8))
_BETA1 = Number("beta1", (0.3, 0.7, 0.9, 0.97), Scale.LOGIT, (0.9, 0.95, 0.5, 0.8, 0.99))
_BETA2 = Number(
    "beta2", (0.7, 0.95, 0.99, 0.999), Scale.LOGIT, (0.999, 0.99, 0.95, 0.98, 0.9, 0.9999)
)
_ALPHA = Number("alpha", (0.7, 0.95, 0.99, 0.999), Scale.LOGIT, (0.99, 0.9, 0.95, 0.999, 0.5))
_EPS = Number(
    "eps",
    (1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2),
    Scale.LOG,
    (1e-8, 1e-6, 1e-5, 1e-7, 1e-10, 1e-12, 1e-4, 1e-3, 1e-2),
)
_DECAY = Number(
    "weight_decay",
    (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5),
    Scale.LOG,
    (1e-4, 5e-4, 1e-2, 0.1, 1e-3, 0.05, 1e-5),
)
_DAMPENING = Number("dampening", (0.1, 0.5, 0.9), Scale.LOGIT, (0.9, 0.1, 0.5))
_FIRST_SQUARE = Number("first_square", (1e-4, 1e-2, 0.1, 1.0), Scale.LOG, (1.0, 0.1, 0.01))
_LR_DECAY = Number("lr_decay", (1e-4, 1e-2, 0.1), Scale.LOG, (0.01, 0.1, 1e-3))
_NORM = Number(
    "clip_at",
    (1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    Scale.LOG,
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
HYPOTHESES: tuple[RuleHypothesis, ...] = (
    RuleHypothesis("frozen", "optimizer.frozen", _always, {"frozen": True}),
    RuleHypothesis(
        "no weight decay", "optimizer.weight_decay", lambda r: r.weight_decay > 0,
        {"weight_decay": 0.0},
    ),
    RuleHypothesis("lr", "optimizer.lr", _always, numbers=(_LR,)),
    RuleHypothesis("weight decay", "optimizer.weight_decay", _always, numbers=(_DECAY,)),
    RuleHypothesis(
        "weight decay of the other way", "optimizer.weight_decay",
        lambda r: r.weight_decay == 0, toggled=("decoupled",), numbers=(_DECAY,),
    ),
    RuleHypothesis("no momentum", "optimizer.momentum", _has_buffer, {"momentum": 0.0}),
    RuleHypothesis(
        "momentum", "optimizer.momentum", _is(Kind.SGD, Kind.RMSPROP), numbers=(_MOMENTUM,)
    ),
    RuleHypothesis("nesterov", "optimizer.nesterov", _sgd_momentum, toggled=("nesterov",)),
    RuleHypothesis(
        "no dampening", "optimizer.dampening", lambda r: _sgd_momentum(r) and r.dampening > 0,
        {"dampening": 0.0},
    ),
    RuleHypothesis("dampening", "optimizer.dampening", _sgd_momentum, numbers=(_DAMPENING,)),
    RuleHypothesis(
        "dampening at once", "optimizer.dampening",
        lambda r: _sgd_momentum(r) and r.dampening > 0, {"damp_first": True},
    ),
    RuleHypothesis(
        "dampening always", "optimizer.dampening", _sgd_momentum, {"damp_first": True},
        numbers=(_DAMPENING,), rank=RARE,
    ),
    RuleHypothesis("beta1", "optimizer.betas", _is(*_WITH_BETAS, Kind.LION), numbers=(_BETA1,)),
    RuleHypothesis("beta2", "optimizer.betas", _is(*_WITH_BETAS, Kind.LION), numbers=(_BETA2,)),
    RuleHypothesis("alpha", "optimizer.alpha", _is(Kind.RMSPROP, Kind.ADADELTA), numbers=(_ALPHA,)),
    RuleHypothesis(
        "eps before correction", "optimizer.eps", _is(Kind.ADAM, Kind.ADAMAX),
        {"eps_place": EpsPlace.RAW},
    ),
    RuleHypothesis(
        "eps inside", "optimizer.eps", _is(Kind.ADAM, Kind.RMSPROP, Kind.ADAGRAD),
        {"eps_place": EpsPlace.ROOT},
    ),
    RuleHypothesis("eps", "optimizer.eps", _is(*_WITH_EPS), numbers=(_EPS,)),
    RuleHypothesis(
        "decoupled", "optimizer.decoupled", lambda r: r.weight_decay > 0, toggled=("decoupled",)
    ),
    RuleHypothesis(
        "no bias correction", "optimizer.bias_correction", _is(Kind.ADAM),
        {"correct_first": False, "correct_second": False},
    ),
    RuleHypothesis(
        "no first bias correction", "optimizer.bias_correction", _is(Kind.ADAM, Kind.ADAMAX),
        {"correct_first": False},
    ),
    RuleHypothesis(
        "no second bias correction", "optimizer.bias_correction", _is(Kind.ADAM, Kind.NADAM),
        {"correct_second": False},
    ),
    RuleHypothesis(
        "empty start", "optimizer.initial_state", lambda r: r.first_square > 0,
        {"first_square": 0.0},
    ),
    RuleHypothesis(
        "initial state", "optimizer.initial_state", _is(*_SQUARED), numbers=(_FIRST_SQUARE,)
    ),
    RuleHypothesis("centered", "optimizer.centered", _is(Kind.RMSPROP), toggled=("centered",)),
    RuleHypothesis("amsgrad", "optimizer.amsgrad", _is(Kind.ADAM), toggled=("amsgrad",)),
    RuleHypothesis("maximize", "optimizer.maximize", _always, toggled=("maximize",)),
    RuleHypothesis("adam nesterov", "optimizer.nesterov", _is(Kind.ADAM), {"nesterov": True}),
    RuleHypothesis(
        "lr in buffer", "optimizer.momentum", _has_buffer, toggled=("lr_in_buffer",),
        rank=RARE,
    ),
    RuleHypothesis("lr decay", "optimizer.lr_decay", _is(Kind.ADAGRAD), numbers=(_LR_DECAY,)),
    RuleHypothesis("not clipped", "optimizer.clip", _always, {"clip": Clip.NONE}),
    RuleHypothesis(
        "clipped by norm", "optimizer.clip", _always, {"clip": Clip.NORM}, numbers=(_NORM,)
    ),
    RuleHypothesis(
        "clipped by value", "optimizer.clip", _always, {"clip": Clip.VALUE}, numbers=(_VALUE,)
    ),
    RuleHypothesis(
        "clipped by parameter", "optimizer.clip", _always, {"clip": Clip.PARAMETER},
        numbers=(_NORM,),
    ),
    RuleHypothesis("gradient scale", "gradient.scale", _always, numbers=(_SCALE,)),
    RuleHypothesis("both betas", "optimizer.betas", _is(*_WITH_BETAS), numbers=(_BETA1, _BETA2)),
    RuleHypothesis(
        "eps before correction, other", "optimizer.eps", _is(Kind.ADAM, Kind.ADAMAX),
        {"eps_place": EpsPlace.RAW}, numbers=(_EPS,),
    ),
    RuleHypothesis(
        "eps inside, other", "optimizer.eps", _is(Kind.ADAM, Kind.RMSPROP, Kind.ADAGRAD),
        {"eps_place": EpsPlace.ROOT}, numbers=(_EPS,),
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


def other_kinds(rule: Rule) -> list[tuple[str, RuleHypothesis]]:
    """Altogether another optimizer, with the reference's learning rate or with its own."""
    found = []
    for name, other in _variants(rule):
        if other.kind is rule.kind:
            continue
        fixed = {k: v for k, v in vars(other).items() if k != "lr"}
        for decay in dict.fromkeys((fixed["weight_decay"], 0.0)):
            for numbers in ((), (_LR,)):
                key = f"kind {name} {decay} {len(numbers)}"
                changed = {**fixed, "weight_decay": decay}
                made = RuleHypothesis(key, "optimizer.kind", _always, changed, numbers=numbers)
                found.append((name, made))
    return found


def schedule(rule: Rule) -> RuleHypothesis:
    """Any learning rate at any step."""
    typical = max(abs(lr) for lr in rule.lr) or 1.0
    numbers = tuple(
        Number(f"lr.{i}", (lr or typical,), Scale.LINEAR) for i, lr in enumerate(rule.lr)
    )
    return RuleHypothesis("schedule", "optimizer.schedule", _always, numbers=numbers)
