"""Statistics that MindSpore has no operators for: modes, quantiles, slopes, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import Numbers, axes_of, is_compiled, sum_of, take
from isograd.runtime.making import floating
from isograd.runtime.ordering import values_and_indices


def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element of an axis, the least of several, with its last position.

    MindSpore has none. The gradient belongs to the element at that position, as in torch.
    """
    if input.ndim == 0:
        return values_and_indices(input, ms.Tensor(0, ms.int64))
    axis = dim % input.ndim
    places = _mode_places(ops.stop_gradient(input), axis)
    values = ops.gather_elements(input, axis, places)
    if not keepdim:
        values, places = values.squeeze(axis), places.squeeze(axis)
    return values_and_indices(values, places)


def _mode_places(input: Any, axis: int) -> Any:
    """The positions of the modes along an axis, which keeps one place."""
    if is_compiled(input):
        last = ops.movedim(input, axis, -1) if input.ndim > 1 else input
        counts = (last.expand_dims(-1) == last.expand_dims(-2)).astype(ms.int32).sum(-1)
        order = ops.argsort(last.astype(ms.float32), -1).astype(ms.int64)
        best = ops.argmax(ops.gather_elements(counts, counts.ndim - 1, order), -1).expand_dims(-1)
        value = ops.gather_elements(
            last, last.ndim - 1, ops.gather_elements(order, order.ndim - 1, best)
        )
        numbers = ms.Tensor(np.arange(1, last.shape[-1] + 1).astype(np.int32))
        found = ops.argmax((last == value).astype(ms.int32) * numbers, -1).expand_dims(-1)
        return ops.movedim(found, -1, axis) if input.ndim > 1 else found
    values = np.moveaxis(input.asnumpy(), axis, -1)
    order = np.argsort(values, -1, kind="stable")
    ordered = np.take_along_axis(values, order, -1)
    own = np.arange(values.shape[-1])
    is_new = np.concatenate([ordered[..., :1] == ordered[..., :1], np.diff(ordered) != 0], -1)
    first = np.maximum.accumulate(np.where(is_new, own, 0), -1)
    best = (own - first).argmax(-1)[..., None]  # where the longest run of equal ones ends
    found = np.moveaxis(np.take_along_axis(order, best, -1), -1, axis)
    return ms.Tensor(found.astype(np.int64))


def nanquantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Any:
    """A quantile of what is not nan; of several q one after the other, first.

    `ops.nanquantile` has no kernel on a CPU (2.10).
    """
    if isinstance(q, ms.Tensor):
        if q.ndim:
            several = ops.stop_gradient(q).asnumpy().tolist()
            made = [nanquantile(input, one, dim, keepdim, interpolation) for one in several]
            return ops.stack(made)
        q = float(q.asnumpy())
    flat = input.reshape(-1) if dim is None or input.ndim < 2 else ops.movedim(input, dim, -1)
    found = _quantile_of_good(flat, q, interpolation)
    if dim is None:
        return found.reshape([1] * input.ndim if keepdim else ())
    if input.ndim < 2:
        return found if keepdim else found.reshape(())
    return ops.movedim(found, -1, dim) if keepdim else found.squeeze(-1)


def quantile_by(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Any:
    """A quantile with a choice between the two nearest elements; nan where one element is."""
    found = nanquantile(input, q, dim, keepdim, interpolation)
    is_bad = ops.isnan(input).astype(ms.float32)
    axes = tuple(range(input.ndim)) if dim is None else (dim,)
    bad = sum_of(is_bad, axes, keepdim) > 0
    return ops.where(bad, ops.full_like(found, np.nan), found)


def _quantile_of_good(flat: Any, q: float, interpolation: str) -> Any:
    """The quantile along the last axis, which keeps one place."""
    axis = flat.ndim - 1
    still = ops.stop_gradient(flat)
    is_bad = ops.isnan(still)
    # nan goes to the end, where a sort without it would leave it anywhere.
    ordered = ops.where(is_bad, ops.full_like(still, np.inf), still)
    if is_compiled(flat):
        order = ops.argsort(ordered, axis).astype(ms.int64)
    else:
        keys = (ordered.asnumpy(), is_bad.asnumpy())
        order = ms.Tensor(np.lexsort(keys, axis=-1).astype(np.int64))
    count = ops.logical_not(is_bad).astype(ms.float32).sum(-1, keepdims=True)
    place = q * ops.clamp(count - 1, 0)
    if interpolation == "nearest":
        place = ops.round(place)
    low, high = ops.floor(place), ops.ceil(place)
    if interpolation in ("lower", "higher"):
        low, high = (low, low) if interpolation == "lower" else (high, high)
    first, second = (
        ops.gather_elements(flat, axis, ops.gather_elements(order, axis, one.astype(ms.int64)))
        for one in (low, high)
    )
    share = 0.5 if interpolation == "midpoint" else (place - low).astype(flat.dtype)
    return first + (second - first) * share


def gradient(input: Any, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """Slopes along axes by central differences, one-sided at the ends, as numpy's `gradient`.

    spacing: one step, a step for each axis, or coordinates for each axis.  MindSpore has none on
    a CPU.  Coordinates get no gradient here.
    """
    input = floating(input)
    axes = axes_of(dim, input)
    several = isinstance(spacing, (tuple, list)) and len(spacing) > 0
    steps = spacing if several else (spacing,) * len(axes)
    return tuple(_slope(input, axis, steps[place], edge_order) for place, axis in enumerate(axes))


def _slope(input: Any, axis: int, step: Any, edge_order: int) -> Any:
    size = input.shape[axis]
    if size < edge_order + 1:
        raise RuntimeError(f"torch.gradient needs {edge_order + 1} elements of an axis, not {size}")
    is_tensor = isinstance(step, ms.Tensor) and step.ndim == 1
    places = step.asnumpy().astype(np.float64) if is_tensor else np.arange(size) * float(step)
    at, weights = _three_points(places, edge_order)
    shape = [-1 if one == axis else 1 for one in range(input.ndim)]
    found: Any = 0
    for number in range(3):
        factor = ms.Tensor(weights[:, number].reshape(shape)).astype(input.dtype)
        found = found + take(input, axis, at[:, number]) * factor
    return found


def _three_points(x: Numbers, edge_order: int) -> tuple[Numbers, Numbers]:
    """For each place three positions, and the weights with which their values make the slope."""
    size = len(x)
    starts = np.clip(np.arange(size) - 1, 0, max(size - 3, 0))
    at = np.minimum(starts[:, None] + np.arange(3), size - 1)
    weights = np.zeros((size, 3))
    if size > 2:
        a, b, c = x[at].T
        weights[:, 0] = (2 * x - b - c) / ((a - b) * (a - c))
        weights[:, 1] = (2 * x - a - c) / ((b - a) * (b - c))
        weights[:, 2] = (2 * x - a - b) / ((c - a) * (c - b))
    if edge_order == 1:
        at[0], at[-1] = (0, 1, 1), (size - 2, size - 1, size - 1)
        first, last = 1 / (x[1] - x[0]), 1 / (x[-1] - x[-2])
        weights[0], weights[-1] = (-first, first, 0), (-last, last, 0)
    # What has no weight is not read: its inf or nan would become nan.
    return np.where(np.abs(weights) > 0, at, at[:, :1]), weights


class Histogram(NamedTuple):
    """What `torch.histogram` and `torch.histogramdd` return."""

    hist: Any
    bin_edges: Any


def _edges(values: Numbers, bins: Any, limits: Any) -> Numbers:
    """The edges of bins: given, or equal ones over limits or over all values."""
    if isinstance(bins, ms.Tensor):
        return np.asarray(bins.asnumpy())
    low, high = limits if limits is not None else (0, 1)
    if limits is None and values.size:
        low, high = values.min(), values.max()
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1, dtype=values.dtype)


def histogram(
    input: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False
) -> Histogram:
    """How many elements each bin holds, and the edges of the bins, by numpy.

    There is no gradient in torch either.
    """
    values = ops.stop_gradient(input).asnumpy().reshape(-1)
    weights = None if weight is None else ops.stop_gradient(weight).asnumpy().reshape(-1)
    edges = _edges(values, bins, range)
    counts, _ = np.histogram(values, edges, weights=weights, density=bool(density))
    return Histogram(ms.Tensor(counts.astype(values.dtype)), ms.Tensor(edges))


def histogramdd(
    input: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False
) -> Histogram:
    """How many of the last axis' points each box holds, and the edges of each axis, by numpy.

    range: two numbers for each axis, one after the other.  There is no gradient in torch either.
    """
    points = ops.stop_gradient(input).asnumpy().reshape(-1, input.shape[-1])
    weights = None if weight is None else ops.stop_gradient(weight).asnumpy().reshape(-1)
    axes = np.arange(points.shape[1])
    several = isinstance(bins, (tuple, list))
    edges = [
        _edges(points[:, at], bins[at] if several else bins, _limits(range, int(at))) for at in axes
    ]
    counts, _ = np.histogramdd(points, edges, weights=weights, density=bool(density))
    made = tuple(ms.Tensor(edge) for edge in edges)
    return Histogram(ms.Tensor(counts.astype(points.dtype)), made)


def _limits(given: Sequence[float] | None, axis: int) -> Any:
    return None if given is None else (given[2 * axis], given[2 * axis + 1])
