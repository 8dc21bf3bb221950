"""torch.distributions: counts of events."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.distributions import Categorical
from isograd.runtime.distributions_base import (
    Distribution,
    ExponentialFamily,
    clamp_probs,
    together,
    uniform_draw,
)
from isograd.runtime.distributions_gamma import gamma_draw
from isograd.runtime.exact import choose, exp, log1p
from isograd.runtime.making import finfo, poisson
from isograd.runtime.pointwise import log_sigmoid


class _Trials(Distribution):
    """A probability, or its logit, and where it has one a number of trials."""

    def _set(self, probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is None:
            self.logits, self.probs = logits, ops.sigmoid(logits)
        else:
            share = clamp_probs(probs)
            self.logits, self.probs = ops.log(share) - log1p(-share), probs

    def _set_with_count(self, total_count: Any, probs: Any, logits: Any) -> None:
        count, given = together(total_count, logits if probs is None else probs)
        self.total_count = count.astype(given.dtype)
        self._set(None if probs is None else given, None if logits is None else given)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple(self.probs.shape)


class Binomial(_Trials):
    """How often of so many trials something with a probability happens.

    A draw counts trials, each a uniform number: it needs memory for all of them.
    """

    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: Any = None,
    ) -> None:
        self._most = total_count if isinstance(total_count, int) else None
        self._set_with_count(total_count, probs, logits)
        super().__init__(self.probs.shape)

    @property
    def mean(self) -> Any:
        """Trials times probability."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        """The likeliest count."""
        mode = ops.floor((self.total_count + 1) * self.probs)
        return ops.where(mode > self.total_count, self.total_count, mode)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        return self.total_count * self.probs * (1 - self.probs)

    def _trials(self) -> int:
        return int(self.total_count.max()) if self._most is None else self._most

    def _draw(self, shape: tuple[int, ...]) -> Any:
        count = self._trials()
        trials = ops.arange(count).reshape((count, *(1 for _ in shape)))
        happened = uniform_draw((count, *shape), ms.float32) < self.probs
        happened = ops.logical_and(happened, trials < self.total_count)
        return happened.astype(self.probs.dtype).sum(0)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        count, logits = self.total_count, self.logits
        ways = ops.lgamma(count + 1) - ops.lgamma(value + 1) - ops.lgamma(count - value + 1)
        norm = 0.5 * (logits + ops.abs(logits)) + log1p(exp(-ops.abs(logits)))
        return value * logits + ways - count * norm

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """The counts from 0; raises where the number of trials is not one."""
        count = self._trials()
        if self._most is None and int(self.total_count.min()) != count:
            raise NotImplementedError("Inhomogeneous total count not supported.")
        return self._enumerated(ops.arange(1 + count).astype(self.probs.dtype), expand)


class NegativeBinomial(_Trials):
    """How often something happens until it has failed so many times."""

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        self._set_with_count(total_count, probs, logits)
        super().__init__(self.probs.shape)

    @property
    def mean(self) -> Any:
        """Failures times odds."""
        return self.total_count * exp(self.logits)

    @property
    def mode(self) -> Any:
        """The likeliest count."""
        return ops.clamp(ops.floor((self.total_count - 1) * exp(self.logits)), 0.0)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        return self.mean / ops.sigmoid(-self.logits)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        odds = exp(ops.stop_gradient(self.logits))
        return poisson(gamma_draw(ops.broadcast_to(self.total_count, shape)) * odds)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        count = self.total_count
        found = count * log_sigmoid(-self.logits) + value * log_sigmoid(self.logits)
        both = count + value
        is_nothing = both == 0.0
        norm = ops.lgamma(1.0 + value) + ops.lgamma(choose(is_nothing, 1.0, count))
        return found - choose(is_nothing, 0.0, norm - ops.lgamma(choose(is_nothing, 1.0, both)))


class Geometric(_Trials):
    """How often something fails before it happens."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        (given,) = together(logits if probs is None else probs)
        self._set(None if probs is None else given, None if logits is None else given)
        super().__init__(given.shape)

    @property
    def mean(self) -> Any:
        """Failures by success."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        """0."""
        return ops.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        return (1.0 / self.probs - 1.0) / self.probs

    def _draw(self, shape: tuple[int, ...]) -> Any:
        dtype = self.probs.dtype
        share = ops.clamp(uniform_draw(shape, dtype), finfo(dtype).tiny)
        return ops.floor(ops.log(share) / log1p(-self.probs))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        value, probs = together(value, self.probs)
        is_sure = ops.logical_and(probs == 1, value == 0)
        return value * log1p(-choose(is_sure, 0.0, probs)) + ops.log(self.probs)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        both = self.probs * log_sigmoid(self.logits) + (1 - self.probs) * log_sigmoid(-self.logits)
        return -both / self.probs


class Poisson(ExponentialFamily):
    """How often something happens at a rate."""

    def __init__(self, rate: Any, validate_args: Any = None) -> None:
        (self.rate,) = together(rate)
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Any:
        """The rate."""
        return self.rate

    variance = mean

    @property
    def mode(self) -> Any:
        """The likeliest count."""
        return ops.floor(self.rate)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return poisson(ops.broadcast_to(self.rate, shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        rate, value = together(self.rate, value)
        return ops.xlogy(value, rate) - rate - ops.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (ops.log(self.rate),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        return exp(x)


class Multinomial(Distribution):
    """How often each of several classes is drawn in so many trials."""

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: Any = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:])

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
        """Trials times probability."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        """Each class's own."""
        return self.total_count * self.probs * (1 - self.probs)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        drawn = self._categorical._draw((self.total_count, *shape[:-1])).expand_dims(-1)
        return (drawn == ops.arange(shape[-1])).astype(self.probs.dtype).sum(0)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the probability."""
        logits, value = together(self.logits, value)
        is_nothing = ops.logical_and(value == 0, logits == -math.inf)
        powers = (choose(is_nothing, 0.0, logits) * value).sum(-1)
        return ops.lgamma(value.sum(-1) + 1) - ops.lgamma(value + 1).sum(-1) + powers

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        count = self.total_count
        parts = Binomial(count, probs=self.probs)
        support = parts.enumerate_support(False)[1:]
        ways = (exp(parts.log_prob(support)) * ops.lgamma(support + 1)).sum((0, -1))
        return count * self._categorical.entropy() - math.lgamma(count + 1) + ways
