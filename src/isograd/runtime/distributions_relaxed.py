"""torch.distributions: relaxed classes (Gumbel softmax) and mixtures."""

from __future__ import annotations

import math
from typing import Any

from mindspore import ops  # noqa: TID253

from isograd.runtime.distributions import Categorical
from isograd.runtime.distributions_base import (
    Distribution,
    clamp_probs,
    together,
    uniform_draw,
)
from isograd.runtime.distributions_maps import ExpTransform, SigmoidTransform
from isograd.runtime.distributions_transformed import TransformedDistribution
from isograd.runtime.exact import exp, log1p
from isograd.runtime.pointwise import log_softmax


class LogitRelaxedBernoulli(Distribution):
    """The logit of a relaxed 0 or 1."""

    has_rsample = True
    _kept = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self.temperature = temperature
        (given,) = together(logits if probs is None else probs)
        if probs is None:
            self.logits, self.probs = given, ops.sigmoid(given)
        else:
            share = clamp_probs(given)
            self.logits, self.probs = ops.log(share) - log1p(-share), given
        super().__init__(given.shape)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple(self.probs.shape)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        share = clamp_probs(ops.broadcast_to(self.probs, shape))
        noise = clamp_probs(uniform_draw(shape, share.dtype))
        logits = ops.log(share) - log1p(-share)
        return (ops.log(noise) - log1p(-noise) + logits) / self.temperature

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        logits, value = together(self.logits, value)
        (temperature,) = together(self.temperature)
        away = logits - value * temperature
        return ops.log(temperature) + away - 2 * log1p(exp(away))


class RelaxedBernoulli(TransformedDistribution):
    """A relaxed 0 or 1."""

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform())

    @property
    def temperature(self) -> Any:
        """How relaxed it is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logit of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probability of 1."""
        return self.base_dist.probs


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a relaxed class."""

    has_rsample = True
    _kept = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:])

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Any:
        """The logarithms of the classes' probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """The classes' probabilities."""
        return self._categorical.probs

    def _draw(self, shape: tuple[int, ...]) -> Any:
        noise = clamp_probs(uniform_draw(shape, self.logits.dtype))
        scores = (self.logits - ops.log(-ops.log(noise))) / self.temperature
        return log_softmax(scores, -1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        logits, value = together(self.logits, value)
        (temperature,) = together(self.temperature)
        count = logits.shape[-1]
        score = log_softmax(logits - value * temperature, -1).sum(-1)
        return score + (math.lgamma(count) + (count - 1) * ops.log(temperature))


class RelaxedOneHotCategorical(TransformedDistribution):
    """A relaxed class, as a vector of shares."""

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None
    ) -> None:
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits), ExpTransform())

    @property
    def temperature(self) -> Any:
        """How relaxed it is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The logarithms of the classes' probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The classes' probabilities."""
        return self.base_dist.probs


class MixtureSameFamily(Distribution):
    """Distributions of one kind, along the last axis of their batch, of which one is drawn."""

    def __init__(
        self,
        mixture_distribution: Any,
        component_distribution: Any,
        validate_args: Any = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of Distribution")
        count, there = mixture_distribution.param_shape[-1], component_distribution.batch_shape[-1]
        if count != there:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({there})"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        self._depth = len(component_distribution.event_shape)
        super().__init__(
            component_distribution.batch_shape[:-1], component_distribution.event_shape
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Both parts, broadcast."""
        shape = tuple(batch_shape)
        count = self.mixture_distribution.param_shape[-1]
        parts = self.component_distribution.expand((*shape, count))
        return type(self)(self.mixture_distribution.expand(shape), parts)

    def _weights(self) -> Any:
        """The probabilities beside the components' values."""
        probs = self.mixture_distribution.probs
        before = len(self.mixture_distribution.batch_shape)
        more = 0 if before == 1 else len(self._batch_shape) - before
        ones = (1,) * self._depth
        return probs.reshape((*probs.shape[:-1], *(1,) * more, probs.shape[-1], *ones))

    @property
    def mean(self) -> Any:
        """The weighted mean of the components'."""
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._depth)

    @property
    def variance(self) -> Any:
        """Of the components, and of their means."""
        axis, weights, parts = -1 - self._depth, self._weights(), self.component_distribution
        away = parts.mean - self.mean.expand_dims(axis)
        return (weights * parts.variance).sum(axis) + (weights * away * away).sum(axis)

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        shares = self.component_distribution.cdf(value.expand_dims(-1 - self._depth))
        return (shares * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability."""
        logs = self.component_distribution.log_prob(value.expand_dims(-1 - self._depth))
        return ops.logsumexp(logs + log_softmax(self.mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw of a component that is drawn."""
        chosen = self.mixture_distribution.sample(sample_shape)
        drawn = self.component_distribution.sample(sample_shape)
        places = ops.arange(self.mixture_distribution.param_shape[-1])
        is_chosen = chosen.expand_dims(-1) == places
        is_chosen = is_chosen.reshape((*is_chosen.shape, *(1,) * self._depth))
        kept = ops.where(is_chosen, drawn, ops.zeros_like(drawn))
        return ops.stop_gradient(kept.sum(-1 - self._depth))
