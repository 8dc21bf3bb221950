"""Mends the port's own optimizer for the time of a proof, and notes where it is made.

The user's callable runs as it is; what changes are the arguments that reach the constructor of
MindSpore's optimizer, the values in its parameter groups, the gradients on the way into it, or,
where MindSpore has no such rule, the step of some parameters, computed with MindSpore's operators.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.experimental.optim.optimizer import Optimizer as GroupOptimizer

from isograd.edits import SourceEdit
from isograd.frameworks.common import building_place
from isograd.frameworks.mindspore.call_edits import argument_edits
from isograd.frameworks.rules import Functions, Rule, advance, incoming, rule_from

MINDSPORE = Functions(ops.sqrt, ops.abs, ops.maximum, ops.sign, ops.clamp)

#: What MindSpore's constructors call a field of a rule.
_ARGUMENTS = {
    "momentum": ("momentum",),
    "dampening": ("dampening",),
    "nesterov": ("nesterov", "use_nesterov"),
    "beta1": ("beta1", "betas"),
    "beta2": ("beta2", "betas"),
    "eps": ("eps", "epsilon"),
    "weight_decay": ("weight_decay",),
    "alpha": ("alpha", "decay", "rho"),
    "centered": ("centered",),
    "first_square": ("accum", "initial_accum", "initial_accumulator_value"),
    "lr_decay": ("lr_decay",),
    "amsgrad": ("amsgrad", "use_amsgrad"),
    "maximize": ("maximize",),
}


@dataclass(frozen=True)
class Setting:
    """Fields of a rule for some parameters; lrs: one learning rate for each step."""

    names: frozenset[str]
    values: dict[str, Any]
    lrs: tuple[float, ...] = ()


@dataclass(frozen=True)
class Mending:
    """What is changed of the port's optimizer, as plain values (see `read_mending`).

    add: parameters that are given to the group of another one; factors: on the gradients of each
    step; norm: greatest norm of all gradients together, as torch's clip_grad_norm_ scales to it;
    clamp: greatest size of a gradient's element; inner: call MindSpore's optimizer inside the
    user's wrapper directly; rules: parameters that follow a rule of isograd.
    """

    settings: tuple[Setting, ...] = ()
    add: dict[str, str] = field(default_factory=dict)
    factors: tuple[float, ...] = ()
    norm: float | None = None
    clamp: float | None = None
    inner: bool = False
    rules: dict[str, Rule] = field(default_factory=dict)


def read_mending(plain: dict[str, Any]) -> Mending | None:
    """The mending of plain values; None for an empty one."""
    if not plain:
        return None
    settings = tuple(
        Setting(frozenset(s["names"]), s["values"], tuple(s.get("lrs", ())))
        for s in plain.get("settings", ())
    )
    return Mending(
        settings,
        plain.get("add", {}),
        tuple(plain.get("factors", ())),
        plain.get("norm"),
        plain.get("clamp"),
        bool(plain.get("inner", False)),
        {n: rule_from(r) for n, r in plain.get("rules", {}).items()},
    )


@dataclass
class Noted:
    """Where the optimizer is made, and of which class of MindSpore."""

    place: tuple[str, int] | None = None
    kind: type | None = None

    @property
    def line(self) -> str | None:
        """``file:line``, without folders."""
        return f"{Path(self.place[0]).name}:{self.place[1]}" if self.place else None

    @property
    def name(self) -> str:
        """The class as people write it: `nn.Adam`, `experimental.optim.AdamW`."""
        if self.kind is None:
            return ""
        parts = self.kind.__module__.split(".")[1:]
        package = ".".join(parts[: 2 if parts[:1] != ["nn"] else 1])
        return f"{package}.{self.kind.__name__}"


def setting_edits(noted: Noted, settings: dict[str, Any]) -> tuple[SourceEdit, ...]:
    """The edit of the call that makes the optimizer; nothing where an argument is not plain."""
    if noted.place is None or noted.kind is None:
        return ()
    parameters = inspect.signature(_undecorated(vars(noted.kind)["__init__"])).parameters
    wanted: dict[str, Any] = {}
    for name, value in settings.items():
        names = ("learning_rate", "lr") if name == "lr" else _ARGUMENTS[name]
        own = next((n for n in names if n in parameters), None)
        if own is None:
            return ()
        pair = own == "betas"
        wanted[own] = (settings["beta1"], settings["beta2"]) if pair else value
    return argument_edits(noted.place, noted.kind.__name__, wanted)


def _library_classes() -> list[type]:
    found: list[type] = []
    waiting: list[type] = [nn.Optimizer, GroupOptimizer]
    while waiting:
        kind: Any
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.startswith("mindspore.") and "__init__" in kind.__dict__:
                found.append(kind)
    return list(dict.fromkeys([*found, nn.Optimizer, GroupOptimizer]))


@contextlib.contextmanager
def constructing(mending: Mending | None, parameters: dict[str, Any]) -> Iterator[Noted]:
    """Inside, MindSpore's optimizers are made with mended arguments, and their line is noted."""
    noted, inside, originals = Noted(), [0], dict[type, Any]()

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def made(self: Any, *positional: Any, **keywords: Any) -> None:
            if not inside[0]:
                noted.place = building_place(self, 2)
                noted.kind = next(k for k in type(self).__mro__ if k in originals)
                if mending is not None and (mending.settings or mending.add):
                    positional, keywords = _mended_arguments(
                        self, original, positional, keywords, mending, parameters
                    )
            inside[0] += 1
            try:
                original(self, *positional, **keywords)
            finally:
                inside[0] -= 1

        return made

    for kind in _library_classes():
        originals[kind] = kind.__dict__["__init__"]
        kind.__init__ = wrap(originals[kind])  # type: ignore[misc]
    try:
        yield noted
    finally:
        for kind, original in originals.items():
            kind.__init__ = original  # type: ignore[misc]


def _mended_arguments(
    made: Any,
    original: Callable[..., None],
    positional: tuple[Any, ...],
    keywords: dict[str, Any],
    mending: Mending,
    parameters: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    bound = inspect.signature(_undecorated(original)).bind(made, *positional, **keywords)
    bound.apply_defaults()
    given = bound.arguments
    if "params" not in given:
        raise ValueError(f"{type(made).__name__} is not an optimizer of MindSpore")
    names = {id(p): n for n, p in parameters.items()}
    own_groups = isinstance(made, GroupOptimizer)
    groups = _groups(given["params"], float(given.get("weight_decay") or 0.0), own_groups)
    for missing, like in mending.add.items():
        for group in groups:
            if any(names.get(id(p)) == like for p in group["params"]):
                group["params"] = [*group["params"], parameters[missing]]
    touched = bool(mending.add)
    for setting in mending.settings:
        groups = _split(groups, setting, names)
        inside = [g for g in groups if _holds(g, setting, names)]
        if not inside:
            continue
        touched = True
        for name, value in setting.values.items():
            _set(made, given, inside, name, value, own_groups)
        if setting.lrs and not own_groups:
            _set_lrs(given, groups, inside, setting.lrs)
    if touched:
        given["params"] = groups
    return bound.args[1:], bound.kwargs


def _undecorated(function: Callable[..., None]) -> Callable[..., None]:
    """The function with named arguments: MindSpore's decorators do not keep the signature."""
    if "params" in inspect.signature(function).parameters:
        return function
    for cell in getattr(function, "__closure__", None) or ():
        if inspect.isfunction(cell.cell_contents):
            found = _undecorated(cell.cell_contents)
            if "params" in inspect.signature(found).parameters:
                return found
    return function


def _groups(given: Any, weight_decay: float, own_groups: bool) -> list[dict[str, Any]]:
    """The parameters as groups that say for themselves what the optimizer would do."""
    listed = list(given)
    if listed and isinstance(listed[0], dict):
        return [{**g, "params": list(g["params"])} if "params" in g else dict(g) for g in listed]
    if own_groups or not weight_decay:
        return [{"params": listed}]
    # Without groups MindSpore's nn optimizers decay nothing that is called gamma or beta.
    spared = [p for p in listed if "gamma" in p.name or "beta" in p.name]
    decayed = [p for p in listed if not ("gamma" in p.name or "beta" in p.name)]
    shares = ((decayed, weight_decay), (spared, 0.0))
    return [{"params": part, "weight_decay": share} for part, share in shares if part]


def _holds(group: dict[str, Any], setting: Setting, names: dict[int, str]) -> bool:
    return any(names.get(id(p)) in setting.names for p in group.get("params", ()))


def _split(
    groups: list[dict[str, Any]], setting: Setting, names: dict[int, str]
) -> list[dict[str, Any]]:
    """Groups in which either all parameters have the setting or none."""
    found: list[dict[str, Any]] = []
    for group in groups:
        if "params" not in group:
            found.append(group)
            continue
        concerned = [p for p in group["params"] if names.get(id(p)) in setting.names]
        others = [p for p in group["params"] if names.get(id(p)) not in setting.names]
        found += [{**group, "params": part} for part in (concerned, others) if part]
    return found


def _set(
    made: Any,
    given: dict[str, Any],
    inside: list[dict[str, Any]],
    name: str,
    value: Any,
    own_groups: bool,
) -> None:
    argument = next((a for a in _ARGUMENTS[name] if a in given), None)
    if argument is None:
        raise ValueError(f"{type(made).__name__} has no argument for {name}")
    in_groups = own_groups or argument == "weight_decay"
    for place in inside if in_groups else [given]:
        new = value
        if argument == "betas":
            betas = list(place.get("betas", given["betas"]))
            betas[0 if name == "beta1" else 1] = value
            new = tuple(betas)
        place[argument] = new


def _set_lrs(
    given: dict[str, Any],
    groups: list[dict[str, Any]],
    inside: list[dict[str, Any]],
    lrs: tuple[float, ...],
) -> None:
    value: Any = lrs[0] if len(set(lrs)) == 1 else list(lrs)
    if len(inside) == len([g for g in groups if "params" in g]):
        given["learning_rate"] = value
        for group in inside:
            group.pop("lr", None)
        return
    for group in inside:
        group["lr"] = value


def inner_optimizer(made: Any) -> Any:
    """MindSpore's optimizer that this is or holds; None where that is unclear."""
    kinds = (nn.Optimizer, GroupOptimizer)
    if isinstance(made, kinds):
        return made
    held = [*getattr(made, "__dict__", {}).values(), *getattr(made, "_cells", {}).values()]
    found = {id(v): v for v in held if isinstance(v, kinds)}
    return next(iter(found.values())) if len(found) == 1 else None


class MendedOptimizer:
    """Takes the place of the user's optimizer in a training."""

    def __init__(self, made: Any, mending: Mending, parameters: dict[str, Any]) -> None:
        self._made = made
        self._mending = mending
        self._every = parameters
        self._names = {id(p): n for n, p in parameters.items()}
        self._step = 0
        self._states: dict[str, dict[str, Any]] = {n: {} for n in mending.rules}
        listed = getattr(made, "parameters", None)
        self.parameters = listed
        self._target = inner_optimizer(made) if mending.inner else made
        if self._target is None:
            raise ValueError("no optimizer of MindSpore is found inside the port's")

    def __call__(self, gradients: tuple[Any, ...]) -> None:
        listed = self.parameters
        if listed is None or callable(listed):
            raise ValueError("the port's optimizer does not say which parameters it has")
        share = self._share(gradients)
        seen = [self._changed(g, share) for g in gradients]
        by_id = {id(p): g for p, g in zip(listed, seen, strict=True)}
        before = {n: ms.Tensor(self._every[n].asnumpy()) for n in self._mending.rules}
        self._set_learning_rates()
        target = self._target
        order = getattr(target, "parameters", listed) if self._mending.inner else listed
        step = target if callable(target) else target.step
        step(tuple(by_id[id(p)] for p in order))
        for name, rule in self._mending.rules.items():
            parameter = self._every[name]
            gradient = by_id[id(parameter)]
            gradient = incoming(rule, gradient, gradient, 1.0, 1.0, MINDSPORE)
            state = self._states[name]
            after = advance(rule, self._step, before[name], gradient, state, MINDSPORE)
            parameter.set_data(ms.Tensor(after.asnumpy().astype(parameter.asnumpy().dtype)))
        self._step += 1

    def _share(self, gradients: tuple[Any, ...]) -> float:
        """The factor on all gradients of this step; torch divides by the norm plus 1e-6."""
        factors, norm = self._mending.factors, self._mending.norm
        if factors:
            return factors[min(self._step, len(factors) - 1)]
        if norm is None:
            return 1.0
        squares = sum(float(np.square(g.asnumpy().astype(np.float64)).sum()) for g in gradients)
        return min(1.0, norm / (math.sqrt(squares) + 1e-6))

    def _changed(self, gradient: Any, share: float) -> Any:
        if share != 1.0:
            gradient = gradient * float(np.float32(share))
        if self._mending.clamp is not None:
            gradient = ops.clamp(gradient, -self._mending.clamp, self._mending.clamp)
        return gradient

    def _set_learning_rates(self) -> None:
        inner = inner_optimizer(self._made)
        if not isinstance(inner, GroupOptimizer):
            return
        for setting in self._mending.settings:
            if not setting.lrs:
                continue
            rate = setting.lrs[min(self._step, len(setting.lrs) - 1)]
            for group in inner.param_groups:
                if any(self._names.get(id(p)) in setting.names for p in group["params"]):
                    ops.assign(group["lr"], ms.Tensor(rate, ms.float32))
