"""What to write instead of an optimizer that follows another rule, by the class that the port uses.

MindSpore's optimizers differ from torch's in ways that no argument mends: then another class is
named.
"""

from __future__ import annotations

from typing import Any

from isograd.diagnose.update.hypotheses import RuleHypothesis
from isograd.frameworks.rules import Rule

_ADAMW = "mindspore.experimental.optim.AdamW"
_EPS = "{kind} adds eps before the bias correction; use " + _ADAMW + "{decay}"

#: By MindSpore's class and the hypothesis' key: what it does, and what does as torch.
_CLASSES = {
    ("AdamWeightDecay", "no bias correction"): (
        "nn.AdamWeightDecay has no bias correction; use " + _ADAMW
    ),
    ("Adam", "eps before correction"): _EPS,
    ("Adam", "eps before correction, other"): _EPS,
    ("RMSProp", "empty start"): (
        "nn.RMSProp starts its mean square at 1, torch at 0; use isograd.runtime's RMSprop"
    ),
    ("RMSProp", "initial state"): (
        "nn.RMSProp starts its mean square at 1, torch at 0; use isograd.runtime's RMSprop"
    ),
}
#: Executed on MindSpore 2.10: this class takes amsgrad and computes without it.
_IGNORES_AMSGRAD = "experimental.optim.Adam"
_CORRECTED = (f"use an optimizer with bias correction, as {_ADAMW} has it", "")
#: By the hypothesis' key, whatever the class: in the reference on, and off.
_SWITCHES = {
    "nesterov": ("turn Nesterov momentum on", "turn Nesterov momentum off"),
    "adam nesterov": ("use NAdam", "use Adam without Nesterov momentum"),
    "decoupled": (
        f"use {_ADAMW}, which decays weights apart from the gradient",
        "add the decay to the gradient: nn.Adam with weight_decay, not AdamW",
    ),
    "no bias correction": _CORRECTED,
    "no first bias correction": _CORRECTED,
    "no second bias correction": _CORRECTED,
    "centered": ("centre the mean square", "do not centre the mean square"),
    "amsgrad": ("turn AMSGrad on", "turn AMSGrad off"),
    "maximize": ("maximize the loss", "minimize the loss"),
    "lr in buffer": (
        "collect lr inside the momentum buffer",
        "apply lr to the momentum buffer when the weights move",
    ),
    "dampening at once": (
        "dampen from the first step on",
        "dampen from the second step on: torch takes the first gradient whole",
    ),
}


def switch_advice(member: RuleHypothesis, ours: Rule, is_on: bool) -> str:
    """What to do about a switch, where the port's class is not known."""
    return _SWITCHES[member.name][0 if is_on else 1]


def class_advice(kind: str, member: RuleHypothesis, ours: Rule) -> str | None:
    """What to use instead of a class of MindSpore that cannot follow the reference's rule.

    kind: the class as `nn.Adam` or `experimental.optim.Adam`.
    """
    if member.name == "amsgrad" and ours.amsgrad and kind.endswith(_IGNORES_AMSGRAD):
        if ours.weight_decay and not ours.decoupled:
            return f"{_IGNORES_AMSGRAD} ignores amsgrad; use nn.Adam with use_amsgrad=True"
        without = "" if ours.weight_decay else " and weight_decay=0.0"
        return f"{_IGNORES_AMSGRAD} ignores amsgrad; use {_ADAMW} with amsgrad=True{without}"
    found = _CLASSES.get((kind.rpartition(".")[2], member.name))
    if found is None:
        return None
    decay = "" if ours.weight_decay and ours.decoupled else " with weight_decay=0.0"
    if ours.weight_decay and not ours.decoupled and "{decay}" in found:
        return None  # AdamW would decay otherwise
    return found.format(kind=kind, decay=decay)


def settings_of(member: RuleHypothesis, ours: Rule, theirs: Rule) -> dict[str, Any]:
    """Arguments of the optimizer as the reference has them, by the fields of a rule.

    Empty where the difference is no argument: the place of eps, a bias correction, a schedule.
    """
    fields = {f for f in member.fields() if getattr(ours, f, None) != getattr(theirs, f, None)}
    if not fields or not fields <= _ARGUMENTS:
        return {}
    if fields & {"beta1", "beta2"}:
        fields |= {"beta1", "beta2"}
    if "lr" in fields:
        if len(set(ours.lr)) > 1:
            return {}
        return {"lr": ours.lr[0]} | {f: getattr(ours, f) for f in fields - {"lr"}}
    return {f: getattr(ours, f) for f in fields}


_ARGUMENTS = frozenset(
    """lr momentum dampening nesterov beta1 beta2 eps weight_decay alpha centered first_square
    lr_decay amsgrad maximize""".split()
)
