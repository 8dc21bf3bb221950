"""torch.distributions: the maps that transforms are made of, of numbers, vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import cholesky
from isograd.runtime.basics import constant
from isograd.runtime.distributions_base import sum_of_last, together
from isograd.runtime.distributions_constraints import (
    IndependentConstraint,
    corr_cholesky_constraint,
    lower_cholesky_constraint,
    positive_constraint,
    positive_definite_constraint,
    real_constraint,
    real_matrix_constraint,
    real_vector_constraint,
    simplex_constraint,
    symmetric_interval_constraint,
    unit_interval_constraint,
)
from isograd.runtime.distributions_transforms import Transform
from isograd.runtime.exact import exp, expm1, log1p, tanh
from isograd.runtime.making import finfo
from isograd.runtime.pointwise import log_sigmoid, softplus
from isograd.runtime.reductions import cumprod


def _shape_beside(shape: Any, *values: Any) -> tuple[int, ...]:
    """A shape broadcast with tensors'; numbers have none."""
    return np.broadcast_shapes(tuple(shape), *(tuple(getattr(v, "shape", ())) for v in values))


class AffineTransform(Transform):
    """loc + scale x."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        if event_dim:
            self.domain = self.codomain = IndependentConstraint(real_constraint, event_dim)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        return type(self)(self.loc, self.scale, self.event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(_are_equal(mine, theirs) for mine, theirs in pairs)

    @property
    def sign(self) -> Any:
        """The scale's."""
        if isinstance(self.scale, ms.Tensor):
            return ops.sign(self.scale)
        return int(self.scale > 0) - int(self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the scale's size, added up over the event."""
        (scale,) = together(self.scale)
        logs = ops.log(ops.abs(scale.astype(x.dtype) if scale.ndim == 0 else scale))
        count, shape = self.event_dim, tuple(x.shape)
        if not isinstance(self.scale, ms.Tensor):
            logs = ops.broadcast_to(logs, shape)
        return ops.broadcast_to(sum_of_last(logs, count), shape[: len(shape) - count])

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of a result by that of an input."""
        return _shape_beside(shape, self.loc, self.scale)

    inverse_shape = forward_shape


def _are_equal(mine: Any, theirs: Any) -> bool:
    """Of numbers or tensors, of which all elements count."""
    if isinstance(mine, ms.Tensor) or isinstance(theirs, ms.Tensor):
        return bool((mine == theirs).all())
    return bool(mine == theirs)


class ExpTransform(Transform):
    """e to the power x."""

    codomain = positive_constraint
    bijective = True
    sign = +1
    _is_plain = True

    def _call(self, x: Any) -> Any:
        return exp(x)

    def _inverse(self, y: Any) -> Any:
        return ops.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """x."""
        return x


class PowerTransform(Transform):
    """x to a power."""

    domain = positive_constraint
    codomain = positive_constraint
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = together(exponent)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        return self if self._cache_size == cache_size else type(self)(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        """The exponent's."""
        return ops.sign(self.exponent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _are_equal(self.exponent, other.exponent)

    def _call(self, x: Any) -> Any:
        return ops.pow(x, self.exponent)

    def _inverse(self, y: Any) -> Any:
        return ops.pow(y, 1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative's size."""
        return ops.log(ops.abs(self.exponent * y / x))

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of a result by that of an input."""
        return _shape_beside(shape, self.exponent)

    inverse_shape = forward_shape


def clipped_sigmoid(x: Any) -> Any:
    """The sigmoid, away from 0 and 1."""
    return ops.clamp(ops.sigmoid(x), finfo(x.dtype).tiny, 1.0 - finfo(x.dtype).eps)


class SigmoidTransform(Transform):
    """The sigmoid."""

    codomain = unit_interval_constraint
    bijective = True
    sign = +1
    _is_plain = True

    def _call(self, x: Any) -> Any:
        return clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        y = ops.clamp(y, finfo(y.dtype).tiny, 1.0 - finfo(y.dtype).eps)
        return ops.log(y) - log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """By x alone."""
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """log(1 + exp(x))."""

    codomain = positive_constraint
    bijective = True
    sign = +1
    _is_plain = True

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return ops.log(-expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """By x alone."""
        return -softplus(-x)


class TanhTransform(Transform):
    """The hyperbolic tangent."""

    codomain = symmetric_interval_constraint
    bijective = True
    sign = +1
    _is_plain = True

    def _call(self, x: Any) -> Any:
        return tanh(x)

    def _inverse(self, y: Any) -> Any:
        return ops.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """By x alone."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """The absolute value; its way back is the positive one."""

    codomain = positive_constraint
    _is_plain = True

    def _call(self, x: Any) -> Any:
        return ops.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class CumulativeDistributionTransform(Transform):
    """A distribution's cdf."""

    codomain = unit_interval_constraint
    bijective = True
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        same = self._cache_size == cache_size
        return self if same else type(self)(self.distribution, cache_size)

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The distribution's log_prob."""
        return self.distribution.log_prob(x)


class SoftmaxTransform(Transform):
    """The softmax of the last axis."""

    domain = real_vector_constraint
    codomain = simplex_constraint
    _is_plain = True

    def _call(self, x: Any) -> Any:
        powers = exp(x - x.max(axis=-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def _inverse(self, y: Any) -> Any:
        return ops.log(y)


def _counted_down(count: int, like: Any) -> Any:
    """From a number to 1."""
    return constant(np.arange(count, 0, -1), like)


class StickBreakingTransform(Transform):
    """Shares that are broken off what is left, by the last axis; one more than it has."""

    domain = real_vector_constraint
    codomain = simplex_constraint
    bijective = True
    _is_plain = True

    def _call(self, x: Any) -> Any:
        share = clipped_sigmoid(x - ops.log(_counted_down(x.shape[-1], x)))
        ones = ops.ones_like(share[..., :1])
        left = cumprod(1 - share, -1)
        return ops.cat([share, ones], -1) * ops.cat([ones, left], -1)

    def _inverse(self, y: Any) -> Any:
        shares = y[..., :-1]
        left = ops.clamp(1 - ops.cumsum(shares, -1), finfo(y.dtype).tiny)
        offset = _counted_down(shares.shape[-1], y)
        return ops.log(shares) - ops.log(left) + ops.log(offset)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Of the shares but the last."""
        x = x - ops.log(_counted_down(x.shape[-1], x))
        return (-x + log_sigmoid(x) + ops.log(y[..., :-1])).sum(-1)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """One more."""
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """One less."""
        return (*shape[:-1], shape[-1] - 1)


def _diagonal_mask(x: Any) -> Any:
    """Ones on the diagonal of the last two axes."""
    return constant(np.eye(x.shape[-1]), x)


class LowerCholeskyTransform(Transform):
    """A lower triangular matrix with the exponentials of the diagonal."""

    domain = real_matrix_constraint
    codomain = lower_cholesky_constraint
    _is_plain = True

    def _call(self, x: Any) -> Any:
        eye = _diagonal_mask(x)
        return ops.tril(x, -1) + exp(x * eye) * eye

    def _inverse(self, y: Any) -> Any:
        eye = _diagonal_mask(y)
        return ops.tril(y, -1) + ops.log(y * eye + (1 - eye)) * eye


class PositiveDefiniteTransform(Transform):
    """A positive definite matrix by its triangular root."""

    domain = real_matrix_constraint
    codomain = positive_definite_constraint
    _is_plain = True

    def _call(self, x: Any) -> Any:
        root = LowerCholeskyTransform()(x)
        return ops.matmul(root, ops.swapaxes(root, -2, -1))

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(cholesky(y))


def _below_diagonal(matrix: Any, diagonal: int) -> Any:
    """What stands at and below a diagonal, row by row."""
    count = matrix.shape[-1]
    rows, columns = np.tril_indices(count, diagonal)
    flat = matrix.reshape((*matrix.shape[:-2], count * count))
    return ops.gather(flat, ms.Tensor(rows * count + columns, ms.int64), -1)


class CorrCholeskyTransform(Transform):
    """The triangular root of a correlation matrix."""

    domain = real_vector_constraint
    codomain = corr_cholesky_constraint
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = finfo(x.dtype).eps
        x = ops.clamp(tanh(x), -1 + eps, 1 - eps)
        count = self.forward_shape(x.shape)[-1]
        places = np.zeros((count, count), np.int64)
        places[np.tril_indices(count, -1)] = np.arange(1, x.shape[-1] + 1)
        padded = ops.cat([ops.zeros_like(x[..., :1]), x], -1)
        below = ops.gather(padded, ms.Tensor(places.reshape(-1)), -1)
        below = below.reshape((*x.shape[:-1], count, count))
        left = cumprod(ops.sqrt(1 - below * below), -1)
        left = ops.cat([ops.ones_like(left[..., :1]), left[..., :-1]], -1)
        return (below + _diagonal_mask(below)) * left

    def _inverse(self, y: Any) -> Any:
        left = 1 - ops.cumsum(y * y, -1)
        left = ops.cat([ops.ones_like(left[..., :1]), left[..., :-1]], -1)
        share = _below_diagonal(y, -1) / ops.sqrt(_below_diagonal(left, -1))
        return (log1p(share) - log1p(-share)) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        """Of the breaking of each row and of the tanh."""
        left = _below_diagonal(1 - ops.cumsum(y * y, -1), -2)
        rows = 0.5 * ops.log(left).sum(-1) if left.shape[-1] else 0.0
        return rows - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The rows and columns of the matrix."""
        count = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if count * (count - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], count, count)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """How many numbers stand below the diagonal."""
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)
