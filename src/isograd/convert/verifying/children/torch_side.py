"""The reference of a case: its network, a loss that every output reaches, and plain SGD."""

from __future__ import annotations

from typing import Any

import torch
from _isograd_case_side import Side, floating, weights  # type: ignore[import-not-found]

SIDE = Side(__file__)


def build() -> Any:
    """The reference."""
    return SIDE.build()


def loss(output: Any) -> Any:
    """Sum over the floating outputs of the weighted mean of √(1 + x²) − 1.

    Like half the squares of small numbers; of large ones (boxes in pixels) the gradient stays at
    most 1, so that three steps do not end in NaN.
    """
    total = None
    for tensor in floating(output, torch.is_tensor):
        if not tensor.is_floating_point():
            continue
        values = weights(tensor.numel())
        weight = torch.from_numpy(values).reshape(tensor.shape).to(tensor.dtype)
        square = tensor * tensor
        part = (square / (1 + torch.sqrt(1 + square)) * weight).mean()
        total = part if total is None else total + part
    if total is None:
        raise TypeError("the network returned no floating tensor")
    return total


def optimizer(model: Any) -> Any:
    """Plain SGD."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.SGD(trained, lr=0.01)
