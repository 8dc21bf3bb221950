"""torch's L-BFGS: a step asks the closure several times, along directions from past gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.training_gradients import enable_grad, no_grad
from isograd.runtime.training_optimizers import Optimizer, State


class _Point(NamedTuple):
    """A place along a direction, and what the closure says of it."""

    length: float
    loss: float
    gradient: Any
    slope: float


def _dot(left: Any, right: Any) -> float:
    return float((left * right).sum().asnumpy())


def _scaled(vector: Any, factor: float) -> Any:
    """The product in the vector's own precision; MindSpore rounds Python's numbers to float32."""
    return vector * ms.Tensor(factor, vector.dtype)


def _greatest(vector: Any) -> float:
    return float(vector.abs().max().asnumpy())


def _cubic_minimum(one: _Point, other: _Point, bounds: tuple[float, float]) -> float:
    """Where the cubic with both values and slopes is least (Nocedal and Wright 2006, eq. 3.59)."""
    left, right = (one, other) if one.length <= other.length else (other, one)
    width = right.length - left.length
    first = left.slope + right.slope - 3 * (left.loss - right.loss) / -width if width else math.nan
    square = first * first - left.slope * right.slope
    if not square >= 0:
        return sum(bounds) / 2
    root = math.sqrt(square)
    below = right.slope - left.slope + 2 * root
    share = (right.slope + root - first) / below if below else math.nan
    place = right.length - width * share
    return sum(bounds) / 2 if math.isnan(place) else min(max(place, bounds[0]), bounds[1])


class _Search:
    """A length that meets the strong Wolfe conditions (Nocedal and Wright 2006, 3.5 and 3.6)."""

    decrease, curvature = 1e-4, 0.9

    def __init__(self, ask: Callable[[float], _Point], start: _Point, most: int) -> None:
        self.ask, self.start, self.most = ask, start, most
        self.asked = 0

    def _try(self, length: float) -> _Point:
        self.asked += 1
        return self.ask(length)

    def _is_low_enough(self, point: _Point) -> bool:
        bound = self.start.loss + self.decrease * point.length * self.start.slope
        return point.loss <= bound

    def _is_flat_enough(self, point: _Point) -> bool:
        return abs(point.slope) <= -self.curvature * self.start.slope

    def run(self, length: float, least_change: float) -> _Point:
        """The best point that was found; `least_change` is the narrowest bracket."""
        previous, point, rounds = self.start, self._try(length), 0
        while rounds < self.most:
            rose = rounds > 1 and point.loss >= previous.loss
            if not self._is_low_enough(point) or rose:
                return self._zoom(previous, point, rounds, least_change)
            if self._is_flat_enough(point):
                return point
            if point.slope >= 0:
                return self._zoom(previous, point, rounds, least_change)
            bounds = (point.length + 0.01 * (point.length - previous.length), point.length * 10)
            length = _cubic_minimum(previous, point, bounds)
            previous, point = point, self._try(length)
            rounds += 1
        return self.start if self.start.loss <= point.loss else point

    def _zoom(self, one: _Point, other: _Point, rounds: int, least_change: float) -> _Point:
        """The bracket's best point, after it was narrowed."""
        low, high = (one, other) if one.loss <= other.loss else (other, one)
        is_slow = False
        while rounds < self.most:
            ends = (min(low.length, high.length), max(low.length, high.length))
            if ends[1] - ends[0] < least_change:
                break
            length = _cubic_minimum(low, high, ends)
            margin = 0.1 * (ends[1] - ends[0])
            is_near = min(ends[1] - length, length - ends[0]) < margin
            if is_near and (is_slow or length >= ends[1] or length <= ends[0]):
                is_at_end = abs(length - ends[1]) < abs(length - ends[0])
                length = ends[1] - margin if is_at_end else ends[0] + margin
                is_slow = False
            else:
                is_slow = is_near
            point = self._try(length)
            rounds += 1
            if not self._is_low_enough(point) or point.loss >= low.loss:
                high = point
                low, high = (low, high) if low.loss <= high.loss else (high, low)
                continue
            if self._is_flat_enough(point):
                return point
            if point.slope * (high.length - low.length) >= 0:
                high = low
            low = point
        return low


class LBFGS(Optimizer):
    """L-BFGS for one group of parameters; `step` needs a closure that returns the loss."""

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-07,
        tolerance_change: float = 1e-09,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError("only 'strong_wolfe' is supported")
        calls = max_iter * 5 // 4 if max_eval is None else max_eval
        settings: dict[str, Any] = {"lr": lr, "max_iter": max_iter, "max_eval": calls}
        settings |= {"tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
        settings |= {"history_size": history_size, "line_search_fn": line_search_fn}
        super().__init__(params, settings)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    # ---- all parameters as one vector

    def _gradient(self) -> Any:
        """The gradients of all parameters, one after the other; zeros where there is none."""
        parts = []
        for parameter in self.parameters:
            held = getattr(parameter, "grad", None)
            parts.append((ops.zeros_like(parameter) if held is None else held).reshape(-1))
        return ops.cat(parts)

    def _put(self, values: list[Any], length: float = 0.0, direction: Any = None) -> None:
        """Each parameter at its value, or at a length along a direction from it."""
        start = 0
        for parameter, value in zip(self.parameters, values, strict=True):
            count = math.prod(parameter.shape)
            moved = value
            if direction is not None:
                part = direction[start : start + count].reshape(parameter.shape)
                moved = value + _scaled(part.astype(value.dtype), length)
            ops.assign(parameter, moved)
            start += count

    # ---- a step

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to `max_iter` moves; the loss before the first one is returned."""
        if closure is None:
            raise ValueError("LBFGS asks the loss several times: step(closure)")
        group, state = self.param_groups[0], self.state[self.parameters[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with no_grad():
            return self._step(enable_grad(closure), group, state)

    def _step(self, closure: Callable[[], Any], group: dict[str, Any], state: State) -> Any:
        given = closure()
        loss, gradient = float(given), self._gradient()
        calls = 1
        state["func_evals"] += 1
        if _greatest(gradient) <= group["tolerance_grad"]:
            return given
        rate, smallest = float(group["lr"]), group["tolerance_change"]
        for move in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(gradient, group, state)
            is_first = state["n_iter"] == 1
            total = float(gradient.abs().sum().asnumpy()) if is_first else 1.0
            length = min(1.0, 1.0 / total) * rate if is_first else rate
            state["prev_flat_grad"], state["prev_loss"] = gradient, loss
            state["d"], state["t"] = direction, length
            slope = _dot(gradient, direction)
            if slope > -smallest:
                break
            is_last, before = move == group["max_iter"], loss
            values = [parameter + 0 for parameter in self.parameters]
            asked = 0
            if group["line_search_fn"] is not None:

                def ask(place: float, values: list[Any] = values, d: Any = direction) -> _Point:
                    self._put(values, place, d)
                    told = float(closure())
                    found = self._gradient()
                    self._put(values)
                    return _Point(place, told, found, _dot(found, d))

                start = _Point(0.0, loss, gradient, slope)
                search = _Search(ask, start, group["max_eval"] - calls)
                point = search.run(length, smallest / max(_greatest(direction), 1e-300))
                length, loss, gradient = point.length, point.loss, point.gradient
                state["t"], asked = length, search.asked
                self._put(values, length, direction)
            else:
                self._put(values, length, direction)
                if not is_last:
                    loss, gradient, asked = float(closure()), self._gradient(), 1
            calls += asked
            state["func_evals"] += asked
            if is_last or calls >= group["max_eval"]:
                break
            if _greatest(gradient) <= group["tolerance_grad"]:
                break
            if _greatest(direction) * abs(length) <= smallest or abs(loss - before) < smallest:
                break
        return given

    def _direction(self, gradient: Any, group: dict[str, Any], state: State) -> Any:
        """Against the gradient, scaled by what the last moves tell of the curvature.

        The two loops of Nocedal (1980), doi 10.1090/S0025-5718-1980-0572855-7.
        """
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -gradient
        changes, moves, shares = state["old_dirs"], state["old_stps"], state["ro"]
        change, moved = gradient - state["prev_flat_grad"], _scaled(state["d"], state["t"])
        along = _dot(change, moved)
        if along > 1e-10:
            for held, new in ((changes, change), (moves, moved), (shares, 1.0 / along)):
                if len(held) == group["history_size"]:
                    held.pop(0)
                held.append(new)
            state["H_diag"] = along / _dot(change, change)
        found, weights = -gradient, []
        for old, was, share in reversed(list(zip(changes, moves, shares, strict=True))):
            weights.append(_dot(was, found) * share)
            found = found - _scaled(old, weights[-1])
        found = _scaled(found, state["H_diag"])
        for old, was, share in zip(changes, moves, shares, strict=True):
            found = found + _scaled(was, weights.pop() - _dot(old, found) * share)
        return found
