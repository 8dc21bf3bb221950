"""Sums, extremes, statistics and norms over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import axes_of, is_compiled, mean_of, root, sum_of, take
from isograd.runtime.exact import exp
from isograd.runtime.making import floating
from isograd.runtime.ordering import values_and_indices
from isograd.runtime.pointwise import absolute, maximum, minimum


class Extremes(NamedTuple):
    """What `torch.aminmax` returns."""

    min: Any
    max: Any


def unless_empty(function: Callable[..., Any], value: Any, *given: Any, **settings: Any) -> Any:
    """What a function computes; torch's value of no element, where MindSpore's is undefined.

    No gradient goes through it then: that of a product over an empty axis is undefined, too.
    """
    found = function(*given, **settings)
    for part in given:
        if isinstance(part, ms.Tensor) and part.size == 0:
            return _recorded(ops.full_like(ops.stop_gradient(found), value))
    return found


def _recorded(value: Any) -> Any:
    """A value that `backward` takes, as torch's is, although it comes of no parameter."""
    if is_compiled(value) or not ops.is_floating_point(value):
        return value
    return ops.where(ms.Tensor(True), value, ms.Parameter(ops.zeros((), value.dtype)) * 1)


def of_nothing(reduction: str) -> float:
    """What a loss of no element is."""
    return 0.0 if reduction == "sum" else math.nan


def loss_of(layer: Any, input: Any, target: Any, *others: Any) -> Any:
    """What a layer of a loss computes; torch's value of no element."""
    is_mean = getattr(layer, "reduction", "mean") != "sum" and getattr(layer, "average", True)
    return unless_empty(layer, math.nan if is_mean else 0.0, input, target, *others)


def var(
    input: Any,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    correction: float | None = None,
) -> Any:
    """The variance, divided by n - 1 unless told otherwise."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    axes = axes_of(dim, input)
    count = int(np.prod([input.shape[axis] for axis in axes]))
    fewer = int(unbiased) if correction is None else correction
    centred = input - mean_of(input, axes)
    squares = ops.real(centred * ops.conj(centred)) if input.is_complex() else centred * centred
    found = sum_of(squares, axes, keepdim)
    if count == 0:
        return ops.full_like(found, math.nan)  # the sum is what stood in the memory
    return found / (count - fewer if count > fewer else 0.0)


def std(
    input: Any,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    correction: float | None = None,
) -> Any:
    """The standard deviation, from n - 1 unless told otherwise."""
    return root(var(input, dim, unbiased, keepdim, correction))


def _mean(input: Any, dim: Any, keepdim: bool) -> Any:
    return mean_of(input, axes_of(dim, input), keepdim)


def var_mean(
    input: Any,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    correction: float | None = None,
) -> tuple[Any, Any]:
    """Variance and mean."""
    return var(input, dim, unbiased, keepdim, correction), _mean(input, dim, keepdim)


def std_mean(
    input: Any,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    correction: float | None = None,
) -> tuple[Any, Any]:
    """Standard deviation and mean."""
    return std(input, dim, unbiased, keepdim, correction), _mean(input, dim, keepdim)


def max(input: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """The greatest of all, of two tensors, or of an axis with its position."""
    if isinstance(other, ms.Tensor) or isinstance(dim, ms.Tensor):
        return maximum(input, dim if other is None else other)
    return amax(input) if dim is None else _extreme(input, dim, keepdim, np.argmax, ops.argmax)


def min(input: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """The least of all, of two tensors, or of an axis with its position."""
    if isinstance(other, ms.Tensor) or isinstance(dim, ms.Tensor):
        return minimum(input, dim if other is None else other)
    return amin(input) if dim is None else _extreme(input, dim, keepdim, np.argmin, ops.argmin)


def _extreme(input: Any, dim: int, keepdim: bool, find: Any, compiled: Any) -> Any:
    if input.ndim == 0:
        return values_and_indices(input, ops.zeros((), dtype=ms.int64))
    axis = dim % input.ndim
    if is_compiled(input):
        best = compiled(ops.stop_gradient(input), axis)
        positions = ops.expand_dims(best, axis).astype(ms.int64)
    else:
        best = find(ops.stop_gradient(input).asnumpy(), axis)
        positions = ms.Tensor(np.expand_dims(best, axis).astype(np.int64))
    values = ops.gather_elements(input, axis, positions)
    if not keepdim:
        values, positions = values.squeeze(axis), positions.squeeze(axis)
    return values_and_indices(values, positions)


def amax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The greatest over axes; equal elements share the gradient, as in torch."""
    axes = axes_of(dim, input)
    if input.dtype == ms.bool_:
        return amax(input.astype(ms.uint8), axes, keepdim).astype(ms.bool_)
    if not ops.is_floating_point(input):
        return input.max(axis=axes, keepdims=keepdim) if axes else input
    top = ops.stop_gradient(input.max(axis=axes, keepdims=True))
    equal = ops.stop_gradient((input == top).astype(input.dtype))
    share = equal / sum_of(equal, axes, keepdims=True)
    # Not input * share: infinities would become nan, which have no gradient here.
    is_top = ops.logical_and(equal > 0, ops.isfinite(top))
    moved = ops.where(is_top, (input - top) * share, ops.zeros_like(input))
    found = top + sum_of(moved, axes, True)
    return found if keepdim else sum_of(found, axes)


def amin(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The least over axes; equal elements share the gradient, as in torch."""
    if input.dtype == ms.bool_:
        return amin(input.astype(ms.uint8), dim, keepdim).astype(ms.bool_)
    if not ops.is_floating_point(input):  # the least integer has no opposite
        axes = axes_of(dim, input)
        return input.min(axis=axes, keepdims=keepdim) if axes else input
    return -amax(-input, dim, keepdim)


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """The logarithm of a sum of exponentials; MindSpore's is NaN where the greatest is infinite."""
    input = floating(input)
    axes = axes_of(dim, input)
    if input.size == 0:
        return unless_empty(ops.sum, -math.inf, input, dim=axes, keepdim=keepdim)
    top = ops.stop_gradient(input.max(axis=axes, keepdims=True))
    top = ops.where(ops.isfinite(top), top, ops.zeros_like(top))
    total = sum_of(exp(input - top), axes, keepdims=True)
    found = ops.log(total) + top
    return found if keepdim else sum_of(found, axes)


def aminmax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The least and the greatest; a plain pair when compiled, where a named one has no gradient."""
    low, high = amin(input, dim, keepdim), amax(input, dim, keepdim)
    return (low, high) if is_compiled(input) else Extremes(low, high)


def nanmean(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The mean of what is not nan."""
    axes = axes_of(dim, input)
    good = ops.logical_not(ops.isnan(input))
    total = sum_of(ops.where(good, input, ops.zeros_like(input)), axes, keepdim)
    return total / sum_of(good.astype(input.dtype), axes, keepdim)


def nansum(input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum of what is not nan, of integers in int64, as torch has it."""
    input = summand(input) if dtype is None else input.astype(dtype)
    if ops.is_floating_point(input):
        input = ops.where(ops.isnan(input), ops.zeros_like(input), input)
    return sum_of(input, axes_of(dim, input), keepdim)


def quantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """A quantile between the two nearest elements; of several q one after the other, first."""
    if isinstance(q, ms.Tensor):
        if q.ndim:
            several = ops.stop_gradient(q).asnumpy().tolist()
            return ops.stack([quantile(input, one, dim, keepdim) for one in several])
        q = float(q.asnumpy())
    flat = input.reshape(-1) if dim is None else ops.movedim(input, dim, -1)
    place = q * (flat.shape[-1] - 1)
    low = int(place)
    high = low + 1 if place > low else low
    axis = flat.ndim - 1
    if is_compiled(flat):
        positions = ops.argsort(ops.stop_gradient(flat), axis).astype(ms.int64)
    else:
        positions = ms.Tensor(np.argsort(ops.stop_gradient(flat).asnumpy(), -1, kind="stable"))
    first = ops.gather_elements(flat, axis, take(positions, axis, np.array([low])))
    second = ops.gather_elements(flat, axis, take(positions, axis, np.array([high])))
    found = first + (second - first) * (place - low)
    if dim is None:
        return found.reshape([1] * input.ndim if keepdim else ())
    return ops.movedim(found, -1, dim) if keepdim else found.squeeze(-1)


def norm(input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """The p-norm of the elements over axes ("fro" is 2)."""
    if p == "nuc":
        return matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim)
    axes = axes_of(dim, input)
    p = 2 if p in ("fro", None) else p
    if input.dtype in (ms.complex64, ms.complex128):
        input = absolute(input)
    if p == np.inf:
        return amax(ops.abs(input), axes, keepdim)
    if p == -np.inf:
        return amin(ops.abs(input), axes, keepdim)
    if p == 0:
        return sum_of((input != 0).astype(input.dtype), axes, keepdim)
    if p == 1:
        return sum_of(ops.abs(input), axes, keepdim)
    if p == 2:
        return root(sum_of(input * input, axes, keepdim))
    return ops.pow(sum_of(ops.pow(ops.abs(input), p), axes, keepdim), 1 / p)


def linalg_norm(input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """`torch.linalg.norm`: of a matrix where two axes are meant and an order is given."""
    matrix = isinstance(dim, (tuple, list)) or (dim is None and input.ndim == 2)
    if ord is None or not matrix:
        return norm(input, 2 if ord is None else ord, dim, keepdim)
    return matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim)


def matrix_norm(input: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """A matrix norm: "fro", 1, -1, inf, -inf; 2, -2 and "nuc" by singular values, two axes last."""
    rows, columns = axes_of(dim, input)
    if ord == "fro":
        return norm(input, 2, (rows, columns), keepdim)
    if ord in (1, -1, np.inf, -np.inf):
        first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = sum_of(ops.abs(input), (first,), True)
        found = (amax if ord > 0 else amin)(sums, second, True)
        return found if keepdim else sum_of(found, (rows, columns))
    values = ops.svd(input, compute_uv=False)
    if ord == "nuc":
        found = values.sum(-1)
    else:
        found = values.max(axis=-1) if ord > 0 else values.min(axis=-1)
    return found.expand_dims(-1).expand_dims(-1) if keepdim else found


def summand(input: Any) -> Any:
    """Whole numbers and booleans in int64, in which torch adds and multiplies them."""
    is_whole = not ops.is_floating_point(input) and not ops.is_complex(input)
    return input.astype(ms.int64) if is_whole else input


def cumprod(input: Any, dim: int, dtype: Any = None) -> Any:
    """The product so far along an axis, by doubling; its gradient divides by nothing."""
    found = summand(input) if dtype is None else input.astype(dtype)
    if not input.ndim:
        return found
    axis, step = dim % input.ndim, 1
    size = input.shape[axis]
    while step < size:
        head = take(found, axis, np.arange(step))
        later = take(found, axis, np.arange(step, size))
        earlier = take(found, axis, np.arange(size - step))
        found = ops.cat((head, later * earlier), axis)
        step *= 2
    return found


def _trapezoids(y: Any, x: Any, dx: Any, dim: int) -> Any:
    """Twice the area of each trapezoid, along the last axis; x: where the values are."""
    axis = y.ndim - 1
    heights, sides = ops.movedim(y, dim, -1), np.arange(y.shape[dim])
    sums = take(heights, axis, sides[1:]) + take(heights, axis, sides[:-1])
    if x is None:
        return sums * dx
    places = x if x.ndim == 1 else ops.movedim(x, dim % y.ndim - y.ndim, -1)
    last, sides = places.ndim - 1, np.arange(places.shape[-1])
    return sums * (take(places, last, sides[1:]) - take(places, last, sides[:-1]))


def trapezoid(y: Any, x: Any = None, dx: Any = 1, dim: int = -1) -> Any:
    """The integral by trapezoids; `ops.trapz` gives float32 of float64."""
    areas = _trapezoids(y, x, dx, dim)
    return floating(sum_of(areas, (areas.ndim - 1,))) / 2


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1, dim: int = -1) -> Any:
    """The running integral by trapezoids."""
    areas = _trapezoids(y, x, dx, dim)
    return ops.movedim(floating(ops.cumsum(areas, -1)) / 2, -1, dim)


def cov(input: Any, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance of the rows, in their own dtype; each column counts by its weights."""
    rows = floating(input)
    rows = rows.reshape(1, -1) if rows.ndim < 2 else rows
    weights = aweights if fweights is None else fweights
    if weights is None:
        divisor: Any = rows.shape[1] - correction
        centred = rows - mean_of(rows, (1,))
        scaled = centred / (divisor if divisor > 0 else 0.0)
    else:
        if fweights is not None and aweights is not None:
            weights = fweights * aweights
        weights = weights.astype(rows.dtype)
        total = sum_of(weights, (0,))
        lost = 1 if aweights is None else sum_of(weights * aweights, (0,)) / total
        divisor = ops.relu(total - correction * lost)
        centred = rows - sum_of(rows * weights, (1,), True) / total
        scaled = centred * weights / divisor
    turned = ops.swapaxes(centred, 0, 1)
    found = ops.matmul(scaled, ops.conj(turned) if turned.is_complex() else turned)
    return found.reshape(()) if input.ndim < 2 else found


def corrcoef(input: Any) -> Any:
    """The correlation of the rows."""
    if input.ndim < 2:
        alone = cov(input)
        return alone / alone
    rows = floating(input)
    centred = rows - mean_of(rows, (1,))
    product = ops.matmul(centred, ops.swapaxes(centred, 0, 1))
    length = ops.sqrt(sum_of(centred * centred, (1,)))
    return product / (length.expand_dims(1) * length.expand_dims(0))


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of the differences along the last axis, eps added to each."""
    return norm(x1 - x2 + eps, p, -1, keepdim)


def cdist(x1: Any, x2: Any, p: float = 2.0) -> Any:
    """The distance of each row of one from each row of the other."""
    return norm(x1.expand_dims(-2) - x2.expand_dims(-3), p, -1)
