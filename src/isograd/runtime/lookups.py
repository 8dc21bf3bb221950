"""Torch's embeddings."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253
from mindspore.common import api  # noqa: TID253

from isograd.runtime.writing import write


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """A one at each class, as int64."""
    count = num_classes if num_classes >= 0 else int(tensor.max().asnumpy()) + 1
    return (tensor.expand_dims(-1) == ms.Tensor(np.arange(count))).astype(ms.int64)


def shorten_rows(weight: Any, input: Any, max_norm: float, norm_type: float = 2.0) -> None:
    """Scale the rows of a table at these positions, in place, so that none is longer."""
    with api._no_grad():
        lengths = ops.norm(weight, norm_type, 1, keepdim=True)
        asked = _counts(input, weight).expand_dims(1) > 0
        is_long = ops.logical_and(asked, lengths > max_norm)
        shorter = weight * (max_norm / (lengths + 1e-7))
        write(weight, ops.where(is_long, shorter, weight))


def _counts(input: Any, weight: Any) -> Any:
    """How often each row of a table is asked for."""
    positions = input.reshape(-1, 1).astype(ms.int64)
    ones = ops.ones((positions.shape[0],), weight.dtype)
    return ops.tensor_scatter_add(ops.zeros((weight.shape[0],), weight.dtype), positions, ones)


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of a table; the row of the padding learns nothing."""
    if max_norm is not None:
        shorten_rows(weight, input, max_norm, norm_type)
    found = ops.gather(weight, input, 0)
    if scale_grad_by_freq:
        share = 1 / ops.gather(_counts(input, weight), input, 0)
        found = found + (share - 1).expand_dims(-1) * (found - ops.stop_gradient(found))
    if padding_idx is None:
        return found
    still = ops.expand_dims(input == padding_idx % weight.shape[0], -1)
    return ops.where(still, ops.stop_gradient(found), found)


def embedding_bag(
    input: Any,
    weight: Any,
    mode: str = "mean",
    offsets: Any = None,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sum, mean or greatest of the rows in each bag: a line of positions, or those from an offset.

    An empty bag gives zeros; a position that equals padding_idx counts in none.
    """
    if offsets is None and per_sample_weights is None and padding_idx is None:
        lines = ops.gather(weight, input, 0)
        if mode == "max":
            return lines.max(axis=1)
        return lines.sum(1) if mode == "sum" else lines.mean(1)
    positions = input.reshape(-1)
    if offsets is None:
        count, wide = input.shape
        bags = np.repeat(np.arange(count), wide)
    else:
        begins = offsets.asnumpy()[:-1] if include_last_offset else offsets.asnumpy()
        count = len(begins)
        bags = np.searchsorted(begins, np.arange(positions.shape[0]), side="right") - 1
    rows = ops.gather(weight, positions, 0)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    belongs = np.arange(count)[:, None] == bags
    if padding_idx is not None:
        belongs &= positions.asnumpy() != padding_idx % weight.shape[0]
    if mode == "max":
        lowest = ops.full((), np.finfo(np.float32).min, dtype=rows.dtype)
        kept = ops.select(ms.Tensor(belongs[..., None]), rows.expand_dims(0), lowest)
        found = kept.max(axis=1)
        return ops.select(ms.Tensor(belongs.any(1)[:, None]), found, ops.zeros_like(found))
    shares = belongs.astype(np.float32)
    if mode == "mean":
        shares /= np.maximum(shares.sum(1, keepdims=True), 1)
    return ops.matmul(ms.Tensor(shares, rows.dtype), rows)
