"""torch.distributions: the transforms from all numbers to what a constraint allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isograd.runtime.distributions_constraints import (
    CatConstraint,
    CorrCholeskyConstraint,
    GreaterThanConstraint,
    GreaterThanEqConstraint,
    HalfOpenIntervalConstraint,
    IndependentConstraint,
    IntervalConstraint,
    LessThanConstraint,
    LowerCholeskyConstraint,
    PositiveDefiniteConstraint,
    PositiveSemidefiniteConstraint,
    RealConstraint,
    SimplexConstraint,
    StackConstraint,
)
from isograd.runtime.distributions_maps import (
    AffineTransform,
    CorrCholeskyTransform,
    ExpTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from isograd.runtime.distributions_transforms import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
    identity_transform,
)


class ConstraintRegistry:
    """A transform for each kind of constraint, to which a project may add its own."""

    def __init__(self, bijective: bool = False) -> None:
        self.bijective = bijective
        self._registry: dict[Any, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Keep what makes the transform for a constraint's kind; a decorator without it."""
        if factory is None:
            return lambda given: self.register(constraint, given)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        kind = type(constraint)
        if kind in self._registry:
            return self._registry[kind](constraint)
        found = _of_bounds(constraint) or _of_parts(constraint, self)
        found = found or _of_vectors(constraint, self.bijective)
        if found is None:
            raise NotImplementedError(f"Cannot transform {kind.__name__} constraints")
        return found


def _of_bounds(constraint: Any) -> Any:
    """For numbers, or None."""
    kind = type(constraint)
    if kind is RealConstraint:
        return identity_transform
    if kind in (GreaterThanConstraint, GreaterThanEqConstraint):
        return ComposeTransform([ExpTransform(), AffineTransform(constraint.lower_bound, 1)])
    if kind is LessThanConstraint:
        return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])
    if kind in (IntervalConstraint, HalfOpenIntervalConstraint):
        low, high = constraint.lower_bound, constraint.upper_bound
        are_numbers = isinstance(low, (int, float)) and isinstance(high, (int, float))
        if are_numbers and low == 0 and high == 1:
            return SigmoidTransform()
        return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])
    return None


def _of_parts(constraint: Any, registry: Any) -> Any:
    """For combinations of other constraints, or None."""
    kind = type(constraint)
    if kind is IndependentConstraint:
        base = registry(constraint.base_constraint)
        return IndependentTransform(base, constraint.reinterpreted_batch_ndims)
    if kind not in (CatConstraint, StackConstraint):
        return None
    parts = [registry(part) for part in constraint.cseq]
    if kind is StackConstraint:
        return StackTransform(parts, constraint.dim)
    return CatTransform(parts, constraint.dim, constraint.lengths)


def _of_vectors(constraint: Any, bijective: bool) -> Any:
    """For vectors and matrices, or None."""
    kind = type(constraint)
    if kind is SimplexConstraint:
        return StickBreakingTransform() if bijective else SoftmaxTransform()
    if kind is CorrCholeskyConstraint:
        return CorrCholeskyTransform()
    if kind is LowerCholeskyConstraint and not bijective:
        return LowerCholeskyTransform()
    if kind in (PositiveDefiniteConstraint, PositiveSemidefiniteConstraint) and not bijective:
        return PositiveDefiniteTransform()
    return None


biject_to = ConstraintRegistry(True)
transform_to = ConstraintRegistry()
