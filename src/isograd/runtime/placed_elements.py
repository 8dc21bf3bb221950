"""Elements at positions: reductions into them, writes by flat positions, a fixed count of them."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import sum_of, take
from isograd.runtime.indexing import index_put
from isograd.runtime.reductions import amax, amin, cumprod


def put_elements(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """`torch.put`: the source's elements at positions of the flattened tensor.

    MindSpore has none. Where positions repeat and nothing is added up, any of them may stay.
    """
    places = (index.reshape(-1),)
    return index_put(input.reshape(-1), places, source.reshape(-1), accumulate).reshape(input.shape)


def nonzero_static(input: Any, size: int, fill_value: int = -1) -> Any:
    """The positions of the first `size` elements that are not zero, a row each.

    What lacks is filled; MindSpore has none. There is no gradient in torch either.
    """
    found = np.argwhere(ops.stop_gradient(input).asnumpy() != 0)[:size]
    rows = np.full((size, input.ndim), fill_value, np.int64)
    rows[: len(found)] = found
    return ms.Tensor(rows)


def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    """The source's slices, gathered at positions of an axis by "prod", "mean", "amax" or "amin".

    MindSpore has none. Equal greatest elements share the gradient, and that of a product divides
    by nothing, both as in torch.
    """
    axis = dim % input.ndim
    own = ops.movedim(input, axis, -1) if input.ndim > 1 else input
    given = ops.movedim(source, axis, -1) if source.ndim > 1 else source
    # hit[k, j]: slice k of the source goes to position j.
    hit = index.reshape(-1, 1) == ms.Tensor(np.arange(own.shape[-1]))
    count = hit.astype(ms.int64).sum(0)
    is_kept = ops.ones_like(count) > 0 if include_self else count == 0
    values = ops.broadcast_to(given.expand_dims(-1), (*given.shape, own.shape[-1]))
    neutral = _neutral(reduce, own.dtype)
    held = ops.where(is_kept, own, ops.full_like(own, neutral)).expand_dims(-2)
    parts = ops.cat((held, ops.where(hit, values, ops.full_like(values, neutral))), -2)
    found = _reduced(parts, reduce, ops.clamp(count + is_kept.astype(ms.int64), 1))
    if reduce in ("amax", "amin") and not include_self and ops.is_floating_point(own):
        found = _shared(found, parts, ops.where(is_kept, ops.full_like(own, np.nan), own))
    return ops.movedim(found, -1, axis) if input.ndim > 1 else found


def _shared(found: Any, parts: Any, left_out: Any) -> Any:
    """The extremes with torch's gradient: an element that is left out takes its share, too."""
    still = ops.stop_gradient(found)
    equal = (ops.stop_gradient(parts) == still.expand_dims(-2)).astype(found.dtype).sum(-2)
    lost = (ops.stop_gradient(left_out) == still).astype(found.dtype)
    return still + (found - still) * (equal / (equal + lost))


def _neutral(reduce: str, dtype: Any) -> Any:
    """The number that leaves a reduction as it is."""
    if reduce in ("prod", "mean"):
        return 1 if reduce == "prod" else 0
    if reduce not in ("amax", "amin"):
        raise RuntimeError(f"index_reduce knows prod, mean, amax and amin, not {reduce!r}")
    kind = ms.dtype_to_nptype(dtype)
    if np.issubdtype(kind, np.floating):
        return -np.inf if reduce == "amax" else np.inf
    limits = np.iinfo(kind)
    return limits.min if reduce == "amax" else limits.max


def _reduced(parts: Any, reduce: str, count: Any) -> Any:
    """The reduction of the last axis but one."""
    axis = parts.ndim - 2
    if reduce == "prod":
        last = np.array([parts.shape[axis] - 1])
        return take(cumprod(parts, axis), axis, last).squeeze(axis).astype(parts.dtype)
    if reduce == "mean":
        total = sum_of(parts, (axis,))
        is_float = ops.is_floating_point(parts)
        return total / count.astype(total.dtype) if is_float else total // count.astype(total.dtype)
    return (amax if reduce == "amax" else amin)(parts, axis)
