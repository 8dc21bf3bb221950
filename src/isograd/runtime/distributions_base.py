"""torch.distributions: what all distributions have, with torch's names and shapes.

Values are not validated: `validate_args` is taken and left.
"""

from __future__ import annotations

import copy
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.exact import exp
from isograd.runtime.making import finfo


def together(*values: Any) -> list[Any]:
    """Numbers and tensors as tensors of one shape; numbers take the first tensor's dtype."""
    kinds = [value.dtype for value in values if isinstance(value, ms.Tensor)]
    dtype = kinds[0] if kinds else ms.float32
    made = [v if isinstance(v, ms.Tensor) else ms.Tensor(float(v), dtype) for v in values]
    total = made[0]
    for value in made[1:]:
        total = total + value
    return [ops.broadcast_to(value, tuple(total.shape)) for value in made]


def sum_of_last(x: Any, count: int) -> Any:
    """The sum over so many axes at the end."""
    return ops.sum(x, tuple(range(-count, 0))) if count else x


def clamp_probs(probs: Any) -> Any:
    """Probabilities away from 0 and 1 by torch's step, the spacing of the dtype at 1."""
    eps = finfo(probs.dtype).eps
    return ops.clamp(probs, eps, 1 - eps)


def normal_draw(shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal numbers."""
    return ops.randn(*(shape or (1,)), dtype=dtype).reshape(shape)


def uniform_draw(shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform numbers from 0 up to 1, which is left out."""
    return ops.rand(*(shape or (1,)), dtype=dtype).reshape(shape)


def slopes_of(function: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of a function's sum by each of its arguments."""
    found = ms.grad(lambda *given: function(*given).sum(), tuple(range(len(parts))))(*parts)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


class Distribution:
    """What all have: draws of a shape that is put before their own."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = False
    #: Tensors that do not have the batch's shape.
    _kept: tuple[str, ...] = ()

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), *_: Any, **__: Any) -> None:
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Nothing: values are not validated."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Nothing: values are not validated."""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its parameters broadcast to a batch's shape."""
        shape = tuple(batch_shape)
        new = copy.copy(self) if _instance is None else _instance
        for name, value in list(vars(self).items()):
            vars(new)[name] = value if name in self._kept else self._broadcast(value, shape)
        new._batch_shape = shape
        return new

    def _broadcast(self, value: Any, shape: tuple[int, ...]) -> Any:
        behind = len(self._batch_shape)
        if isinstance(value, Distribution):
            return value.expand((*shape, *value.batch_shape[behind:]))
        if isinstance(value, ms.Tensor):
            return ops.broadcast_to(value, (*shape, *value.shape[behind:]))
        return value

    def _draw(self, shape: tuple[int, ...]) -> Any:
        raise NotImplementedError

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw through which gradients reach the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no rsample")
        return self._draw(self._extended_shape(sample_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw that is a constant."""
        if type(self).rsample is not Distribution.rsample:
            return ops.stop_gradient(self.rsample(sample_shape))
        return ops.stop_gradient(self._draw(self._extended_shape(sample_shape)))

    def sample_n(self, n: int) -> Any:
        """So many draws."""
        return self.sample((n,))

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The likeliest value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return ops.sqrt(self.variance)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        raise NotImplementedError

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values, along a new first axis."""
        raise NotImplementedError

    def _enumerated(self, values: Any, expand: bool) -> Any:
        """Numbers along a first axis, each for the whole batch."""
        rest = (1,) * len(self._batch_shape)
        values = values.reshape((-1, *rest))
        return ops.broadcast_to(values, (-1, *self._batch_shape)) if expand and rest else values

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return exp(self.entropy())

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        raise NotImplementedError


class ExponentialFamily(Distribution):
    """Distributions of natural parameters and a normaliser, from which the entropy follows.

    As in torch no gradient goes from the entropy to the parameters.
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        """The mean of the negated log_prob, by the gradient of the normaliser."""
        parts = tuple(ops.stop_gradient(part) for part in self._natural_params)
        found = self._log_normalizer(*parts) - self._mean_carrier_measure
        for part, slope in zip(parts, slopes_of(self._log_normalizer, parts), strict=True):
            found = found - sum_of_last(part * slope, part.ndim - len(self._batch_shape))
        return ops.stop_gradient(found)


class Independent(Distribution):
    """Axes of a batch taken as one event."""

    def __init__(
        self,
        base_distribution: Any,
        reinterpreted_batch_ndims: int,
        validate_args: Any = None,
    ) -> None:
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = count = reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample
        self.has_enumerate_support = count == 0 and base_distribution.has_enumerate_support
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        cut = len(base_distribution.batch_shape) - count
        super().__init__(shape[:cut], shape[cut:])

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The base, broadcast before the axes of the event."""
        count = self.reinterpreted_batch_ndims
        base = self.base_dist.expand((*batch_shape, *self._event_shape[:count]))
        return type(self)(base, count)

    @property
    def mean(self) -> Any:
        """The base's."""
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        """The base's."""
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        """The base's."""
        return self.base_dist.variance

    def rsample(self, sample_shape: Any = ()) -> Any:
        """The base's."""
        return self.base_dist.rsample(sample_shape)

    def sample(self, sample_shape: Any = ()) -> Any:
        """The base's."""
        return self.base_dist.sample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """The base's, added up over the event."""
        return sum_of_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        """The base's, added up over the event."""
        return sum_of_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        """The base's, where no axis of the batch is an event's."""
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)
