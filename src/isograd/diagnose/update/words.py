"""Explanations in words: what the port's optimizer does, and what it should do instead."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from isograd.diagnose.update.advice import class_advice, settings_of, switch_advice
from isograd.diagnose.update.hypotheses import RuleHypothesis
from isograd.diagnose.update.parts import Blame
from isograd.diagnose.update.problem import Clipping
from isograd.diagnose.update.search import Explanation
from isograd.frameworks.rules import Clip, EpsPlace, Rule

_SAME_LR = 1e-4
#: Rates below this share of the greatest are the rounding of an estimate of zero.
_NO_LR = 1e-6
_MOST_NAMES = 4

#: What a field is called where it is a number.
_LABELS = {
    "momentum": "momentum",
    "dampening": "dampening",
    "eps": "eps",
    "weight_decay": "weight decay",
    "alpha": "alpha",
    "first_square": "initial mean square",
    "lr_decay": "lr_decay",
}


@dataclass(frozen=True)
class Words:
    """A difference in words, with both sides' values.

    settings: arguments of the optimizer as they should be, where the difference is just that.
    """

    text: str
    reference: float | str | None
    port: float | str | None
    fix: str
    settings: dict[str, Any] = field(default_factory=dict)


def explanation_words(
    explanation: Explanation, rule: Rule, clipping: Clipping, kind: str = ""
) -> list[Words]:
    """What an explanation says of parameters with this rule, for each of its hypotheses.

    kind: MindSpore's class that the port uses, as `nn.Adam`; "" where it is not known.
    """
    parts: list[Words] = []
    values = explanation.values
    for member in explanation.combination.members:
        count = len(member.numbers)
        there = member.change(rule, values[:count])
        if member.id == "optimizer.clip":
            parts.append(_clip(clipping, there))
        else:
            words = _member(explanation, member, rule, there)
            advice = class_advice(kind, member, rule)
            settings = settings_of(member, rule, there) if advice is None else {}
            parts.append(replace(words, fix=advice or words.fix, settings=settings))
        values = values[count:]
    return parts


def number(value: float) -> str:
    """A number as a person would write it."""
    text = f"{value:.6g}"
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else text


def _member(explanation: Explanation, member: RuleHypothesis, ours: Rule, theirs: Rule) -> Words:
    cause = member.id
    if cause == "optimizer.frozen":
        return Words(
            "the parameters never move", "updated", "never updated",
            "let the optimizer update them",
        )  # fmt: skip
    if cause == "optimizer.kind":
        return _kind(explanation, ours, theirs)
    if cause == "optimizer.lr":
        return _lr(ours, theirs)
    if cause == "optimizer.schedule":
        return _schedule(ours.lr, theirs.lr)
    if cause == "gradient.scale":
        factor = theirs.gradient_scale
        shown = f"1/{number(1 / factor)}" if 0 < factor < 0.2 else number(factor)
        return Words(
            f"gradients are {shown} times those given", 1.0, factor,
            "feed the gradients unscaled",
        )  # fmt: skip
    if cause == "optimizer.betas":
        first, second = _betas(ours), _betas(theirs)
        return Words(
            f"betas {second} instead of {first}",
            first,
            second,
            f"betas={first} instead of {second}",
        )
    if cause == "optimizer.eps":
        return _eps(ours, theirs)
    return _plain(member, ours, theirs)


def _plain(member: RuleHypothesis, ours: Rule, theirs: Rule) -> Words:
    switch = _SWITCHES.get(member.name)
    if switch is not None:
        on = not getattr(ours, member.toggled[0]) if member.toggled else True
        reference, port = switch if on else switch[::-1]
        is_on = bool(member.toggled and getattr(ours, member.toggled[0])) or member.name in _WITHOUT
        advice = switch_advice(member, ours, is_on)
        text = f"{port} instead of {reference}"
        if member.name in _WITHOUT:
            text = f"the optimizer has {port}; the reference's optimizer has it"
        return Words(text, reference, port, advice)
    changed_field = next(
        name
        for name in (*(u.name for u in member.numbers), *member.fixed)
        if getattr(ours, name) != getattr(theirs, name) or name == "dampening"
    )
    label = _LABELS.get(changed_field, changed_field.replace("_", " "))
    first, second = getattr(ours, changed_field), getattr(theirs, changed_field)
    changed = f"{number(second)} instead of {number(first)}"
    written = f"{number(first)} instead of {number(second)}"
    if changed_field == "first_square":
        label = "initial accumulator" if ours.kind.value == "Adagrad" else label
    if changed_field == "weight_decay" and theirs.decoupled != ours.decoupled:
        changed += (
            ", decoupled from the gradient" if theirs.decoupled else ", added to the gradient"
        )
    also = ", from the first step on" if theirs.damp_first and not ours.damp_first else ""
    return Words(f"{label} {changed}{also}", first, second, f"{label.replace(' ', '_')}={written}")


#: Switches by which the port lacks what the reference has.
_WITHOUT = ("no bias correction", "no first bias correction", "no second bias correction")
#: Reference's and port's words for a switch that is off in the reference.
_SWITCHES = {
    "nesterov": ("plain momentum", "Nesterov momentum"),
    "adam nesterov": ("plain Adam", "Nesterov momentum"),
    "decoupled": ("decay added to the gradient (L2)", "decay decoupled from the gradient"),
    "no bias correction": ("bias correction", "no bias correction"),
    "no first bias correction": (
        "bias correction",
        "no bias correction of the average gradient",
    ),
    "no second bias correction": ("bias correction", "no bias correction of the mean square"),
    "centered": ("the uncentered mean square", "the centered mean square"),
    "amsgrad": ("plain Adam", "AMSGrad"),
    "maximize": ("descent", "ascent (maximize)"),
    "lr in buffer": (
        "lr applied to the momentum buffer",
        "lr collected inside the momentum buffer",
    ),
    "dampening at once": ("dampening from the second step on", "dampening from the first step on"),
}


def _betas(rule: Rule) -> str:
    return f"({number(rule.beta1)}, {number(rule.beta2)})"


def _eps(ours: Rule, theirs: Rule) -> Words:
    if ours.eps_place is theirs.eps_place:
        first, second = number(ours.eps), number(theirs.eps)
        return Words(f"eps {second} instead of {first}", ours.eps, theirs.eps,
                     f"eps={first} instead of {second}")  # fmt: skip
    value = f" {number(theirs.eps)}" if theirs.eps != ours.eps else ""
    text = f"eps{value} is added {_place(theirs)} instead of {_place(ours)}"
    advice = f"an optimizer that adds eps={number(ours.eps)} {_place(ours)}"
    if ours.kind.value == "Adam" and theirs.eps_place is EpsPlace.RAW:
        advice += ", as mindspore.experimental.optim.AdamW does"
        if ours.weight_decay and not ours.decoupled:
            advice += ", with weight_decay=0.0 and the decay added to the gradients"
    return Words(text, _placed(ours), _placed(theirs), advice)


def _place(rule: Rule) -> str:
    place = rule.eps_place.value
    return place if rule.kind.value in ("Adam", "Adamax") else place.partition(",")[0]


def _placed(rule: Rule) -> str:
    return f"{number(rule.eps)} {_place(rule)}"


def _lr(ours: Rule, theirs: Rule) -> Words:
    factor = next((b / a for a, b in zip(ours.lr, theirs.lr, strict=True) if a), 1.0)
    if len(set(ours.lr)) == 1:
        first, second = ours.lr[0], theirs.lr[0]
        text = f"lr {number(second)} instead of {number(first)}"
        return Words(text, first, second, f"lr={number(first)} instead of {number(second)}")
    peak = max(range(len(ours.lr)), key=lambda i: abs(ours.lr[i]))
    text = f"lr {number(factor)} times the reference's at every step"
    text += f" ({number(theirs.lr[peak])} instead of {number(ours.lr[peak])} at step {peak})"
    return Words(text, 1.0, factor, f"divide lr by {number(factor)}")


def schedule_shift(ours: tuple[float, ...], theirs: tuple[float, ...]) -> int | None:
    """By how many steps the port is ahead of the reference's schedule, where it is just that."""
    size = max(abs(lr) for lr in ours) or 1.0
    count = len(ours)
    for shift in (1, -1, 2, -2, 3, -3):
        pairs = [(ours[t + shift], theirs[t]) for t in range(count) if 0 <= t + shift < count]
        if len(pairs) < max(2, count - abs(shift)) or len({a for a, _ in pairs}) < 2:
            continue
        if all(abs(a - b) <= _SAME_LR * size for a, b in pairs):
            return shift
    return None


def _schedule(ours: tuple[float, ...], theirs: tuple[float, ...]) -> Words:
    peak = max(abs(lr) for lr in (*ours, *theirs))
    theirs = tuple(0.0 if abs(lr) <= _NO_LR * peak else lr for lr in theirs)
    listed = "[" + ", ".join(number(lr) for lr in ours) + "]"
    found = "[" + ", ".join(f"{lr:.4g}" for lr in theirs) + "]"
    size = max(abs(lr) for lr in theirs) or 1.0
    shift = schedule_shift(ours, theirs)
    if shift is not None:
        steps = f"{abs(shift)} step{'s' if abs(shift) > 1 else ''}"
        way = "ahead of" if shift > 0 else "behind"
        text = f"the learning rate schedule is {steps} {way} the reference's"
        back = "back" if shift > 0 else "forward"
        return Words(text, listed, found, f"move the schedule {back} by {steps}")
    if len(set(ours)) > 1 and max(theirs) - min(theirs) <= _SAME_LR * size:
        text = f"the learning rate stays at {number(theirs[0])} instead of following the schedule"
        return Words(text, listed, found, f"follow the learning rates {listed}")
    factors = [b / a if a else (math.inf if b else 1.0) for a, b in zip(ours, theirs, strict=True)]
    by_step = ", ".join(f"{f:.4g}" for f in factors)
    text = f"the learning rates of the steps are {by_step} times the reference's"
    return Words(text, listed, found, f"follow the learning rates {listed}")


def _clip(ours: Clipping, theirs: Rule) -> Words:
    first = _clipped(ours.clip, ours.at)
    second = _clipped(theirs.clip, theirs.clip_at)
    if theirs.clip is Clip.NONE and ours.at and ours.factors and min(ours.factors) > 0.0:
        # A limit that these gradients stay below does nothing here, and would look the same.
        second += f" (up to a global norm of {ours.at / min(ours.factors):.3g})"
    advice = f"gradients {first}" if ours.clip is not Clip.NONE else "do not clip the gradients"
    return Words(f"gradients {second} instead of {first}", first, second, advice)


def _clipped(clip: Clip, at: float | None) -> str:
    if clip is Clip.NONE:
        return "not clipped"
    if clip is Clip.REFERENCE:
        return "clipped as in the reference"
    return f"clipped {clip.value}" + (f" at {number(at)}" if at is not None else "")


def _kind(explanation: Explanation, ours: Rule, theirs: Rule) -> Words:
    def named(rule: Rule) -> str:
        if rule.kind.value == "Adam" and rule.decoupled and rule.weight_decay:
            return "AdamW"
        return rule.kind.value

    own = f" with lr {number(theirs.lr[0])}" if explanation.values else ""
    second, first = explanation.kind or named(theirs), named(ours)
    return Words(f"{second}{own} instead of {first}", first, f"{second}{own}", f"use {first}")


def places(blame: Blame, group_sizes: dict[int, int]) -> str:
    """The parameters of a blame: ``group 1 (12 parameters: bn1.weight, …)``."""
    count = len(blame.names)
    silent = len(blame.silent)
    noun = "parameter" if count == 1 else "parameters"
    listed = some_names(blame.names)
    if len(group_sizes) > 1 and len(blame.groups) == 1:
        group = blame.groups[0]
        of = "" if count + silent == group_sizes[group] else f" of {group_sizes[group]}"
        return f"group {group} ({count}{of} {noun}: {listed})"
    total = sum(group_sizes.values())
    if count + silent == total and count > 1:
        return f"all parameters ({listed})"
    return f"{count} {noun} ({listed})"


def some_names(names: Iterable[str]) -> str:
    """The first names; an ellipsis for more."""
    found = list(names)
    return ", ".join(found[:_MOST_NAMES]) + (", …" if len(found) > _MOST_NAMES else "")
