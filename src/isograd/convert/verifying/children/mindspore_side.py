"""The port of a case: its network, a loss that every output reaches, and plain SGD."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from _isograd_case_side import Side, floating, weights  # type: ignore[import-not-found]
from mindspore import ops

SIDE = Side(__file__)
_FLOATING = (ms.float16, ms.float32, ms.float64, ms.bfloat16)


def build() -> Any:
    """The port."""
    return SIDE.build()


def loss(output: Any) -> Any:
    """Sum over the floating outputs of the weighted mean of √(1 + x²) − 1."""
    total = None
    for tensor in floating(output, lambda value: isinstance(value, ms.Tensor)):
        if tensor.dtype not in _FLOATING:
            continue
        values = weights(tensor.size).reshape(tensor.shape)
        weight = ms.Tensor(values).astype(tensor.dtype)
        square = tensor * tensor
        part = ops.mean(square / (1 + ops.sqrt(1 + square)) * weight)
        total = part if total is None else total + part
    if total is None:
        raise TypeError("the network returned no floating tensor")
    return total


class PlainSGD:
    """p ← p − rate · gradient; nn.SGD compiles a graph of all parameters for every training."""

    def __init__(self, parameters: list[Any], rate: float) -> None:
        self.parameters, self._rate = parameters, rate

    def step(self, gradients: tuple[Any, ...]) -> None:
        """One update of all parameters."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            ops.assign_sub(parameter, gradient * self._rate)


def optimizer(model: Any) -> Any:
    """Plain SGD."""
    return PlainSGD(model.trainable_params(), 0.01)
