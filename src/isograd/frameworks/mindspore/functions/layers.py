"""Products: linear layers, convolutions, attention, embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import ops

from isograd.runtime.layers import (
    conv_in,
    conv_transpose_in,
    einsum,
    linear,
    scaled_dot_product_attention,
)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    found = einsum("...i,oij,...j->...o", (input1, weight, input2))
    return found if bias is None else found + bias


def baddbmm(input: Any, batch1: Any, batch2: Any, beta: float = 1, alpha: float = 1) -> Any:
    return beta * input + alpha * ops.matmul(batch1, batch2)


def addmm(
    input: Any,
    mat1: Any = None,
    mat2: Any = None,
    beta: float = 1,
    alpha: float = 1,
    batch1: Any = None,
    batch2: Any = None,
) -> Any:
    first, second = (mat1, mat2) if batch1 is None else (batch1, batch2)
    return beta * input + alpha * ops.matmul(first, second)


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError("embedding with max_norm or scale_grad_by_freq")
    found = ops.gather(weight, input, 0)
    if padding_idx is None:
        return found
    # The row of the padding learns nothing.
    still = ops.expand_dims(input == padding_idx % weight.shape[0], -1)
    return ops.where(still, ops.stop_gradient(found), found)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "linear": linear,
    "bilinear": bilinear,
    "matmul": lambda input, other: ops.matmul(input, other),
    "bmm": lambda input, other=None, mat2=None: ops.matmul(input, mat2 if other is None else other),
    "baddbmm": baddbmm,
    "addmm": addmm,
    "einsum": einsum,
    "conv1d": conv_in(1),
    "conv2d": conv_in(2),
    "conv3d": conv_in(3),
    "conv_transpose1d": conv_transpose_in(1),
    "conv_transpose2d": conv_transpose_in(2),
    "conv_transpose3d": conv_transpose_in(3),
    "scaled_dot_product_attention": scaled_dot_product_attention,
    "embedding": embedding,
}
