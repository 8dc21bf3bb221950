"""torch.distributions: draws and their logarithmic densities, with torch's names and shapes."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.pointwise import log_sigmoid, log_softmax, softmax_by_hand

#: The least share that a logarithm is taken of: torch's, the spacing of float32 at 1.
_LEAST = 2.0**-23


def _together(*values: Any) -> list[Any]:
    """Numbers and tensors as tensors of one shape."""
    kinds = [value.dtype for value in values if isinstance(value, ms.Tensor)]
    dtype = kinds[0] if kinds else ms.float32
    made = [v if isinstance(v, ms.Tensor) else ms.Tensor(float(v), dtype) for v in values]
    total = made[0]
    for value in made[1:]:
        total = total + value
    return [ops.broadcast_to(value, tuple(total.shape)) for value in made]


def _last(x: Any, count: int) -> Any:
    """The sum over so many axes at the end."""
    return ops.sum(x, tuple(range(-count, 0))) if count else x


class Distribution:
    """What all have: draws of a shape that is put before their own."""

    has_rsample = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), **_: Any) -> None:
        self.batch_shape, self.event_shape = tuple(batch_shape), tuple(event_shape)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        raise NotImplementedError

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw through which gradients reach the parameters."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__} has no rsample")
        return self._draw((*sample_shape, *self.batch_shape, *self.event_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw that is a constant."""
        return ops.stop_gradient(self._draw((*sample_shape, *self.batch_shape, *self.event_shape)))

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

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return ops.exp(self.entropy())

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        raise NotImplementedError


class _Around(Distribution):
    """A centre and a width."""

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = _together(loc, scale)
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Any:
        """The centre."""
        return self.loc

    mode = mean


class Normal(_Around):
    """The normal distribution."""

    @property
    def stddev(self) -> Any:
        """The width."""
        return self.scale

    @property
    def variance(self) -> Any:
        """The width squared."""
        return self.scale * self.scale

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.loc + self.scale * ops.randn(*shape, dtype=self.loc.dtype)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        distance = value - self.loc
        share = distance * distance / (2 * self.variance)
        return -share - ops.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Any:
        """By the width alone."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + ops.log(self.scale)

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        return 0.5 * (1 + ops.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        return self.loc + self.scale * ops.erfinv(2 * value - 1) * math.sqrt(2)


class Uniform(Distribution):
    """The same density between two bounds."""

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None:
        self.low, self.high = _together(low, high)
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Any:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Any:
        """A twelfth of the squared width."""
        return (self.high - self.low) ** 2 / 12

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.low + ops.rand(*shape, dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density; minus infinity outside."""
        is_inside = ops.logical_and(self.low <= value, self.high > value)
        return ops.log(is_inside.astype(self.low.dtype)) - ops.log(self.high - self.low)

    def entropy(self) -> Any:
        """The logarithm of the width."""
        return ops.log(self.high - self.low)


class Exponential(Distribution):
    """The time until something of a constant rate."""

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = _together(rate)
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Any:
        """The reciprocal of the rate."""
        return 1 / self.rate

    @property
    def variance(self) -> Any:
        """The reciprocal squared."""
        return 1 / (self.rate * self.rate)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        share = ops.clamp(1 - ops.rand(*shape, dtype=self.rate.dtype), _LEAST, 1.0)
        return -ops.log(share) / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        return ops.log(self.rate) - self.rate * value

    def entropy(self) -> Any:
        """By the rate."""
        return 1.0 - ops.log(self.rate)


class Laplace(_Around):
    """Exponential on both sides of a centre."""

    @property
    def variance(self) -> Any:
        """Twice the squared width."""
        return 2 * self.scale * self.scale

    def _draw(self, shape: tuple[int, ...]) -> Any:
        share = ops.rand(*shape, dtype=self.loc.dtype) - 0.5
        rest = ops.clamp(1 - 2 * ops.abs(share), _LEAST, 1.0)
        return self.loc - self.scale * ops.sign(share) * ops.log(rest)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        return -ops.log(2 * self.scale) - ops.abs(value - self.loc) / self.scale

    def entropy(self) -> Any:
        """By the width alone."""
        return 1 + ops.log(2 * self.scale)


class Bernoulli(Distribution):
    """1 with a probability, else 0."""

    has_rsample = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        (given,) = _together(logits if probs is None else probs)
        if probs is None:
            self.logits, self.probs = given, ops.sigmoid(given)
        else:
            share = ops.clamp(given, _LEAST / 2, 1 - _LEAST / 2)
            self.logits, self.probs = ops.log(share) - ops.log(1 - share), given
        super().__init__(given.shape)

    @property
    def mean(self) -> Any:
        """The probability of 1."""
        return self.probs

    @property
    def variance(self) -> Any:
        """The product of both probabilities."""
        return self.probs * (1 - self.probs)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return (ops.rand(*shape) < self.probs).astype(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        value, logits = _together(value, self.logits)
        return value * logits + log_sigmoid(-logits)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return -log_sigmoid(-self.logits) - self.probs * self.logits


class Categorical(Distribution):
    """One of several classes."""

    has_rsample = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        if probs is not None:
            self.probs = probs / ops.sum(probs, -1, keepdim=True)
            self.logits = ops.log(ops.clamp(self.probs, _LEAST, 1 - _LEAST))
        else:
            self.logits = log_softmax(logits, -1)
            self.probs = softmax_by_hand(logits, -1)
        super().__init__(self.logits.shape[:-1])

    @property
    def mode(self) -> Any:
        """The likeliest class."""
        return ops.argmax(self.probs, -1)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        classes = self.probs.shape[-1]
        noise = ops.clamp(ops.rand(*shape, classes), 1e-7, 1 - 1e-7)
        return ops.argmax(self.logits - ops.log(-ops.log(noise)), -1).astype(ms.int64)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of a class."""
        value = value.astype(ms.int64)
        wide = np.broadcast_shapes(tuple(value.shape), self.batch_shape)
        logits = ops.broadcast_to(self.logits, (*wide, self.logits.shape[-1]))
        places = ops.broadcast_to(value, wide).expand_dims(-1)
        return ops.gather_elements(logits, -1, places).squeeze(-1)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return -ops.sum(ops.clamp(self.logits, -3.4028234663852886e38) * self.probs, -1)


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
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        cut = len(base_distribution.batch_shape) - count
        super().__init__(shape[:cut], shape[cut:])

    @property
    def mean(self) -> Any:
        """The base's."""
        return self.base_dist.mean

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
        return _last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        """The base's, added up over the event."""
        return _last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of two distributions of one kind."""
    if isinstance(p, Independent) and isinstance(q, Independent):
        return _last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio, shift = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
        return 0.5 * (ratio + shift - 1 - ops.log(ratio))
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        return ops.sum(p.probs * (p.logits - q.logits), -1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        ones = p.probs * (p.logits - q.logits)
        return ones + log_sigmoid(-p.logits) - log_sigmoid(-q.logits)
    raise NotImplementedError(f"no divergence of {type(p).__name__} and {type(q).__name__}")
