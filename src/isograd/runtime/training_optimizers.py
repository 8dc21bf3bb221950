"""torch's optimizers: groups of parameters, a step from `parameter.grad`, state to be kept."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.training_complex_parts import changed_by, state_in_parts, state_joined
from isograd.runtime.training_gradients import no_grad, track
from isograd.runtime.training_recorder import record_gradients

#: Values of a parameter's state by name.
State = dict[str, Any]


class Optimizer:
    """Groups of parameters and their state; a rule of its own stands in `step` or `_update`."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = dict(defaults)
        self.state: dict[Any, State] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        given = [params] if isinstance(params, dict) else list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)
        record_gradients()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Parameters with settings of their own; what is missing is taken from the defaults."""
        group = dict(param_group)
        given = group["params"]
        named = [given] if isinstance(given, ms.Tensor) else list(given)
        parameters = [part[1] if isinstance(part, tuple) else part for part in named]
        held = {id(part) for other in self.param_groups for part in other["params"]}
        if held & {id(part) for part in parameters}:
            raise ValueError("some parameters appear in more than one parameter group")
        group["params"] = parameters
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)
        track(part for part in parameters if isinstance(part, ms.Parameter))

    @property
    def parameters(self) -> list[Any]:
        """The parameters of all groups."""
        return [part for group in self.param_groups for part in group["params"]]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zeros."""
        for parameter in self.parameters:
            held = getattr(parameter, "grad", None)
            if held is not None:
                parameter.grad = None if set_to_none else ops.zeros_like(held)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step with the gradients that the parameters hold; those without one stay."""
        loss = closure() if closure is not None else None
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = getattr(parameter, "grad", None)
                    if gradient is not None:
                        if group.get("maximize"):
                            gradient = -gradient
                        rule = partial(self._update, group=group, state=self.state[parameter])
                        ops.assign(parameter, changed_by(rule, parameter, gradient))
        return loss

    def __call__(self, gradients: Iterable[Any]) -> bool:
        """MindSpore's way: one step with the gradients of all parameters."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        self.step()
        return True

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        """The parameter's next value."""
        raise NotImplementedError("an optimizer defines step or _update")

    # ---- checkpoints

    def state_dict(self) -> dict[str, Any]:
        """The state by the parameters' numbers, and the groups' settings."""
        numbers = {id(part): number for number, part in enumerate(self.parameters)}
        groups = []
        for group in self.param_groups:
            settings = {name: value for name, value in group.items() if name != "params"}
            groups.append({**settings, "params": [numbers[id(part)] for part in group["params"]]})
        state = {numbers[id(part)]: state_joined(part, held) for part, held in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state and the settings of a checkpoint."""
        groups = state_dict["param_groups"]
        sizes = [len(group["params"]) for group in groups]
        if sizes != [len(group["params"]) for group in self.param_groups]:
            raise ValueError("loaded state dict contains parameter groups of other sizes")
        for own, given in zip(self.param_groups, groups, strict=True):
            own.update({name: value for name, value in given.items() if name != "params"})
        parameters = self.parameters
        self.state = defaultdict(dict)
        for number, held in state_dict["state"].items():
            self.state[parameters[int(number)]] = state_in_parts(held)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            shown = sorted(name for name in group if name != "params")
            lines += [f"    {name}: {group[name]}" for name in shown]
        return "\n".join([*lines, ")"])


def _number(value: Any) -> float:
    return float(value.asnumpy()) if isinstance(value, ms.Tensor) else float(value)


def _decayed(parameter: Any, gradient: Any, group: dict[str, Any]) -> Any:
    """The gradient with the penalty on large weights in it."""
    decay = group["weight_decay"]
    return gradient + decay * parameter if decay else gradient


def _mean(state: State, name: str, gradient: Any, beta: float) -> Any:
    """A running mean of the state, moved on."""
    held = state.get(name)
    start = ops.zeros_like(gradient) if held is None else held
    state[name] = start * beta + gradient * (1 - beta)
    return state[name]


def _counted(state: State) -> int:
    state["step"] = int(state.get("step", 0)) + 1
    return int(state["step"])


class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

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

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        gradient = _decayed(parameter, gradient, group)
        momentum = group["momentum"]
        if momentum:
            held = state.get("momentum_buffer")
            moved = gradient + 0
            if held is not None:
                moved = momentum * held + (1 - group["dampening"]) * gradient
            state["momentum_buffer"] = moved
            gradient = gradient + momentum * moved if group["nesterov"] else moved
        return parameter - _number(group["lr"]) * gradient


class Adam(Optimizer):
    """Adam, with decay in the gradient."""

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

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        step, rate = _counted(state), _number(group["lr"])
        first, second = group["betas"]
        value = parameter
        if group["decoupled_weight_decay"]:
            value = parameter * (1 - rate * group["weight_decay"])
        else:
            gradient = _decayed(parameter, gradient, group)
        mean = _mean(state, "exp_avg", gradient, first)
        square = _mean(state, "exp_avg_sq", gradient * gradient, second)
        if group["amsgrad"]:
            held = state.get("max_exp_avg_sq")
            square = square if held is None else ops.maximum(held, square)
            state["max_exp_avg_sq"] = square
        root = ops.sqrt(square) / math.sqrt(1 - second**step) + group["eps"]
        return value - rate / (1 - first**step) * mean / root


class AdamW(Adam):
    """Adam, with decay beside the gradient."""

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


class RMSprop(Optimizer):
    """Gradients over the root of their running mean square."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-08,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay}
        settings |= {"momentum": momentum, "centered": centered, "maximize": maximize}
        super().__init__(params, settings)

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        gradient = _decayed(parameter, gradient, group)
        square = _mean(state, "square_avg", gradient * gradient, group["alpha"])
        if group["centered"]:
            mean = _mean(state, "grad_avg", gradient, group["alpha"])
            square = square - mean * mean
        change = gradient / (ops.sqrt(square) + group["eps"])
        if group["momentum"]:
            held = state.get("momentum_buffer")
            change = change if held is None else group["momentum"] * held + change
            state["momentum_buffer"] = change
        return parameter - _number(group["lr"]) * change


class Adagrad(Optimizer):
    """Gradients over the root of the sum of their squares."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        settings |= {"maximize": maximize, "initial_accumulator_value": initial_accumulator_value}
        super().__init__(params, settings)

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        gradient = _decayed(parameter, gradient, group)
        step = _counted(state)
        rate = _number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        held = state.get("sum")
        if held is None:
            held = ops.zeros_like(gradient) + group["initial_accumulator_value"]
        state["sum"] = held + gradient * gradient
        return parameter - rate * gradient / (ops.sqrt(state["sum"]) + group["eps"])


class Adadelta(Optimizer):
    """Steps in the size of earlier steps."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-06,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        gradient = _decayed(parameter, gradient, group)
        rho, eps = group["rho"], group["eps"]
        square = _mean(state, "square_avg", gradient * gradient, rho)
        held = state.get("acc_delta")
        held = ops.zeros_like(gradient) if held is None else held
        change = ops.sqrt(held + eps) / ops.sqrt(square + eps) * gradient
        state["acc_delta"] = held * rho + change * change * (1 - rho)
        return parameter - _number(group["lr"]) * change


class Adamax(Optimizer):
    """Adam with the greatest gradient in place of the root mean square."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.002,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "maximize": maximize})

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        gradient = _decayed(parameter, gradient, group)
        step = _counted(state)
        first, second = group["betas"]
        mean = _mean(state, "exp_avg", gradient, first)
        size = ops.abs(gradient) + group["eps"]
        held = state.get("exp_inf")
        state["exp_inf"] = size if held is None else ops.maximum(second * held, size)
        return parameter - _number(group["lr"]) / (1 - first**step) * mean / state["exp_inf"]


class NAdam(Optimizer):
    """Adam with Nesterov's momentum."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.002,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        momentum_decay: float = 0.004,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        settings |= {"momentum_decay": momentum_decay, "maximize": maximize}
        super().__init__(params, {**settings, "decoupled_weight_decay": decoupled_weight_decay})

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        step, rate, decay = _counted(state), _number(group["lr"]), group["momentum_decay"]
        first, second = group["betas"]
        value = parameter
        if group["decoupled_weight_decay"]:
            value = parameter * (1 - rate * group["weight_decay"])
        else:
            gradient = _decayed(parameter, gradient, group)
        now = first * (1 - 0.5 * 0.96 ** (step * decay))
        then = first * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
        product = state.get("mu_product", 1.0) * now
        state["mu_product"] = product
        mean = _mean(state, "exp_avg", gradient, first)
        square = _mean(state, "exp_avg_sq", gradient * gradient, second)
        root = ops.sqrt(square / (1 - second**step)) + group["eps"]
        value = value - rate * (1 - now) / (1 - product) * gradient / root
        return value - rate * then / (1 - product * then) * mean / root


class RAdam(Optimizer):
    """Adam whose adaptive rate begins when its variance is known well enough."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        settings |= {"maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, settings)

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        step, rate = _counted(state), _number(group["lr"])
        first, second = group["betas"]
        value = parameter
        if group["decoupled_weight_decay"]:
            value = parameter * (1 - rate * group["weight_decay"])
        else:
            gradient = _decayed(parameter, gradient, group)
        mean = _mean(state, "exp_avg", gradient, first) / (1 - first**step)
        square = _mean(state, "exp_avg_sq", gradient * gradient, second)
        most = 2 / (1 - second) - 1
        length = most - 2 * step * second**step / (1 - second**step)
        if length <= 5:
            return value - rate * mean
        rectified = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        root = ops.sqrt(square) + group["eps"]
        return value - rate * mean * math.sqrt(rectified) * math.sqrt(1 - second**step) / root


class ASGD(Optimizer):
    """Stochastic gradient descent that averages its way."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        lambd: float = 0.0001,
        alpha: float = 0.75,
        t0: float = 1000000.0,
        weight_decay: float = 0,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0}
        super().__init__(params, {**settings, "weight_decay": weight_decay, "maximize": maximize})

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        gradient = _decayed(parameter, gradient, group)
        rate = _number(group["lr"])
        eta, weight = state.get("eta", rate), state.get("mu", 1.0)
        step = _counted(state)
        value = parameter * (1 - group["lambd"] * eta) - eta * gradient
        held = state.get("ax")
        held = ops.zeros_like(gradient) if held is None else held
        state["ax"] = value if weight == 1 else held + (value - held) * weight
        state["eta"] = rate / (1 + group["lambd"] * rate * step) ** group["alpha"]
        state["mu"] = 1 / max(1, step - group["t0"])
        return value


class Rprop(Optimizer):
    """Steps by the sign of the gradient alone."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-06, 50),
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        settings = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, settings)

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        less, more = group["etas"]
        least, most = group["step_sizes"]
        zeros = ops.zeros_like(gradient)
        previous = state.get("prev", zeros)
        size = state.get("step_size", zeros + _number(group["lr"]))
        agreement = ops.sign(gradient * previous)
        factor = ops.select(agreement > 0, zeros + more, zeros + 1)
        factor = ops.select(agreement < 0, zeros + less, factor)
        state["step_size"] = ops.clamp(size * factor, least, most)
        gradient = ops.select(agreement < 0, zeros, gradient)
        state["prev"] = gradient
        return parameter - ops.sign(gradient) * state["step_size"]
