"""Gradients that are checked: for nan behind each backward pass, and against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.function_transforms import gradients_of, leaves_of
from isograd.runtime.training_gradients import AFTER_BACKWARD


def _refuse_nan(parameter: Any, gradient: Any) -> Any:
    if bool(ops.isnan(gradient).any()):
        raise RuntimeError(f"the gradient of the parameter {parameter.name} has nan values")
    return gradient


def _set_checked(mode: bool) -> bool:
    """Check or not from here on; whether it was checked before."""
    before = _refuse_nan in AFTER_BACKWARD
    if mode and not before:
        AFTER_BACKWARD.append(_refuse_nan)
    if before and not mode:
        AFTER_BACKWARD.remove(_refuse_nan)
    return before


class detect_anomaly:  # noqa: N801  # torch's name
    """A block in which a backward pass raises where a parameter's gradient has nan."""

    def __init__(self, check_nan: bool = True) -> None:
        self.mode = bool(check_nan)
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_set_checked(self.mode))

    def __exit__(self, *_: object) -> None:
        _set_checked(self._before.pop())


class set_detect_anomaly(detect_anomaly):  # noqa: N801  # torch's name
    """The same from here on, or for a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode and check_nan)
        self._outer = _set_checked(self.mode)

    def __enter__(self) -> None:
        self._before.append(self._outer)
        _set_checked(self.mode)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **_: Any,
) -> bool:
    """Whether the gradients by the Parameters among the inputs are those of central differences.

    A tensor that requires_grad_() made one is a Parameter here.
    """
    given = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    learnt = [place for place, part in enumerate(given) if isinstance(part, ms.Parameter)]
    if not learnt:
        raise ValueError("gradcheck expects at least one input to require gradient")
    plain = [ms.Tensor(x.asnumpy()) if isinstance(x, ms.Tensor) else x for x in given]

    def outputs(*values: Any) -> list[Any]:
        merged = list(plain)
        for place, value in zip(learnt, values, strict=True):
            merged[place] = value
        return leaves_of(func(*merged))

    points = [plain[place] for place in learnt]
    for number, output in enumerate(outputs(*points)):
        analytical = _by_gradient(outputs, number, output, points)
        numerical = _by_differences(outputs, number, points, eps)
        for place, first, second in zip(learnt, analytical, numerical, strict=True):
            if not np.allclose(first, second, rtol, atol, equal_nan=True):
                if not raise_exception:
                    return False
                where = f"output {number} with respect to input {place}"
                raise RuntimeError(
                    f"Jacobian mismatch for {where}\nnumerical:{second}\nanalytical:{first}"
                )
    return True


def _by_gradient(outputs: Any, number: int, output: Any, points: list[Any]) -> list[Any]:
    """The matrices of derivatives, of shape (input's elements, output's), row by row."""
    columns = []
    for element in range(output.size):
        weight = np.zeros(output.shape)
        weight.reshape(-1)[element] = 1
        mask = ms.Tensor(weight).astype(output.dtype)
        slopes = gradients_of(lambda *x, mask=mask: (outputs(*x)[number] * mask).sum(), points)
        columns.append([slope.asnumpy().reshape(-1) for slope in slopes])
    return [np.stack(part, 1) for part in zip(*columns, strict=True)]


def _by_differences(outputs: Any, number: int, points: list[Any], eps: float) -> list[Any]:
    matrices = []
    for place, point in enumerate(points):
        rows = []
        for element in range(point.size):
            ends = []
            for step in (eps, -eps):
                moved = point.asnumpy().copy()
                moved.reshape(-1)[element] += step
                given = [*points[:place], ms.Tensor(moved), *points[place + 1 :]]
                ends.append(outputs(*given)[number].asnumpy().astype(np.float64).reshape(-1))
            rows.append((ends[0] - ends[1]) / (2 * eps))
        matrices.append(np.stack(rows))
    return matrices
