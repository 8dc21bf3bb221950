"""torch.distributions: vectors and matrices by covariances."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import cholesky, inverted
from isograd.runtime.basics import constant
from isograd.runtime.distributions_base import (
    Distribution,
    ExponentialFamily,
    normal_draw,
    together,
)
from isograd.runtime.distributions_gamma import Beta, at_least_tiny, standard_gamma
from isograd.runtime.making import finfo


def _turned(matrix: Any) -> Any:
    return ops.swapaxes(matrix, -2, -1)


def _times(matrix: Any, vector: Any) -> Any:
    """A matrix times a vector, for each of a batch."""
    return ops.matmul(matrix, vector.expand_dims(-1)).squeeze(-1)


def _diagonal(matrix: Any) -> Any:
    return (matrix * constant(np.eye(matrix.shape[-1]), matrix)).sum(-1)


def _on_diagonal(vector: Any) -> Any:
    return vector.expand_dims(-1) * constant(np.eye(vector.shape[-1]), vector)


def _lower_inverse(root: Any) -> Any:
    """The inverse of a lower triangular matrix; what stands above the diagonal is not read."""
    return inverted(ops.tril(root))


def _root_of_precision(precision: Any) -> Any:
    """The triangular root of the inverse."""
    root = cholesky(ops.flip(precision, (-2, -1)))
    return _lower_inverse(_turned(ops.flip(root, (-2, -1))))


def _by_precision(root: Any) -> Any:
    """The inverse of what a triangular root is of, with torch's gradient by all its elements."""
    back = inverted(root)
    return ops.matmul(_turned(back), back)


class _ByRoot(Distribution):
    """What a triangular root of a covariance says, of which one form is given."""

    def _set(self, covariance_matrix: Any, precision_matrix: Any, scale_tril: Any) -> None:
        given = (covariance_matrix, precision_matrix, scale_tril)
        if sum(one is not None for one in given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril "
                "may be specified."
            )
        self._covariance, self._precision = covariance_matrix, precision_matrix
        if scale_tril is not None:
            self.scale_tril = scale_tril
        elif covariance_matrix is not None:
            self.scale_tril = cholesky(covariance_matrix)
        else:
            self.scale_tril = _root_of_precision(precision_matrix)

    def _spread(self, shape: tuple[int, ...]) -> None:
        """The matrices, broadcast to a batch."""
        for name in ("_covariance", "_precision", "scale_tril"):
            matrix = getattr(self, name)
            if matrix is not None:
                setattr(self, name, ops.broadcast_to(matrix, (*shape, *matrix.shape[-2:])))

    @property
    def covariance_matrix(self) -> Any:
        """As it was given, or by the root."""
        if self._covariance is not None:
            return self._covariance
        return ops.matmul(self.scale_tril, _turned(self.scale_tril))

    @property
    def precision_matrix(self) -> Any:
        """As it was given, or by the root."""
        return _by_precision(self.scale_tril) if self._precision is None else self._precision

    def _half_log_det(self) -> Any:
        return ops.log(_diagonal(self.scale_tril)).sum(-1)


class MultivariateNormal(_ByRoot):
    """A normal vector."""

    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        self._set(covariance_matrix, precision_matrix, scale_tril)
        shape = np.broadcast_shapes(tuple(self.scale_tril.shape[:-2]), tuple(loc.shape[:-1]))
        self._spread(shape)
        self.loc = ops.broadcast_to(loc, (*shape, loc.shape[-1]))
        super().__init__(shape, self.loc.shape[-1:])

    @property
    def mean(self) -> Any:
        """The centre."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """The covariance's diagonal."""
        return (self.scale_tril * self.scale_tril).sum(-1)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.loc + _times(self.scale_tril, normal_draw(shape, self.loc.dtype))

    def _log_det(self) -> Any:
        return 2 * self._half_log_det()

    def _mahalanobis(self, away: Any) -> Any:
        """The squared distance by the covariance."""
        away = _times(_lower_inverse(self.scale_tril), away)
        return (away * away).sum(-1)

    def _roots(self) -> list[Any]:
        """Matrices whose squares add up to the covariance."""
        return [self.scale_tril]

    def _trace_of(self, other: Any) -> Any:
        """The trace of the precision times another's covariance."""
        back = _lower_inverse(self.scale_tril)
        parts = [ops.matmul(back, root) for root in other._roots()]
        return sum((part * part).sum((-2, -1)) for part in parts)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        size = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (size + self._mahalanobis(value - self.loc)) - self._half_log_det()

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        size = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return 0.5 * size + self._half_log_det()


class LowRankMultivariateNormal(Distribution):
    """A normal vector whose covariance is a thin matrix squared and a diagonal."""

    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: Any = None) -> None:
        size = loc.shape[-1]
        if cov_factor.shape[-2] != size or cov_diag.shape[-1] != size:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {size} x m "
                f"and cov_diag a batch of vectors with {size} elements"
            )
        shape = np.broadcast_shapes(
            tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1])
        )
        self.loc = ops.broadcast_to(loc, (*shape, size))
        self.cov_factor = ops.broadcast_to(cov_factor, (*shape, *cov_factor.shape[-2:]))
        self.cov_diag = ops.broadcast_to(cov_diag, (*shape, size))
        scaled = _turned(self.cov_factor) / self.cov_diag.expand_dims(-2)
        inner = ops.matmul(scaled, self.cov_factor)
        self._capacitance_tril = cholesky(inner + constant(np.eye(inner.shape[-1]), inner))
        super().__init__(shape, (size,))

    @property
    def mean(self) -> Any:
        """The centre."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """The covariance's diagonal."""
        return (self.cov_factor * self.cov_factor).sum(-1) + self.cov_diag

    @property
    def scale_tril(self) -> Any:
        """The covariance's triangular root."""
        width = ops.sqrt(self.cov_diag).expand_dims(-1)
        thin = self.cov_factor / width
        inner = ops.matmul(thin, _turned(thin))
        return width * cholesky(inner + constant(np.eye(inner.shape[-1]), inner))

    @property
    def covariance_matrix(self) -> Any:
        """The whole covariance."""
        square = ops.matmul(self.cov_factor, _turned(self.cov_factor))
        return square + _on_diagonal(self.cov_diag)

    @property
    def precision_matrix(self) -> Any:
        """The covariance's inverse, by Woodbury's formula."""
        inner = self._inner()
        return _on_diagonal(1 / self.cov_diag) - ops.matmul(_turned(inner), inner)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        dtype = self.loc.dtype
        thin = normal_draw((*shape[:-1], self.cov_factor.shape[-1]), dtype)
        each = ops.sqrt(self.cov_diag) * normal_draw(shape, dtype)
        return self.loc + _times(self.cov_factor, thin) + each

    def _log_det(self) -> Any:
        inner = ops.log(_diagonal(self._capacitance_tril)).sum(-1)
        return 2 * inner + ops.log(self.cov_diag).sum(-1)

    def _inner(self) -> Any:
        """What is squared and taken off the diagonal's reciprocals for the precision."""
        scaled = _turned(self.cov_factor) / self.cov_diag.expand_dims(-2)
        return ops.matmul(_lower_inverse(self._capacitance_tril), scaled)

    def _mahalanobis(self, away: Any) -> Any:
        """The squared distance by the covariance."""
        inner = _times(self._inner(), away)
        return (away * away / self.cov_diag).sum(-1) - (inner * inner).sum(-1)

    def _roots(self) -> list[Any]:
        """Matrices whose squares add up to the covariance."""
        return [self.cov_factor, _on_diagonal(ops.sqrt(self.cov_diag))]

    def _trace_of(self, other: Any) -> Any:
        """The trace of the precision times another's covariance."""
        found: Any = 0.0
        for root in other._roots():
            part = ops.matmul(self._inner(), root)
            scaled = root * root / self.cov_diag.expand_dims(-1)
            found = found + scaled.sum((-2, -1)) - (part * part).sum((-2, -1))
        return found

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        size = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (size + self._log_det() + self._mahalanobis(value - self.loc))

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        size = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return 0.5 * (size + self._log_det())


def _steps(count: int, like: Any) -> Any:
    """Halves of the numbers from 0, to take off a last axis."""
    return constant(np.arange(count) / 2, like)


def _log_multigamma(a: Any, count: int) -> Any:
    """The logarithm of the multivariate gamma function."""
    parts = ops.lgamma(a.expand_dims(-1) - _steps(count, a)).sum(-1)
    return parts + count * (count - 1) / 4 * math.log(math.pi)


class Wishart(_ByRoot, ExponentialFamily):
    """The sum of squares of normal vectors, a matrix.

    A draw is not tried again where it is singular by rounding.
    """

    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:
        self._set(covariance_matrix, precision_matrix, scale_tril)
        root = self.scale_tril
        freedom = df if isinstance(df, ms.Tensor) else ms.Tensor(float(df), root.dtype)
        shape = np.broadcast_shapes(tuple(root.shape[:-2]), tuple(freedom.shape))
        self._spread(shape)
        self.df = ops.broadcast_to(freedom, shape)
        super().__init__(shape, root.shape[-2:])

    @property
    def mean(self) -> Any:
        """Degrees of freedom times the covariance."""
        return self.df.reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """The likeliest matrix; nan where there is none."""
        factor = self.df - self._event_shape[-1] - 1
        factor = ops.where(factor <= 0, ops.full_like(factor, math.nan), factor)
        return factor.reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        v = self.covariance_matrix
        diagonal = _diagonal(v)
        outer = diagonal.expand_dims(-1) * diagonal.expand_dims(-2)
        return self.df.reshape((*self._batch_shape, 1, 1)) * (v * v + outer)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        """By Bartlett's decomposition."""
        half = 0.5 * self.df.expand_dims(-1) - _steps(shape[-1], self.df)
        square = at_least_tiny(2 * standard_gamma(ops.broadcast_to(half, shape[:-1])))
        width = ops.clamp(ops.sqrt(square), finfo(square.dtype).eps)
        noise = ops.tril(normal_draw(shape, square.dtype), -1) + _on_diagonal(width)
        root = ops.matmul(self.scale_tril, noise)
        return ops.matmul(root, _turned(root))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        nu, count = self.df, self._event_shape[-1]
        size = -nu * (count * math.log(2) / 2 + self._half_log_det())
        log_det = 2 * ops.log(_diagonal(cholesky(value))).sum(-1)
        trace = (_by_precision(self.scale_tril) * _turned(value)).sum((-2, -1))
        size = size - _log_multigamma(nu / 2, count)
        return size + (nu - count - 1) / 2 * log_det - trace / 2

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        nu, count = self.df, self._event_shape[-1]
        half = nu / 2
        slope = ops.digamma(half.expand_dims(-1) - _steps(count, nu)).sum(-1)
        size = (count + 1) * (count * math.log(2) / 2 + self._half_log_det())
        size = size + _log_multigamma(half, count)
        return size - (nu - count - 1) / 2 * slope + nu * count / 2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        count = self._event_shape[-1]
        half = y + (count + 1) / 2
        log_det = 2 * ops.log(_diagonal(cholesky(-2 * x))).sum(-1)
        return half * (-log_det + math.log(2) * count) + _log_multigamma(half, count)


class LKJCholesky(Distribution):
    """The triangular root of a correlation matrix, by Lewandowski, Kurowicka and Joe (2009)."""

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: Any = None) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = together(concentration)
        steps = constant(np.maximum(np.arange(dim) - 1, 0), self.concentration)
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(steps + 0.5, marginal.expand_dims(-1) - 0.5 * steps)
        super().__init__(self.concentration.shape, (dim, dim))

    def _draw(self, shape: tuple[int, ...]) -> Any:
        """The onion method."""
        share = self._beta._draw(shape[:-1]).expand_dims(-1)
        noise = ops.tril(normal_draw(shape, share.dtype), -1)
        length = ops.sqrt((noise * noise).sum(-1, keepdims=True))
        first = ms.Tensor(np.arange(self.dim) == 0).reshape((self.dim, 1))
        length = ops.where(first, ops.ones_like(length), length)
        rows = ops.sqrt(share) * (noise / length)
        rest = ops.clamp(1 - (rows * rows).sum(-1), finfo(rows.dtype).tiny)
        return rows + _on_diagonal(ops.sqrt(rest))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        order = constant(self.dim - np.arange(2, self.dim + 1), self.concentration)
        order = 2 * (self.concentration - 1).expand_dims(-1) + order
        found = (order * ops.log(_diagonal(value)[..., 1:])).sum(-1)
        count = self.dim - 1
        alpha = self.concentration + 0.5 * count
        norm = _log_multigamma(alpha - 0.5, count) - ops.lgamma(alpha) * count
        return found - 0.5 * count * math.log(math.pi) - norm
