"""torch.distributions.constraints: which values a parameter or a draw may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.algebra import eigvalsh
from isograd.runtime.making import finfo


class Constraint:
    """A region of values.

    event_dim: how many axes at the end one value has.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Where values are inside, one answer for each event."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__


class BooleanConstraint(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return ops.logical_or(value == 0, value == 1)


class OneHotConstraint(Constraint):
    """Vectors with one 1, else zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        """Which vectors are inside."""
        are_marks = ops.logical_or(value == 0, value == 1).all(-1)
        return ops.logical_and(are_marks, value.sum(-1) == 1)


class RealConstraint(Constraint):
    """All numbers; nan is none."""

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return ops.equal(value, value)


class GreaterThanConstraint(Constraint):
    """Above a bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return value > self.lower_bound


class GreaterThanEqConstraint(Constraint):
    """At a bound or above."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return value >= self.lower_bound


class LessThanConstraint(Constraint):
    """Below a bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return value < self.upper_bound


class IntervalConstraint(Constraint):
    """Between two bounds, which belong to it."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return ops.logical_and(value >= self.lower_bound, value <= self.upper_bound)


class HalfOpenIntervalConstraint(IntervalConstraint):
    """Between two bounds, of which the lower belongs to it."""

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return ops.logical_and(value >= self.lower_bound, value < self.upper_bound)


class IntegerIntervalConstraint(IntervalConstraint):
    """Whole numbers between two bounds, which belong to it."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return ops.logical_and(value % 1 == 0, super().check(value))


class IntegerGreaterThanConstraint(GreaterThanEqConstraint):
    """Whole numbers from a bound on."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        return ops.logical_and(value % 1 == 0, super().check(value))


class IndependentConstraint(Constraint):
    """Axes at the end that are one event of another constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        """Which events are inside in all parts."""
        result, count = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if result.ndim < count:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return result.reshape((*result.shape[: result.ndim - count], -1)).all(-1)


class SimplexConstraint(Constraint):
    """Vectors of numbers from 0 on that add up to 1."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        """Which vectors are inside."""
        return ops.logical_and((value >= 0).all(-1), ops.abs(value.sum(-1) - 1) < 1e-6)


class MultinomialConstraint(Constraint):
    """Vectors of numbers from 0 on that add up to a bound at most."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        """Which vectors are inside."""
        return ops.logical_and((value >= 0).all(-1), value.sum(-1) <= self.upper_bound)


class LowerTriangularConstraint(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        """Which matrices are inside."""
        return (ops.tril(value) == value).all((-2, -1))


class LowerCholeskyConstraint(LowerTriangularConstraint):
    """Such matrices with positive numbers on the diagonal."""

    def check(self, value: Any) -> Any:
        """Which matrices are inside."""
        is_positive = (ops.diagonal(value, 0, -2, -1) > 0).all(-1)
        return ops.logical_and(super().check(value), is_positive)


class CorrCholeskyConstraint(LowerCholeskyConstraint):
    """Such matrices whose rows have the length 1."""

    def check(self, value: Any) -> Any:
        """Which matrices are inside."""
        allowed = finfo(value.dtype).eps * value.shape[-1] * 10
        length = ops.sqrt((value * value).sum(-1))
        return ops.logical_and(super().check(value), (ops.abs(length - 1.0) <= allowed).all(-1))


class SquareConstraint(Constraint):
    """Matrices with as many rows as columns."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        """Which matrices are inside."""
        is_square = value.shape[-2] == value.shape[-1]
        return ops.full(tuple(value.shape[:-2]), is_square, dtype=ms.bool_)


class SymmetricConstraint(SquareConstraint):
    """Matrices that are their own transposes."""

    def check(self, value: Any) -> Any:
        """Which matrices are inside."""
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        turned = ops.swapaxes(value, -2, -1)
        return (ops.abs(value - turned) <= 1e-6 + 1e-5 * ops.abs(turned)).all((-2, -1))


class PositiveSemidefiniteConstraint(SymmetricConstraint):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value: Any) -> Any:
        """Which matrices are inside."""
        found = super().check(value)
        if not found.all():
            return found
        return (eigvalsh(value) >= 0).all(-1)


class PositiveDefiniteConstraint(SymmetricConstraint):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value: Any) -> Any:
        """Which matrices are inside."""
        found = super().check(value)
        if not found.all():
            return found
        return (eigvalsh(value) > 0).all(-1)


class CatConstraint(Constraint):
    """Constraints for parts of an axis."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        start, checks = 0, []
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(ops.narrow(value, self.dim, start, length)))
            start += length
        return ops.cat(checks, self.dim)


class StackConstraint(Constraint):
    """Constraints for the elements of an axis."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        deepest = max(c.event_dim for c in self.cseq)
        self.event_dim = deepest + (dim + deepest < 0)

    def check(self, value: Any) -> Any:
        """Where values are inside."""
        parts = ops.unbind(value, self.dim)
        checks = [c.check(part) for c, part in zip(self.cseq, parts, strict=True)]
        return ops.stack(checks, self.dim)


boolean_constraint = BooleanConstraint()
one_hot_constraint = OneHotConstraint()
nonnegative_integer_constraint = IntegerGreaterThanConstraint(0)
positive_integer_constraint = IntegerGreaterThanConstraint(1)
real_constraint = RealConstraint()
real_vector_constraint = IndependentConstraint(real_constraint, 1)
real_matrix_constraint = IndependentConstraint(real_constraint, 2)
positive_constraint = GreaterThanConstraint(0.0)
nonnegative_constraint = GreaterThanEqConstraint(0.0)
unit_interval_constraint = IntervalConstraint(0.0, 1.0)
symmetric_interval_constraint = IntervalConstraint(-1.0, 1.0)
simplex_constraint = SimplexConstraint()
lower_triangular_constraint = LowerTriangularConstraint()
lower_cholesky_constraint = LowerCholeskyConstraint()
corr_cholesky_constraint = CorrCholeskyConstraint()
square_constraint = SquareConstraint()
symmetric_constraint = SymmetricConstraint()
positive_semidefinite_constraint = PositiveSemidefiniteConstraint()
positive_definite_constraint = PositiveDefiniteConstraint()
