"""Gradients of tensors that were computed."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253


def retain_grad(tensor: Any) -> None:
    """Keep the gradient of a computed tensor in its `grad`, as a Parameter has one anyway.

    Raises RuntimeError where nothing was recorded of it.
    """
    if isinstance(tensor, ms.Parameter) or hasattr(tensor, "grad"):
        return
    if tensor._grad_node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    tensor.grad = None

    def keep(gradient: Any) -> None:
        tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient

    tensor.register_hook(keep)
