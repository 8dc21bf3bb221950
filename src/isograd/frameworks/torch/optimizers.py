"""The reference's optimizer as a rule, and rules replayed on what it was fed.

While stage update feeds gradients, the float64 track notes for every parameter some elements of
the gradient (as given, and as the optimizer's own clipping leaves it) and of the parameter.  A
hypothesis is then a changed `Rule`, computed in float64 and with simulated rounding on those
elements alone.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from isograd.frameworks.base import Arithmetic, Floors, Tensors
from isograd.frameworks.rules import (
    Clip,
    Functions,
    Kind,
    Rule,
    advance,
    incoming,
    rule_from,
)
from isograd.frameworks.torch.arithmetic import computing
from isograd.tensors import UNIT_ROUNDOFF, TensorValue, tensor_value

TORCH = Functions(torch.sqrt, torch.abs, torch.maximum, torch.sign, torch.clamp)

#: Fields of a rule by the keys of torch's parameter groups.
_FIELDS = {
    "momentum": "momentum",
    "dampening": "dampening",
    "nesterov": "nesterov",
    "eps": "eps",
    "weight_decay": "weight_decay",
    "decoupled_weight_decay": "decoupled",
    "alpha": "alpha",
    "rho": "alpha",
    "centered": "centered",
    "initial_accumulator_value": "first_square",
    "lr_decay": "lr_decay",
    "momentum_decay": "momentum_decay",
    "amsgrad": "amsgrad",
    "maximize": "maximize",
}
_KINDS = {
    torch.optim.SGD: Kind.SGD,
    torch.optim.Adam: Kind.ADAM,
    torch.optim.AdamW: Kind.ADAM,
    torch.optim.RMSprop: Kind.RMSPROP,
    torch.optim.Adagrad: Kind.ADAGRAD,
    torch.optim.Adadelta: Kind.ADADELTA,
    torch.optim.Adamax: Kind.ADAMAX,
    torch.optim.NAdam: Kind.NADAM,
}
#: A rule is the reference's where it repeats the float64 track to this share of the way.
_SAME_RULE = 1e-7


def inner_optimizer(made: Any) -> Optimizer | None:
    """The torch optimizer that this is, or the one that it holds; None where that is unclear."""
    if isinstance(made, Optimizer):
        return made
    held = {id(v): v for v in getattr(made, "__dict__", {}).values() if isinstance(v, Optimizer)}
    return next(iter(held.values())) if len(held) == 1 else None


def _known_class(optimizer: Optimizer) -> type | None:
    return next((k for k in type(optimizer).__mro__ if k in _KINDS), None)


@contextlib.contextmanager
def before_step(optimizer: Optimizer, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` whenever torch's own step begins: after hooks and a subclass's own clipping."""
    known = _known_class(optimizer)
    own_step = inspect.unwrap(type(optimizer).step)
    if known is None or own_step.__module__.startswith("torch."):
        handle = optimizer.register_step_pre_hook(lambda *_: act())
        try:
            yield
        finally:
            handle.remove()
        return
    # AdamW inherits its step from Adam: the class that has it is the one to change.
    owner = next(kind for kind in known.__mro__ if "step" in kind.__dict__)
    original = owner.__dict__["step"]

    @functools.wraps(original)
    def step(self: Optimizer, *arguments: Any, **keywords: Any) -> Any:
        if self is optimizer:
            act()
        return original(self, *arguments, **keywords)

    owner.step = step  # type: ignore[attr-defined]
    try:
        yield
    finally:
        owner.step = original  # type: ignore[attr-defined]


def _fields_of(optimizer: Optimizer, group: dict[str, Any]) -> dict[str, Any] | None:
    """A parameter group as fields of a rule; None for an optimizer that is not known."""
    known = _known_class(optimizer)
    if known is None:
        return None
    found = {field: group[key] for key, field in _FIELDS.items() if key in group}
    found = {k: v.item() if isinstance(v, torch.Tensor) else v for k, v in found.items()}
    if "betas" in group:
        found["beta1"], found["beta2"] = (float(b) for b in group["betas"])
    if known is torch.optim.AdamW:
        found["decoupled"] = True
    return {**found, "kind": _KINDS[known], "lr": float(group["lr"])}


@dataclass
class _Watched:
    """What is noted of one parameter, step after step."""

    group: int
    where: torch.Tensor
    count: int
    initial: torch.Tensor
    given: list[torch.Tensor] = field(default_factory=list)
    effective: list[torch.Tensor] = field(default_factory=list)
    after: list[torch.Tensor] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    fields: list[dict[str, Any] | None] = field(default_factory=list)
    rule: Rule | None = None


class UpdateLog:
    """The float64 track's updates, on watched elements only."""

    def __init__(self, model: nn.Module, made: Any, indices: Tensors) -> None:
        self._optimizer = inner_optimizer(made)
        self.parameters: dict[str, _Watched] = {}
        self._tensors: dict[str, nn.Parameter] = {}
        self.steps = 0
        if self._optimizer is None:
            return
        groups = self._optimizer.param_groups
        places = {id(p): i for i, group in enumerate(groups) for p in group["params"]}
        for name, parameter in model.named_parameters():
            if name not in indices or id(parameter) not in places:
                continue
            where = torch.from_numpy(np.array(indices[name].values))
            initial = parameter.detach().reshape(-1)[where].clone()
            self.parameters[name] = _Watched(
                places[id(parameter)], where, parameter.numel(), initial
            )
            self._tensors[name] = parameter

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Note what happens to the parameters in the optimizer's step inside."""
        seen: list[int] = []

        def act() -> None:
            seen.append(1)
            if len(seen) == 1:
                self._note_effective()

        for name, watched in self.parameters.items():
            gradient = self._tensors[name].grad
            if gradient is not None:
                flat = gradient.detach().reshape(-1)
                watched.given.append(flat[watched.where].clone())
                watched.norms.append(float(torch.linalg.vector_norm(flat)))
        if self._optimizer is None:
            yield
            return
        with before_step(self._optimizer, act):
            yield
        self.steps += 1
        for name, watched in self.parameters.items():
            flat = self._tensors[name].detach().reshape(-1)
            watched.after.append(flat[watched.where].clone())
            if len(seen) != 1:
                watched.fields.append(None)

    def _note_effective(self) -> None:
        assert self._optimizer is not None
        for name, watched in self.parameters.items():
            gradient = self._tensors[name].grad
            if gradient is not None:
                watched.effective.append(gradient.detach().reshape(-1)[watched.where].clone())
            group = self._optimizer.param_groups[watched.group]
            watched.fields.append(_fields_of(self._optimizer, group))

    def outline(self) -> dict[str, Any]:
        """The rules by parameter (None where the reference's is not understood), and norms."""
        found: dict[str, Any] = {}
        for name, watched in self.parameters.items():
            watched.rule = self._rule(watched)
            found[name] = {
                "group": watched.group,
                "count": watched.count,
                "rule": watched.rule.plain() if watched.rule else None,
                "norms": watched.norms,
            }
        return found

    def _rule(self, watched: _Watched) -> Rule | None:
        every = [f for f in watched.fields if f is not None]
        complete = len(watched.given) == len(watched.effective) == len(every) == self.steps
        if not complete or not every:
            return None
        rest = {k: v for k, v in every[0].items() if k != "lr"}
        if any({k: v for k, v in f.items() if k != "lr"} != rest for f in every):
            return None
        rule = Rule(lr=tuple(float(f["lr"]) for f in every), **rest)
        value, state = watched.initial, dict[str, Any]()
        for step, (gradient, after) in enumerate(
            zip(watched.effective, watched.after, strict=True)
        ):
            value = advance(rule, step, value, gradient, state, TORCH)
            error = float(torch.linalg.vector_norm(value - after))
            way = float(torch.linalg.vector_norm(after - watched.initial))
            size = float(torch.linalg.vector_norm(after))
            if not error <= _SAME_RULE * way + 1e-13 * size:
                return None
        return rule

    def slices(self, names: list[str]) -> Tensors:
        """``initial.NAME``, and for every step ``given.NAME`` and ``effective.NAME``.

        returns: (watched,) initially and (steps, watched) step by step, float64.
        """
        found: Tensors = {}
        for name in names:
            watched = self.parameters[name]
            found[f"initial.{name}"] = _value(watched.initial)
            found[f"given.{name}"] = _value(torch.stack(watched.given))
            found[f"effective.{name}"] = _value(torch.stack(watched.effective))
        return found

    def measure(
        self,
        rules: dict[str, dict[str, Any]],
        variants: list[Arithmetic],
        floors: Floors,
        keep: bool,
        dtype: str,
    ) -> Tensors:
        """Rules by parameter in the variants, the first of which is the reference.

        ``expected.NAME`` (steps × elements), ``allowed.NAME`` (steps): the largest error of the
        other variants; with keep, ``deviation.I.NAME``: their differences themselves.

        returns: (steps, watched) trajectories and (steps,) allowances, float64.
        """
        found: Tensors = {}
        together: dict[str, list[str]] = {}
        for name, plain in rules.items():
            together.setdefault(repr(plain), []).append(name)
        for names in together.values():
            rule = rule_from(rules[names[0]])
            runs = [self._run(rule, names, v, floors, dtype) for v in variants]
            start = 0
            for name in names:
                stop = start + len(self.parameters[name].where)
                parts = [run[:, start:stop] for run in runs]
                start = stop
                gaps = [part - parts[0] for part in parts[1:]]
                norms = np.stack([np.linalg.norm(gap, axis=1) for gap in gaps])
                unit = UNIT_ROUNDOFF.get(dtype, 0.0)
                floor = unit * np.linalg.norm(parts[0], axis=1) + 1.2e-38
                found[f"expected.{name}"] = tensor_value(parts[0])
                found[f"allowed.{name}"] = tensor_value(np.maximum(norms.max(0), floor))
                if keep:
                    for i, gap in enumerate(gaps):
                        found[f"deviation.{i}.{name}"] = tensor_value(gap)
        return found

    def _run(
        self, rule: Rule, names: list[str], variant: Arithmetic, floors: Floors, dtype: str
    ) -> Any:
        kind = torch.float64 if variant.float64 else getattr(torch, dtype)
        if variant.operator_noise:
            rule = replace(_in_float32(rule), low_powers=not variant.biased)
        every = [self.parameters[n] for n in names]
        value = torch.cat([w.initial for w in every]).to(kind)
        state: dict[str, Any] = {}
        result = []
        with torch.no_grad(), computing(variant, floors):
            for step in range(self.steps):
                given = torch.cat([w.given[step] for w in every]).to(kind)
                effective = torch.cat([w.effective[step] for w in every]).to(kind)
                total = self._total_norm(step) * (1.0 + self._norm_error(variant))
                own = given
                if rule.clip is Clip.PARAMETER:
                    own = torch.cat(
                        [torch.full(w.where.shape, w.norms[step], dtype=kind) for w in every]
                    )
                gradient = incoming(rule, given, effective, total, own, TORCH)
                value = advance(rule, step, value, gradient, state, TORCH)
                result.append(value.detach().double().numpy().copy())
        return np.stack(result)

    def _total_norm(self, step: int) -> float:
        return math.sqrt(sum(w.norms[step] ** 2 for w in self.parameters.values() if w.norms))

    def _norm_error(self, variant: Arithmetic) -> float:
        """The relative error of a norm that is summed one square after the other."""
        if not variant.operator_noise:
            return 0.0
        terms = max(w.count for w in self.parameters.values())
        error = 2.0**-24 * (1.0 + math.sqrt(terms / 3.0) / 2.0)
        return error if variant.biased else -error


def _in_float32(rule: Rule) -> Rule:
    """The rule of an implementation that holds its numbers in float32.

    MindSpore's does, and 1 - beta2 is then off by 1.3e-5 of itself for beta2 = 0.999, and so is
    the bias correction of the first steps.
    """
    names = ("beta1", "beta2", "alpha", "momentum", "weight_decay", "eps")
    changed: dict[str, Any] = {n: float(np.float32(getattr(rule, n))) for n in names}
    return replace(rule, **changed)


def _value(tensor: torch.Tensor) -> TensorValue:
    return tensor_value(tensor.detach().double().numpy())


class RuleSteps:
    """Lets chosen parameters of a training track follow given rules instead of its optimizer's."""

    def __init__(self, model: nn.Module, made: Any, rules: dict[str, Rule]) -> None:
        self._optimizer = inner_optimizer(made)
        self._every = dict(model.named_parameters())
        self._rules = {n: r for n, r in rules.items() if n in self._every}
        self._states: dict[str, dict[str, Any]] = {n: {} for n in self._rules}
        self._step = 0

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Around the optimizer's own step: overwrite what it did to the chosen parameters."""
        if self._optimizer is None or not self._rules:
            yield
            return
        before = {n: self._every[n].detach().clone() for n in self._rules}
        given = {n: p.grad.detach().clone() for n, p in self._every.items() if p.grad is not None}
        effective: dict[str, torch.Tensor] = {}

        def act() -> None:
            for name in self._rules:
                gradient = self._every[name].grad
                if gradient is not None:
                    effective[name] = gradient.detach().clone()

        with before_step(self._optimizer, act):
            yield
        norms = {n: float(torch.linalg.vector_norm(g.float())) for n, g in given.items()}
        # A port that leaves parameters alone does not count their gradients either.
        counted = [v for n, v in norms.items() if n not in self._rules or not self._rules[n].frozen]
        total = math.sqrt(sum(v * v for v in counted))
        with torch.no_grad():
            for name, rule in self._rules.items():
                if name not in given:
                    continue
                gradient = incoming(
                    rule, given[name], effective.get(name, given[name]), total, norms[name], TORCH
                )
                state = self._states[name]
                after = advance(rule, self._step, before[name], gradient, state, TORCH)
                self._every[name].copy_(after)
        self._step += 1
