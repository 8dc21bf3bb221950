"""torch.distributions: draws and their logarithmic densities, with torch's names and shapes."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.distributions_base import (
    Distribution,
    clamp_probs,
    normal_draw,
    together,
    uniform_draw,
)
from isograd.runtime.exact import choose, exp, expm1, log1p
from isograd.runtime.making import finfo
from isograd.runtime.pointwise import log_sigmoid, log_softmax, softmax_by_hand


class _Around(Distribution):
    """A centre and a width."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = together(loc, scale)
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
        return self.loc + self.scale * normal_draw(shape, self.loc.dtype)

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

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: Any = None) -> None:
        self.low, self.high = together(low, high)
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Any:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        """No value is likelier than another."""
        return math.nan * self.high

    @property
    def variance(self) -> Any:
        """A twelfth of the squared width."""
        return (self.high - self.low) ** 2 / 12

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.low + uniform_draw(shape, self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density; minus infinity outside."""
        is_inside = ops.logical_and(self.low <= value, self.high > value)
        return ops.log(is_inside.astype(self.low.dtype)) - ops.log(self.high - self.low)

    def entropy(self) -> Any:
        """The logarithm of the width."""
        return ops.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        return ops.clamp((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        return value * (self.high - self.low) + self.low


class Exponential(Distribution):
    """The time until something of a constant rate."""

    has_rsample = True

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Any:
        """The reciprocal of the rate."""
        return 1 / self.rate

    stddev = mean

    @property
    def mode(self) -> Any:
        """Nothing."""
        return ops.zeros_like(self.rate)

    @property
    def variance(self) -> Any:
        """The reciprocal squared."""
        return 1 / (self.rate * self.rate)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return -ops.log(1 - uniform_draw(shape, self.rate.dtype)) / self.rate

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        return ops.log(self.rate) - self.rate * value

    def entropy(self) -> Any:
        """By the rate."""
        return 1.0 - ops.log(self.rate)

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        return 1 - exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        return -log1p(-value) / self.rate


class Laplace(_Around):
    """Exponential on both sides of a centre."""

    @property
    def variance(self) -> Any:
        """Twice the squared width."""
        return 2 * self.scale * self.scale

    @property
    def stddev(self) -> Any:
        """By the width alone."""
        return 2**0.5 * self.scale

    def _draw(self, shape: tuple[int, ...]) -> Any:
        dtype = self.loc.dtype
        share = uniform_draw(shape, dtype) - 0.5
        rest = ops.clamp(1 - 2 * ops.abs(share), finfo(dtype).tiny, 1.0)
        return self.loc - self.scale * ops.sign(share) * ops.log(rest)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        return -ops.log(2 * self.scale) - ops.abs(value - self.loc) / self.scale

    def entropy(self) -> Any:
        """By the width alone."""
        return 1 + ops.log(2 * self.scale)

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        away = value - self.loc
        return 0.5 - 0.5 * ops.sign(away) * expm1(-ops.abs(away) / self.scale)

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        share = value - 0.5
        return self.loc - self.scale * ops.sign(share) * log1p(-2 * ops.abs(share))


class Cauchy(_Around):
    """The ratio of two normal numbers, around a centre."""

    @property
    def mean(self) -> Any:
        """There is none."""
        return ops.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Any:
        """The centre."""
        return self.loc

    @property
    def variance(self) -> Any:
        """It is infinite."""
        return ops.full_like(self.loc, math.inf)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        angle = math.pi * (uniform_draw(shape, self.loc.dtype) - 0.5)
        return self.loc + ops.tan(angle) * self.scale

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        distance = (value - self.loc) / self.scale
        return -math.log(math.pi) - ops.log(self.scale) - log1p(distance * distance)

    def entropy(self) -> Any:
        """By the width alone."""
        return math.log(4 * math.pi) + ops.log(self.scale)

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        return ops.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        return ops.tan(math.pi * (value - 0.5)) * self.scale + self.loc


class Bernoulli(Distribution):
    """1 with a probability, else 0."""

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        (given,) = together(logits if probs is None else probs)
        if probs is None:
            self.logits, self.probs = given, ops.sigmoid(given)
        else:
            share = clamp_probs(given)
            self.logits, self.probs = ops.log(share) - log1p(-share), given
        super().__init__(given.shape)

    @property
    def mean(self) -> Any:
        """The probability of 1."""
        return self.probs

    @property
    def mode(self) -> Any:
        """The likelier of both; nan where none is."""
        mode = (self.probs >= 0.5).astype(self.probs.dtype)
        return choose(self.probs == 0.5, math.nan, mode)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple(self.probs.shape)

    @property
    def variance(self) -> Any:
        """The product of both probabilities."""
        return self.probs * (1 - self.probs)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return (uniform_draw(shape, ms.float32) < self.probs).astype(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        value, logits = together(value, self.logits)
        return value * logits + log_sigmoid(-logits)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return -log_sigmoid(-self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Any:
        """0 and 1."""
        return self._enumerated(ms.Tensor([0, 1], self.probs.dtype), expand)


class Categorical(Distribution):
    """One of several classes."""

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        if probs is not None:
            self.probs = probs / ops.sum(probs, -1, keepdim=True)
            self.logits = ops.log(clamp_probs(self.probs))
        else:
            self.logits = log_softmax(logits, -1)
            self.probs = softmax_by_hand(logits, -1)
        super().__init__(self.logits.shape[:-1])

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple(self.probs.shape)

    @property
    def mean(self) -> Any:
        """There is none."""
        return ops.full(self._batch_shape, math.nan, dtype=self.probs.dtype)

    variance = mean

    @property
    def mode(self) -> Any:
        """The likeliest class."""
        return ops.argmax(self.probs, -1)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        classes = self.probs.shape[-1]
        noise = clamp_probs(uniform_draw((*shape, classes), ms.float32))
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

    def enumerate_support(self, expand: bool = True) -> Any:
        """The numbers of the classes."""
        return self._enumerated(ops.arange(self.probs.shape[-1]).astype(ms.int64), expand)


class OneHotCategorical(Distribution):
    """One of several classes, as a vector with a 1 at its place."""

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:])

    def _marked(self, places: Any) -> Any:
        probs = self.probs
        return (places.expand_dims(-1) == ops.arange(probs.shape[-1])).astype(probs.dtype)

    @property
    def probs(self) -> Any:
        """The classes' probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Any:
        """The likeliest class."""
        return self._marked(self._categorical.mode)

    @property
    def variance(self) -> Any:
        """Each class's own."""
        return self.probs * (1 - self.probs)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self._marked(self._categorical._draw(shape[:-1]))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability of the marked class."""
        return self._categorical.log_prob(ops.argmax(value, -1))

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """A vector for each class."""
        count = self.probs.shape[-1]
        rest = (1,) * len(self._batch_shape)
        values = ops.eye(count, count, self.probs.dtype).reshape((count, *rest, count))
        whole = (count, *self._batch_shape, count)
        return ops.broadcast_to(values, whole) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One of several classes, with the gradient of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A marked class through which the probabilities' gradient goes."""
        return self.sample(sample_shape) + (self.probs - ops.stop_gradient(self.probs))

    def sample(self, sample_shape: Any = ()) -> Any:
        """A marked class."""
        return ops.stop_gradient(self._draw(self._extended_shape(sample_shape)))
