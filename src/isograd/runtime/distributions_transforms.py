"""torch.distributions: transforms, their inverses, chains and combinations.

`domain` and `codomain` say how many axes at the end are one event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mindspore import ops  # noqa: TID253

from isograd.runtime.distributions_base import sum_of_last
from isograd.runtime.distributions_constraints import (
    CatConstraint,
    IndependentConstraint,
    StackConstraint,
    real_constraint,
)


class Transform:
    """A map with the logarithm of its derivative; a cache of 1 remembers the last pair."""

    bijective = False
    domain: Any = real_constraint
    codomain: Any = real_constraint
    #: Whether all instances are equal.
    _is_plain = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: Any = (None, None)

    @property
    def event_dim(self) -> int:
        """How many axes at the end are one event, of both sides."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The way back."""
        if self._inv is None:
            self._inv = InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 where it rises, -1 where it falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other or (self._is_plain and type(self) is type(other))

    def __call__(self, x: Any) -> Any:
        if self._cache_size and x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = (x, y)
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size and y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = (x, y)
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative's determinant at a pair of values."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of a result by that of an input."""
        return tuple(shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of an input by that of a result."""
        return tuple(shape)


class InverseTransform(Transform):
    """A transform's way back."""

    def __init__(self, transform: Any) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    @property
    def domain(self) -> Any:
        """What the transform makes."""
        return self.inv.codomain

    @property
    def codomain(self) -> Any:
        """What the transform takes."""
        return self.inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether there is one way back."""
        return bool(self.inv.bijective)

    @property
    def sign(self) -> Any:
        """1 where it rises, -1 where it falls."""
        return self.inv.sign

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InverseTransform) and bool(self.inv == other.inv)

    def __call__(self, x: Any) -> Any:
        return self.inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The negated one of the transform."""
        return -self.inv.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inv!r})"

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of a result by that of an input."""
        found: tuple[int, ...] = self.inv.inverse_shape(shape)
        return found

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of an input by that of a result."""
        found: tuple[int, ...] = self.inv.forward_shape(shape)
        return found


def _deepened(constraint: Any, depth: int) -> Any:
    """A constraint whose events have so many axes."""
    more = depth - constraint.event_dim
    return IndependentConstraint(constraint, more) if more else constraint


class ComposeTransform(Transform):
    """Transforms one after another."""

    def __init__(self, parts: Sequence[Any], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @property
    def domain(self) -> Any:
        """What the first takes, as deep as what follows needs."""
        if not self.parts:
            return real_constraint
        depth = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            depth += part.domain.event_dim - part.codomain.event_dim
            depth = max(depth, part.domain.event_dim)
        return _deepened(self.parts[0].domain, depth)

    @property
    def codomain(self) -> Any:
        """What the last makes, as deep as what comes before needs."""
        if not self.parts:
            return real_constraint
        depth = self.parts[0].domain.event_dim
        for part in self.parts:
            depth += part.codomain.event_dim - part.domain.event_dim
            depth = max(depth, part.codomain.event_dim)
        return _deepened(self.parts[-1].codomain, depth)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        """The product of the parts'."""
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Any:
        """The ways back, from the last part."""
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        same = self._cache_size == cache_size
        return self if same else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of the parts'."""
        if not self.parts:
            return ops.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        depth, total = self.domain.event_dim, 0.0
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            found = part.log_abs_det_jacobian(before, after)
            total = total + sum_of_last(found, depth - part.domain.event_dim)
            depth += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of a result by that of an input."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of an input by that of a result."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last axes are one event."""

    def __init__(
        self, base_transform: Any, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = count = reinterpreted_batch_ndims
        self.domain = IndependentConstraint(base_transform.domain, count)
        self.codomain = IndependentConstraint(base_transform.codomain, count)
        self.bijective = base_transform.bijective

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        return type(self)(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @property
    def sign(self) -> Any:
        """The transform's."""
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        if x.ndim < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.ndim < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The transform's, added up over the event."""
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_of_last(found, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of a result by that of an input."""
        found: tuple[int, ...] = self.base_transform.forward_shape(shape)
        return found

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of an input by that of a result."""
        found: tuple[int, ...] = self.base_transform.inverse_shape(shape)
        return found


class ReshapeTransform(Transform):
    """The axes of an event in another shape."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        self.domain = IndependentConstraint(real_constraint, len(self.in_shape))
        self.codomain = IndependentConstraint(real_constraint, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        return type(self)(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Any) -> Any:
        return x.reshape((*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Any) -> Any:
        return y.reshape((*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """0."""
        return ops.zeros(tuple(x.shape[: x.ndim - len(self.in_shape)]), dtype=x.dtype)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of a result by that of an input."""
        return _reshaped(tuple(shape), self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of an input by that of a result."""
        return _reshaped(tuple(shape), self.out_shape, self.in_shape)


def _reshaped(
    shape: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...]
) -> tuple[int, ...]:
    cut = len(shape) - len(old)
    if cut < 0:
        raise ValueError("Too few dimensions on input")
    if shape[cut:] != old:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class _Several(Transform):
    """Transforms for the parts of an axis."""

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim
        self.bijective = all(part.bijective for part in self.transforms)

    def _parts(self, x: Any) -> Any:
        raise NotImplementedError

    def _joined(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        pairs = zip(self.transforms, self._parts(x), strict=True)
        return self._joined([part(value) for part, value in pairs])

    def _inverse(self, y: Any) -> Any:
        pairs = zip(self.transforms, self._parts(y), strict=True)
        return self._joined([part.inv(value) for part, value in pairs])

    def _slopes(self, x: Any, y: Any) -> list[Any]:
        rows = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return [part.log_abs_det_jacobian(before, after) for part, before, after in rows]


class CatTransform(_Several):
    """Transforms for stretches of an axis."""

    def __init__(
        self, tseq: Sequence[Any], dim: int = 0, lengths: Any = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.domain = CatConstraint([t.domain for t in tseq], dim, self.lengths)
        self.codomain = CatConstraint([t.codomain for t in tseq], dim, self.lengths)

    @property
    def event_dim(self) -> int:
        """The deepest part's."""
        return int(max(part.event_dim for part in self.transforms))

    @property
    def length(self) -> int:
        """Of the axis."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        return type(self)(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Any) -> Any:
        if x.shape[self.dim] != self.length:
            raise AssertionError(f"{self.length} parts for an axis of {x.shape[self.dim]}")
        starts = [sum(self.lengths[:place]) for place in range(len(self.lengths))]
        pairs = zip(starts, self.lengths, strict=True)
        return [ops.narrow(x, self.dim, start, length) for start, length in pairs]

    def _joined(self, parts: list[Any]) -> Any:
        return ops.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The parts' along the axis, or their sum where the axis belongs to an event."""
        pairs = zip(self.transforms, self._slopes(x, y), strict=True)
        found = [sum_of_last(slope, self.event_dim - part.event_dim) for part, slope in pairs]
        axis = (self.dim - x.ndim if self.dim >= 0 else self.dim) + self.event_dim
        return ops.cat(found, axis) if axis < 0 else sum(found[1:], found[0])


class StackTransform(_Several):
    """Transforms for the elements of an axis."""

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.domain = StackConstraint([t.domain for t in tseq], dim)
        self.codomain = StackConstraint([t.codomain for t in tseq], dim)

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        return type(self)(self.transforms, self.dim, cache_size)

    def _parts(self, x: Any) -> Any:
        return ops.unbind(x, self.dim)

    def _joined(self, parts: list[Any]) -> Any:
        return ops.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The elements', stacked."""
        return self._joined(self._slopes(x, y))
