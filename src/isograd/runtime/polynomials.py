"""Orthogonal polynomials by their recurrences, as torch.special has them.

MindSpore has none.  torch gives no gradient through them: neither do these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.making import floating, promote_types

#: From (k, x, degree k - 1, degree k) to degree k + 1.
Step = Callable[[int, Any, Any, Any], Any]


def _together(input: Any, n: Any) -> tuple[Any, Any]:
    """The place and the degree: tensors of one shape, or a degree as a number."""
    if not isinstance(n, ms.Tensor):
        return ops.stop_gradient(floating(input)), int(n)
    if not isinstance(input, ms.Tensor):
        dtype = floating(n).dtype
        return ops.full(tuple(n.shape), float(input), dtype=dtype), n.astype(ms.int64)
    kind = promote_types(input.dtype, n.dtype)
    x = floating(ops.stop_gradient(input).astype(kind))
    shape = np.broadcast_shapes(tuple(x.shape), tuple(n.shape))
    return ops.broadcast_to(x, shape), ops.broadcast_to(n.astype(ms.int64), shape)


def _by_recurrence(input: Any, n: Any, first: Callable[[Any], Any], step: Step) -> Any:
    """The polynomial of degree n, whose first degree is `first`; 0 for a degree below 0."""
    x, degree = _together(input, n)
    previous, current = ops.ones_like(x), first(x)
    if isinstance(degree, int):
        if degree <= 0:
            return previous if degree == 0 else ops.zeros_like(x)
        for k in range(1, degree):
            previous, current = current, step(k, x, previous, current)
        return current
    found = ops.where(degree == 0, previous, ops.zeros_like(x))
    highest = int(degree.max()) if degree.size else 0
    for k in range(1, highest + 1):
        found = ops.where(degree == k, current, found)
        previous, current = current, step(k, x, previous, current)
    return found


def _double(k: int, x: Any, previous: Any, current: Any) -> Any:
    return (x + x) * current - previous


def _double_shifted(k: int, x: Any, previous: Any, current: Any) -> Any:
    y = x + x - 1
    return (y + y) * current - previous


def chebyshev_polynomial_t(input: Any, n: Any) -> Any:
    """Of the first kind: cos(n acos x)."""
    return _by_recurrence(input, n, lambda x: x, _double)


def chebyshev_polynomial_u(input: Any, n: Any) -> Any:
    """Of the second kind."""
    return _by_recurrence(input, n, lambda x: x + x, _double)


def chebyshev_polynomial_v(input: Any, n: Any) -> Any:
    """Of the third kind."""
    return _by_recurrence(input, n, lambda x: x + x - 1, _double)


def chebyshev_polynomial_w(input: Any, n: Any) -> Any:
    """Of the fourth kind."""
    return _by_recurrence(input, n, lambda x: x + x + 1, _double)


def shifted_chebyshev_polynomial_t(input: Any, n: Any) -> Any:
    """Of the first kind, at 2x - 1."""
    return _by_recurrence(input, n, lambda x: x + x - 1, _double_shifted)


def shifted_chebyshev_polynomial_u(input: Any, n: Any) -> Any:
    """Of the second kind, at 2x - 1."""
    return _by_recurrence(input, n, lambda x: 4 * x - 2, _double_shifted)


def shifted_chebyshev_polynomial_v(input: Any, n: Any) -> Any:
    """Of the third kind, at 2x - 1."""
    return _by_recurrence(input, n, lambda x: 4 * x - 3, _double_shifted)


def shifted_chebyshev_polynomial_w(input: Any, n: Any) -> Any:
    """Of the fourth kind, at 2x - 1."""
    return _by_recurrence(input, n, lambda x: 4 * x - 1, _double_shifted)


def _limited(found: Any, n: Any) -> Any:
    """Not a number above the degree that torch computes: 128 in float32, 512 in float64."""
    most = 512 if found.dtype == ms.float64 else 128
    if not isinstance(n, ms.Tensor):
        return ops.full_like(found, float("nan")) if int(n) > most else found
    return ops.where(n.astype(ms.int64) > most, ops.full_like(found, float("nan")), found)


def hermite_polynomial_h(input: Any, n: Any) -> Any:
    """The physicist's."""

    def step(k: int, x: Any, previous: Any, current: Any) -> Any:
        return (x + x) * current - 2 * k * previous

    return _limited(_by_recurrence(input, n, lambda x: x + x, step), n)


def hermite_polynomial_he(input: Any, n: Any) -> Any:
    """The probabilist's."""

    def step(k: int, x: Any, previous: Any, current: Any) -> Any:
        return x * current - k * previous

    return _limited(_by_recurrence(input, n, lambda x: x, step), n)


def laguerre_polynomial_l(input: Any, n: Any) -> Any:
    """Laguerre's."""

    def step(k: int, x: Any, previous: Any, current: Any) -> Any:
        return ((2 * k + 1 - x) * current - k * previous) / (k + 1)

    return _by_recurrence(input, n, lambda x: 1 - x, step)


def legendre_polynomial_p(input: Any, n: Any) -> Any:
    """Legendre's."""

    def step(k: int, x: Any, previous: Any, current: Any) -> Any:
        return ((2 * k + 1) * x * current - k * previous) / (k + 1)

    return _by_recurrence(input, n, lambda x: x, step)
