"""torch's optimizers for weights that are matrices: factored, orthogonalised, or by rows."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.training_optimizers import Optimizer, State

#: The distance from 1 to the next number of a dtype.
_EPSILONS = {ms.float16: 2.0**-10, ms.bfloat16: 2.0**-7, ms.float32: 2.0**-23}


def _moved(state: State, name: str, values: Any, share: float) -> Any:
    """A running mean of the state, which begins with zeros, moved by a share."""
    held = state.get(name)
    state[name] = values * share if held is None else held + share * (values - held)
    return state[name]


def _root_mean_square(values: Any) -> float:
    return math.sqrt(float(ops.square(values).sum()) / values.size)


def _refuse(name: str, value: Any, is_right: bool) -> None:
    if not is_right:
        raise ValueError(f"Invalid {name}: {value}")


class Adafactor(Optimizer):
    """torch.optim.Adafactor: of a matrix's squares the means of rows and columns are kept."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **_: Any,
    ) -> None:
        _refuse("beta2_decay", beta2_decay, beta2_decay <= 0)
        _refuse("clipping threshold d", d, d >= 1)
        settings = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d}
        super().__init__(params, {**settings, "weight_decay": weight_decay, "maximize": maximize})

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        step = state["step"] = int(state.get("step", 0)) + 1
        rate, (least, least_scale) = float(group["lr"]), group["eps"]
        least = _EPSILONS.get(parameter.dtype, 2.0**-52) if least is None else least
        share = step ** group["beta2_decay"]
        scale = max(least_scale, _root_mean_square(parameter)) * min(rate, step**-0.5)
        squares = gradient * gradient
        if gradient.ndim > 1:
            rows = _moved(state, "row_var", ops.mean(squares, -1, True), share)
            columns = _moved(state, "col_var", ops.mean(squares, -2, True), share)
            mean = ops.clamp(ops.mean(rows, -2, True), min=least)
            estimate = ops.matmul(rows, columns) / mean
        else:
            estimate = _moved(state, "variance", squares, share)
        change = gradient / ops.sqrt(ops.clamp(estimate, min=least * least))
        value = parameter * (1 - rate * group["weight_decay"])
        return value - scale / max(1.0, _root_mean_square(change) / group["d"]) * change


def _in_bfloat16(values: Any) -> Any:
    """Rounded as torch's bfloat16 rounds, in float32, for which MindSpore has its kernels."""
    return values.astype(ms.bfloat16).astype(ms.float32)


def orthogonalised(
    matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Any:
    """A matrix with about the same singular vectors and singular values near 1, as Muon's."""
    a, b, c = coefficients
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = _in_bfloat16(matrix.T if is_tall else matrix)
    size = _in_bfloat16(ops.sqrt(ops.square(x).sum()))
    x = _in_bfloat16(x / ops.clamp(size, min=eps))
    for _ in range(steps):
        gram = _in_bfloat16(ops.matmul(x, x.T))
        polynomial = _in_bfloat16(b * gram + c * ops.matmul(gram, gram))
        x = _in_bfloat16(a * x + ops.matmul(polynomial, x))
    return x.T if is_tall else x


class Muon(Optimizer):
    """torch.optim.Muon: the momentum of a matrix, orthogonalised in bfloat16's precision."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-07,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        _refuse("ns_steps", ns_steps, ns_steps < 100)
        known = (None, "original", "match_rms_adamw")
        _refuse("adjust_lr_fn", adjust_lr_fn, adjust_lr_fn in known)
        settings: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum}
        settings |= {"nesterov": nesterov, "ns_coefficients": ns_coefficients, "eps": eps}
        super().__init__(params, {**settings, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn})
        for part in self.parameters:
            _refuse("shape of a parameter of Muon", part.shape, part.ndim == 2)

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        rate, momentum = float(group["lr"]), group["momentum"]
        change = _moved(state, "momentum_buffer", gradient, 1 - momentum)
        if group["nesterov"]:
            change = gradient + momentum * (change - gradient)
        settings = (group["ns_coefficients"], group["ns_steps"], group["eps"])
        change = orthogonalised(change, *settings).astype(parameter.dtype)
        rows, columns = parameter.shape
        ratio = math.sqrt(max(1, rows / columns))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        return parameter * (1 - rate * group["weight_decay"]) - rate * ratio * change


class SparseAdam(Optimizer):
    """torch.optim.SparseAdam: rows whose gradient is zero keep their values and their state.

    MindSpore's gradients are dense, so that a row that was read and has no gradient is one too.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        maximize: bool = False,
    ) -> None:
        _refuse("learning rate", lr, lr > 0)
        _refuse("epsilon value", eps, eps > 0)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _update(self, parameter: Any, gradient: Any, group: dict[str, Any], state: State) -> Any:
        step = state["step"] = int(state.get("step", 0)) + 1
        first, second = group["betas"]
        axes = tuple(range(1, gradient.ndim))
        touched = ops.abs(gradient)
        touched = ops.amax(touched, axes, True) if axes else touched
        touched = (touched > 0).astype(gradient.dtype)
        if "exp_avg" not in state:
            state["exp_avg"] = state["exp_avg_sq"] = ops.zeros_like(gradient)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean = state["exp_avg"] = mean + touched * (1 - first) * (gradient - mean)
        square = state["exp_avg_sq"] = square + touched * (1 - second) * (gradient**2 - square)
        rate = float(group["lr"]) * math.sqrt(1 - second**step) / (1 - first**step)
        return parameter - touched * rate * mean / (ops.sqrt(square) + group["eps"])
