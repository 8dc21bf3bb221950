"""torch's optimizers in a step that MindSpore compiles: `optimizer(gradients)` inside `jit`.

Groups, settings, schedules and `state_dict` are torch's.  A number that is assigned to a setting
(`group["lr"] = 0.1`) goes into a Parameter that the compiled step reads: nothing is compiled again.
torch leaves a parameter as it is where the loss does not depend on it; MindSpore's gradient is zero
there, so that its weight decay still acts.
"""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.training_complex_parts import (
    is_complex,
    joined,
    parts_of,
    state_in_parts,
    state_joined,
)

OTHER = "It is part of the compiled step; convert with --eager to change it in the training."
_NUMBER: list[int] = []


def unique_name(kind: str) -> str:
    """A name that no other one has: names of a graph's Parameters have to differ."""
    _NUMBER.append(len(_NUMBER))
    return f"{kind}{_NUMBER[-1]}"


def name_apart(parameters: Any) -> None:
    """Give different parameters different names: a graph and a ParameterTuple hold none twice.

    MindSpore 2.10 names a parameter by its place in its network and refuses a second one
    ("already exists"); state_dict and load_state_dict go by places, so that files stay as they are.
    """
    taken: set[str] = set()
    for one in {id(part): part for part in parameters}.values():
        name, number = one.name, 2
        while one.name in taken:
            one.name = f"network_{number}.{name}"
            number += 1
        taken.add(one.name)


class Group(dict[str, Any]):
    """A group's settings; what the compiled step reads of them is written on assignment."""

    written: Any = None

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if self.written is not None:
            self.written(name)


class GraphOptimizer(nn.Cell):  # type: ignore[misc]
    """Groups of parameters and their state; its rule is defined by the class of an optimizer.

    switches: the settings whose parts of the rule are left out of the step where they are zero.
    weights: what the rule changes: the parameters, of a complex one its real and imaginary parts.
    """

    switches: tuple[str, ...] = ()

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        self.defaults = dict(defaults)
        given = [params] if isinstance(params, dict) else list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        self.param_groups = [self._group(group) for group in groups]
        learned = [
            (part, number)
            for number, group in enumerate(self.param_groups)
            for part in group["params"]
            if part.requires_grad
        ]
        self.prefix = unique_name("optimizer")
        name_apart(part for part, _ in learned)
        self.learned = ms.ParameterTuple([part for part, _ in learned])
        self.has_parts = tuple(is_complex(part) for part, _ in learned)
        self.weights = ms.ParameterTuple(
            [
                self._made(f"parts.{number}", parts_of(part)) if self.has_parts[number] else part
                for number, (part, _) in enumerate(learned)
            ]
        )
        self.group_of = tuple(number for _, number in learned)
        self.rules = tuple(self.rule(group) for group in self.param_groups)
        self.scalars = ms.ParameterTuple(
            [
                self._made(f"scalars.{number}", self._numbers(group))
                for number, group in enumerate(self.param_groups)
            ]
        )
        self.kept = max(map(self.state_names, self.param_groups), key=len)
        self.is_taken = False
        self.first, self.second, self.third = (self._state(place) for place in range(3))
        self.steps = self._made("steps", ms.Tensor(0.0, ms.float32))
        self.held = ms.ParameterTuple([])
        for number, group in enumerate(self.param_groups):
            group.written = _writer(self, number)

    def _group(self, given: dict[str, Any]) -> Group:
        group = Group({**self.defaults, **given})
        several = group["params"]
        named = [several] if isinstance(several, ms.Tensor) else list(several)
        group["params"] = [part[1] if isinstance(part, tuple) else part for part in named]
        return group

    def _state(self, place: int) -> Any:
        changed = self.weights if place < len(self.kept) else ()
        zeros = [ops.zeros_like(part) for part in changed]
        made = [self._made(f"{place}.{number}", value) for number, value in enumerate(zeros)]
        return ms.ParameterTuple(made)

    def _made(self, name: str, value: Any) -> Any:
        return ms.Parameter(value, name=f"{self.prefix}.{name}", requires_grad=False)

    def _numbers(self, group: dict[str, Any]) -> Any:
        return ms.Tensor([float(value) for value in self.numbers(group)], ms.float32)

    def write(self, number: int, name: str) -> None:
        """Give the compiled step a group's numbers.  Raises RuntimeError for another rule."""
        group = self.param_groups[number]
        if self.rule(group) != self.rules[number] and not self.is_taken:
            self._rule_anew()
        elif self.rule(group) != self.rules[number]:
            raise RuntimeError(f"{name} of the optimizer cannot become {group[name]!r}. {OTHER}")
        ops.assign(self.scalars[number], self._numbers(group))

    def _rule_anew(self) -> None:
        """Take another rule, with room for what it keeps: no step has been made with the old."""
        self.rules = tuple(self.rule(group) for group in self.param_groups)
        kept = max(map(self.state_names, self.param_groups), key=len)
        if kept != self.kept:
            self.kept, self.prefix = kept, unique_name("optimizer")
            self.first, self.second, self.third = (self._state(place) for place in range(3))

    @property
    def parameters(self) -> Any:
        """The parameters that learn, in the order of their gradients.

        Raises RuntimeError where another parameter learns than when the optimizer was made.
        """
        now = [part for group in self.param_groups for part in group["params"]]
        if [id(part) for part in now if part.requires_grad] != list(map(id, self.learned)):
            raise RuntimeError(f"other parameters learn than when {self.prefix} was made. {OTHER}")
        self.is_taken = True  # a step that is made now is compiled with the rules that there are
        return self.learned

    def construct(self, gradients: Any) -> Any:
        """One step: each parameter and its state change by the rule of its group."""
        steps = self.steps + 1.0
        ops.assign(self.steps, steps)
        shared = [
            self.shared([scalars[place] for place in range(scalars.shape[0])], rule, steps)
            for scalars, rule in zip(self.scalars, self.rules)  # noqa: B905  # a graph takes no strict
        ]
        for number in range(len(self.learned)):
            group = self.group_of[number]
            given, weight = gradients[number], self.weights[number]
            if self.has_parts[number]:
                ops.assign(weight, parts_of(self.learned[number]))
                given = parts_of(given)
            gradient = given.astype(weight.dtype)
            self.change(number, gradient, shared[group], self.rules[group], steps)
            if self.has_parts[number]:
                ops.assign(self.learned[number], joined(weight))
        return steps

    # ---- the rule

    def state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """What is kept for each parameter of a group, by torch's names."""
        raise NotImplementedError

    def rule(self, group: dict[str, Any]) -> tuple[bool, ...]:
        """Which of the rule's parts the step is compiled with."""
        return tuple([bool(group[name]) for name in self.switches])

    def numbers(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the step reads of a group."""
        raise NotImplementedError

    def shared(self, numbers: Any, rule: Any, steps: Any) -> Any:
        """What the changes of a group's parameters read: computed, and compiled, once."""
        return numbers

    def change(self, number: int, gradient: Any, numbers: Any, rule: Any, steps: Any) -> Any:
        """One parameter's step."""
        raise NotImplementedError

    # ---- gradients that several batches add to

    def hold(self) -> None:
        """Make room for gradients that are added up before a step."""
        if not len(self.held):
            zeros = [ops.zeros_like(part) for part in self.learned]
            made = [self._made(f"held.{number}", value) for number, value in enumerate(zeros)]
            self.held = ms.ParameterTuple(made)

    def accumulate(self, gradients: Any) -> Any:
        """Add gradients to those that are held."""
        for number in range(len(self.held)):
            ops.assign(self.held[number], _added(self.held[number], gradients[number]))
        return self.steps

    def replace_held(self, gradients: Any) -> Any:
        """Hold these gradients in place of those that are held."""
        for number in range(len(self.held)):
            ops.assign(self.held[number], _alike(gradients[number], self.held[number]))
        return self.steps

    def with_held(self, gradients: Any) -> tuple[Any, ...]:
        """Gradients with those that are held."""
        return tuple(map(_added, self.held, gradients))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients that are held."""
        for part in self.held:
            ops.assign(part, ops.zeros_like(part))

    # ---- checkpoints

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        """The state by the parameters' numbers and the groups' settings, as torch keeps them."""
        everything = [part for group in self.param_groups for part in group["params"]]
        numbers = {id(part): number for number, part in enumerate(everything)}
        places = [numbers[id(part)] for part in self.learned]
        state = {}
        if float(self.steps.asnumpy()):
            columns = (self.first, self.second, self.third)[: len(self.kept)]
            for place, *values in zip(places, *columns, strict=True):
                held = [value.value().copy() for value in values]
                own = {"step": int(self.steps.asnumpy()), **dict(zip(self.kept, held, strict=True))}
                state[place] = state_joined(everything[place], own)
        groups = []
        for group in self.param_groups:
            settings = {name: value for name, value in group.items() if name != "params"}
            groups.append({**settings, "params": [numbers[id(part)] for part in group["params"]]})
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], *_: Any) -> None:
        """Take over the state and the settings of a checkpoint."""
        given = state_dict["param_groups"]
        sizes = [len(group["params"]) for group in given]
        if sizes != [len(group["params"]) for group in self.param_groups]:
            raise ValueError("loaded state dict contains parameter groups of other sizes")
        for own, settings in zip(self.param_groups, given, strict=True):
            for name, value in settings.items():
                if name != "params":
                    own[name] = value
        everything = [part for group in self.param_groups for part in group["params"]]
        places = {id(part): number for number, part in enumerate(everything)}
        state = {int(number): held for number, held in state_dict["state"].items()}
        columns = (self.first, self.second, self.third)[: len(self.kept)]
        steps = 0.0
        for row, part in enumerate(self.learned):
            held = state_in_parts(state.get(places[id(part)], {}))
            steps = max(steps, float(held.get("step", 1.0 if held else 0.0)))
            for name, column in zip(self.kept, columns, strict=True):
                value = held.get(name)
                made = ops.zeros_like(column[row]) if value is None else ms.Tensor(value)
                ops.assign(column[row], made.astype(column[row].dtype))
        ops.assign(self.steps, ms.Tensor(steps, ms.float32))


def _writer(optimizer: GraphOptimizer, number: int) -> Any:
    def written(name: str) -> None:
        optimizer.write(number, name)

    return written


class GraphSGD(GraphOptimizer):
    """torch.optim.SGD: momentum begins with the first gradient, undamped."""

    switches = ("weight_decay", "momentum", "dampening", "nesterov", "maximize")

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        settings = {"lr": lr, "momentum": momentum, "dampening": dampening}
        settings |= {"weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize}
        super().__init__(params, settings)

    def state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """What is kept for each parameter of a group, by torch's names."""
        return ("momentum_buffer",) if group["momentum"] else ()

    def numbers(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the step reads of a group."""
        return (group["lr"], group["weight_decay"], group["momentum"], 1 - group["dampening"])

    def change(self, number: int, gradient: Any, numbers: Any, rule: Any, steps: Any) -> Any:
        """One parameter's step."""
        weight = self.weights[number]
        if rule[4]:
            gradient = -gradient
        if rule[0]:
            gradient = gradient + numbers[1] * weight
        if rule[1]:
            added = gradient
            if rule[2]:
                added = ops.where(steps > 1.5, numbers[3], ops.ones_like(numbers[3])) * gradient
            moved = numbers[2] * self.first[number] + added
            ops.assign(self.first[number], moved)
            gradient = gradient + numbers[2] * moved if rule[3] else moved
        return ops.assign(weight, weight - numbers[0] * gradient)


class GraphAdam(GraphOptimizer):
    """torch.optim.Adam: eps is added to the corrected root, the decay to the gradient.

    `mindspore.nn.Adam` adds eps before the correction.  One minus a power is -expm1, exact in
    float32 for the first steps, too.  MindSpore's kernel, six times as fast as the rule's operators
    on a CPU, corrects nothing: it is given the corrected rate, eps and decay.
    """

    switches = ("weight_decay", "decoupled_weight_decay", "amsgrad", "maximize")
    is_decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        settings |= {"amsgrad": amsgrad, "maximize": maximize}
        settings["decoupled_weight_decay"] = decoupled_weight_decay or self.is_decoupled
        super().__init__(params, settings)
        self.kernel = ops.AdamWeightDecay()

    def state_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """What is kept for each parameter of a group, by torch's names."""
        return ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ()))

    def numbers(self, group: dict[str, Any]) -> tuple[float, ...]:
        """What the step reads of a group, computed in float64."""
        rate, decay = float(group["lr"]), float(group["weight_decay"])
        first, second = (float(beta) for beta in group["betas"])
        logs = (_logarithm(first), _logarithm(second))
        left = 1 - rate * decay
        # The kernel takes one less beta in float32.
        singles = (_logarithm(float(np.float32(beta))) for beta in group["betas"])
        own = (rate, decay, left, first, 1 - first, second, 1 - second, *logs, group["eps"])
        return (*own, *singles)

    def shared(self, numbers: Any, rule: Any, steps: Any) -> Any:
        """A group's numbers, and the rate, eps and decay that the kernel is given."""
        mean, root = -ops.expm1(steps * numbers[10]), ops.sqrt(-ops.expm1(steps * numbers[11]))
        rate = numbers[0] * root / mean
        decay = numbers[1] * mean / root if rule[0] and rule[1] else 0.0 * rate
        return (*numbers, rate, numbers[9] * root, decay)

    def change(self, number: int, gradient: Any, numbers: Any, rule: Any, steps: Any) -> Any:
        """One parameter's step."""
        weight = self.weights[number]
        if rule[3]:
            gradient = -gradient
        if rule[0] and not rule[1]:
            gradient = gradient + numbers[1] * weight
        if weight.dtype == ms.float32 and not rule[2]:
            moments = self.first[number], self.second[number]
            rate, eps, decay = numbers[12], numbers[13], numbers[14]
            return self.kernel(weight, *moments, rate, numbers[3], numbers[5], eps, decay, gradient)
        value = weight * numbers[2] if rule[0] and rule[1] else weight
        mean = self.first[number] * numbers[3] + gradient * numbers[4]
        square = self.second[number] * numbers[5] + gradient * gradient * numbers[6]
        ops.assign(self.first[number], mean)
        ops.assign(self.second[number], square)
        if rule[2]:
            square = ops.maximum(self.third[number], square)
            ops.assign(self.third[number], square)
        root = ops.sqrt(square) / ops.sqrt(-ops.expm1(steps * numbers[8])) + numbers[9]
        rate = numbers[0] / -ops.expm1(steps * numbers[7])
        return ops.assign(weight, value - rate * mean / root)


def _added(held: Any, gradient: Any) -> Any:
    return held + _alike(gradient, held)


def _alike(gradient: Any, held: Any) -> Any:
    return gradient if gradient.dtype == held.dtype else gradient.astype(held.dtype)


def _logarithm(beta: float) -> float:
    return math.log(beta) if beta else -math.inf


class GraphAdamW(GraphAdam):
    """torch.optim.AdamW."""

    is_decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class GradientDescent(nn.Cell):  # type: ignore[misc]
    """Gradient descent written by hand: each parameter less the rate times its gradient."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(auto_prefix=False)
        learning = [part for part in parameters if part.requires_grad]
        name_apart(learning)
        self.parameters = ms.ParameterTuple(learning)

    def construct(self, gradients: Any, rate: Any) -> Any:
        """One step."""
        for number in range(len(self.parameters)):
            change = (gradients[number] * rate).astype(self.parameters[number].dtype)
            ops.assign_sub(self.parameters[number], change)
        return rate
