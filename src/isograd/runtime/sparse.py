"""torch.sparse's functions of matrices that are dense in a port: a zero is what is not kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.making import floating


def sparse_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """The softmax over what is not zero; zeros stay zeros, as what a sparse matrix does not keep.

    A zero that torch keeps takes part in its softmax, and has none here.
    """
    given = floating(input if dtype is None else input.astype(dtype))
    is_kept = given != 0
    powers = _powers(given, is_kept, dim)
    total = powers.sum(dim, keepdims=True)
    return powers / ops.where(total > 0, total, ops.ones_like(total))


def sparse_log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """The logarithm of `sparse_softmax` of what is not zero; zeros stay zeros."""
    given = floating(input if dtype is None else input.astype(dtype))
    is_kept = given != 0
    total = _powers(given, is_kept, dim).sum(dim, keepdims=True)
    sizes = ops.log(ops.where(total > 0, total, ops.ones_like(total)))
    found = given - _greatest(given, is_kept, dim) - sizes
    return ops.where(is_kept, found, ops.zeros_like(found))


def _greatest(given: Any, is_kept: Any, dim: int) -> Any:
    """The greatest of what is kept along an axis, 0 where nothing is; a constant."""
    low = ops.full_like(given, -np.inf)
    found = ops.where(is_kept, ops.stop_gradient(given), low).max(axis=dim, keepdims=True)
    return ops.where(ops.isinf(found), ops.zeros_like(found), found)


def _powers(given: Any, is_kept: Any, dim: int) -> Any:
    shifted = given - _greatest(given, is_kept, dim)
    shifted = ops.where(is_kept, shifted, ops.zeros_like(shifted))
    return ops.exp(shifted) * is_kept.astype(given.dtype)


def sparse_sampled_addmm(
    input: Any,
    mat1: Any,
    mat2: Any,
    *,
    beta: float = 1.0,
    alpha: float = 1.0,
) -> Any:
    """beta input + alpha mat1 @ mat2 where input is not zero; zeros stay zeros."""
    found = beta * input + alpha * ops.matmul(mat1, mat2)
    return found * (input != 0).astype(found.dtype)


def sparse_spdiags(diagonals: Any, offsets: Any, shape: Sequence[int], layout: Any = None) -> Any:
    """The matrix with these rows as its diagonals: element k of a row stands in column k."""
    rows = diagonals.expand_dims(0) if diagonals.ndim == 1 else diagonals
    places = np.atleast_1d(offsets.asnumpy() if isinstance(offsets, ms.Tensor) else offsets)
    found = ops.zeros(tuple(shape), dtype=rows.dtype)
    width = min(rows.shape[-1], shape[1])
    for number, offset in enumerate(places):
        mask = np.zeros((shape[0], width), bool)
        columns = np.arange(max(int(offset), 0), min(width, shape[0] + int(offset)))
        mask[columns - int(offset), columns] = True
        chosen = ms.Tensor(mask.astype(np.float32)).astype(rows.dtype)
        part = chosen * ops.gather(rows, ms.Tensor(number), 0)[:width]
        short = ops.zeros((shape[0], shape[1] - width), dtype=rows.dtype)
        found = found + (ops.cat([part, short], 1) if width < shape[1] else part)
    return found
