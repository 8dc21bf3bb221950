"""Torch's sorting, order statistics and unique values."""

from __future__ import annotations

from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import is_compiled, take


class Found(NamedTuple):
    """Values and their positions, as torch's reductions over an axis return them."""

    values: Any
    indices: Any


def values_and_indices(values: Any, indices: Any) -> Any:
    """Both as torch returns them; a plain pair when compiled, where a named one has no gradient."""
    return (values, indices) if is_compiled(values) else Found(values, indices)


def _order(input: Any, axis: int, descending: bool) -> Any:
    """Stable positions of the sorted elements, as int64; equal ones in any order when compiled."""
    if is_compiled(input):
        return ops.argsort(ops.stop_gradient(input), axis, descending).astype(ms.int64)
    values = ops.stop_gradient(input).asnumpy()
    if descending:
        turned = np.flip(values, axis)
        last = values.shape[axis] - 1
        order = last - np.flip(np.argsort(turned, axis, kind="stable"), axis)
    else:
        order = np.argsort(values, axis, kind="stable")
    return ms.Tensor(order.astype(np.int64))


def _only(input: Any) -> Any:
    """A number without axes, and its position."""
    return values_and_indices(input, ops.zeros((), dtype=ms.int64))


def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sorted along an axis, with positions; equal elements keep their order."""
    if input.ndim == 0:
        return _only(input)
    axis = dim % input.ndim
    order = _order(input, axis, descending)
    return values_and_indices(ops.gather_elements(input, axis, order), order)


def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The positions of the sorted elements, as int64."""
    return _order(input, dim % input.ndim, descending) if input.ndim else _only(input)[1]


def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k greatest (or least) elements of an axis, with positions."""
    if input.ndim == 0:
        return _only(input)
    axis = dim % input.ndim
    order = _order(input, axis, largest)
    first = take(order, axis, np.arange(k))
    return values_and_indices(ops.gather_elements(input, axis, first), first)


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element of an axis, with its position."""
    if input.ndim == 0:
        return _only(input)
    axis = dim % input.ndim
    position = take(_order(input, axis, False), axis, np.array([k - 1]))
    values = ops.gather_elements(input, axis, position)
    if keepdim:
        return values_and_indices(values, position)
    return values_and_indices(values.squeeze(axis), position.squeeze(axis))


def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of everything, or of an axis with its position."""
    if dim is None:
        middle = ops.stop_gradient(kthvalue(input.reshape(-1), (input.size + 1) // 2, 0)[0])
        if not ops.is_floating_point(input):
            return middle
        equal = (input == middle).astype(input.dtype)
        # Its gradient belongs to all equal elements.
        mean = (input * equal).sum() / ops.stop_gradient(equal.sum())
        return middle + (mean - ops.stop_gradient(mean))
    count = input.shape[dim] if input.ndim else 1
    return kthvalue(input, (count + 1) // 2, dim, keepdim)


def _running(input: Any, dim: int, better: Any, compiled: Any) -> Any:
    if input.ndim == 0:
        return _only(input)
    axis = dim % input.ndim
    if is_compiled(input):
        places = compiled(ops.stop_gradient(input), axis)[1].astype(ms.int64)
        return ops.gather_elements(input, axis, places), places
    values = np.moveaxis(input.asnumpy(), axis, 0)
    best = np.zeros(values.shape, np.int64)
    for row in range(1, len(values)):
        before = np.take_along_axis(values, best[row - 1][None], 0)[0]
        best[row] = np.where(better(values[row], before), row, best[row - 1])
    positions = ms.Tensor(np.moveaxis(best, 0, axis).copy())
    return values_and_indices(ops.gather_elements(input, axis, positions), positions)


def cummax(input: Any, dim: int) -> Any:
    """The greatest element so far along an axis, with its (last) position."""
    return _running(input, dim, np.greater_equal, ops.cummax)


def cummin(input: Any, dim: int) -> Any:
    """The least element so far along an axis, with its (last) position."""
    return _running(input, dim, np.less_equal, ops.cummin)


def unique(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The different elements (or slices of an axis), sorted."""
    options: Any = {"return_inverse": return_inverse, "return_counts": return_counts, "axis": dim}
    own: Any = np.unique(input.asnumpy(), **options)
    parts = list(own) if isinstance(own, tuple) else [own]
    if return_inverse:
        parts[1] = parts[1].reshape(input.shape if dim is None else -1)
    results = tuple(ms.Tensor(part) for part in parts)
    return results if len(results) > 1 else results[0]


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Without repetitions that follow one another."""
    values = input.asnumpy().reshape(-1) if dim is None else np.moveaxis(input.asnumpy(), dim, 0)
    other = values[1:] != values[:-1]
    new = np.concatenate([[True], other.reshape(len(other), -1).any(1)])
    kept = values[new] if dim is None else np.moveaxis(values[new], 0, dim)
    parts = [kept]
    if return_inverse:
        parts.append((np.cumsum(new) - 1).reshape(input.shape if dim is None else -1))
    if return_counts:
        parts.append(np.diff(np.append(np.flatnonzero(new), len(values))))
    results = tuple(ms.Tensor(np.ascontiguousarray(part)) for part in parts)
    return results if len(results) > 1 else results[0]


def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of what is not nan; of an axis with its position."""
    flat = input.reshape(-1) if dim is None else input
    axis = 0 if dim is None else dim % input.ndim
    if is_compiled(flat):
        known = ops.logical_not(ops.isnan(flat)).astype(ms.int64).sum(axis, keepdims=True)
        place = ops.maximum(known - 1, ops.zeros_like(known)) // 2
        where_it_is = ops.gather_elements(_order(flat, axis, False), axis, place)
    else:
        good = np.logical_not(np.isnan(flat.asnumpy())).sum(axis, keepdims=True)
        order = _order(flat, axis, False).asnumpy()
        position = np.take_along_axis(order, np.maximum(good - 1, 0) // 2, axis)
        where_it_is = ms.Tensor(position)
    values = ops.gather_elements(flat, axis, where_it_is)
    if dim is None:
        return values.squeeze(0)
    if keepdim:
        return values_and_indices(values, where_it_is)
    return values_and_indices(values.squeeze(axis), where_it_is.squeeze(axis))
