"""torch.distributions: draws of one distribution that are mapped by transforms."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.distributions import Cauchy, Exponential, Normal, Uniform
from isograd.runtime.distributions_base import Distribution, Independent, sum_of_last, together
from isograd.runtime.distributions_gamma import Gamma
from isograd.runtime.distributions_maps import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
)
from isograd.runtime.distributions_transforms import ComposeTransform, Transform
from isograd.runtime.exact import choose, exp, expm1, log1p
from isograd.runtime.making import finfo

#: Euler's constant.
_EULER = 0.57721566490153286060


class TransformedDistribution(Distribution):
    """A distribution's draws, mapped by a transform or by several in their order."""

    _kept = ("base_dist",)

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: Any = None) -> None:
        if not isinstance(transforms, (Transform, list)):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = transforms if isinstance(transforms, list) else [transforms]
        whole = ComposeTransform(self.transforms)
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        depth = len(base_distribution.event_shape)
        taken, made = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < taken:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {taken}, "
                f"but got {shape}."
            )
        forward = whole.forward_shape(shape)
        wide = whole.inverse_shape(forward)
        if shape != wide:
            base_distribution = base_distribution.expand(wide[: len(wide) - depth])
        if taken > depth:
            base_distribution = Independent(base_distribution, taken - depth)
        self.base_dist = base_distribution
        self.has_rsample = base_distribution.has_rsample
        cut = len(forward) - max(made, depth + made - taken)
        super().__init__(forward[:cut], forward[cut:])

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The base, broadcast to what the transforms make this batch of."""
        shape = (*batch_shape, *self._event_shape)
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new = super().expand(batch_shape, _instance)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:cut])
        return new

    def _mapped(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def rsample(self, sample_shape: Any = ()) -> Any:
        """A draw of the base, mapped."""
        return self._mapped(self.base_dist.rsample(sample_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        """A draw that is a constant."""
        x = self.base_dist.sample(sample_shape)
        for transform in self.transforms:
            y = ops.stop_gradient(transform(x))
            if transform._cache_size:
                transform._cached_x_y = (x, y)  # a cache finds its own tensors alone
            x = y
        return x

    def log_prob(self, value: Any) -> Any:
        """The base's at the way back, less the logarithms of the derivatives."""
        depth, found, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            depth += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            found = found - sum_of_last(slope, depth - transform.domain.event_dim)
            y = x
        rest = depth - len(self.base_dist.event_shape)
        return found + sum_of_last(self.base_dist.log_prob(y), rest)

    def _rising(self, value: Any) -> Any:
        """A share, or the rest of it where the transforms fall."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._rising(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        return self._mapped(self.base_dist.icdf(self._rising(value)))


class LogNormal(TransformedDistribution):
    """The exponential of a normal number."""

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        super().__init__(Normal(loc, scale), ExpTransform())

    @property
    def loc(self) -> Any:
        """The normal number's centre."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """The normal number's width."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        """The mean."""
        return exp(self.loc + self.scale * self.scale / 2)

    @property
    def mode(self) -> Any:
        """The likeliest value."""
        return exp(self.loc - self.scale * self.scale)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        square = self.scale * self.scale
        return expm1(square) * exp(2 * self.loc + square)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return self.base_dist.entropy() + self.loc


class _Half(TransformedDistribution):
    """The absolute value of a number around 0."""

    @property
    def scale(self) -> Any:
        """The width."""
        return self.base_dist.scale

    @property
    def mode(self) -> Any:
        """0."""
        return ops.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density; minus infinity below 0."""
        (value,) = together(value)
        found = self.base_dist.log_prob(value.astype(self.scale.dtype)) + math.log(2)
        return choose(ops.broadcast_to(value >= 0, tuple(found.shape)), found, -math.inf)

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal number around 0."""

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        super().__init__(Normal(0, scale), AbsTransform())

    @property
    def mean(self) -> Any:
        """By the width alone."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        """By the width alone."""
        return self.scale * self.scale * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a Cauchy number around 0."""

    def __init__(self, scale: Any, validate_args: Any = None) -> None:
        super().__init__(Cauchy(0, scale), AbsTransform())

    @property
    def mean(self) -> Any:
        """It is infinite."""
        return ops.full_like(self.scale, math.inf)

    variance = mean


class Gumbel(TransformedDistribution):
    """The greatest of many."""

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = together(loc, scale)
        limits = finfo(self.loc.dtype)
        lowest = ops.full_like(self.loc, limits.tiny)
        base = Uniform(lowest, ops.full_like(self.loc, 1 - limits.eps))
        falling = AffineTransform(0, -ops.ones_like(self.scale))
        logs = [ExpTransform().inv, falling, ExpTransform().inv]
        super().__init__(base, [*logs, AffineTransform(self.loc, -self.scale)])

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        distance = (self.loc - value) / self.scale
        return distance - exp(distance) - ops.log(self.scale)

    @property
    def mean(self) -> Any:
        """Above the likeliest value."""
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Any:
        """The likeliest value."""
        return self.loc

    @property
    def stddev(self) -> Any:
        """By the width alone."""
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Any:
        """By the width alone."""
        return self.stddev * self.stddev

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return ops.log(self.scale) + (1 + _EULER)


class Pareto(TransformedDistribution):
    """Numbers above a least one, rarer by a power."""

    def __init__(self, scale: Any, alpha: Any, validate_args: Any = None) -> None:
        self.scale, self.alpha = together(scale, alpha)
        super().__init__(Exponential(self.alpha), [ExpTransform(), AffineTransform(0, self.scale)])

    @property
    def mean(self) -> Any:
        """The mean; infinite up to a power of 1."""
        power = ops.clamp(self.alpha, 1)
        return power * self.scale / (power - 1)

    @property
    def mode(self) -> Any:
        """The least number."""
        return self.scale

    @property
    def variance(self) -> Any:
        """Infinite up to a power of 2."""
        power = ops.clamp(self.alpha, 2)
        return self.scale**2 * power / ((power - 1) ** 2 * (power - 2))

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return ops.log(self.scale / self.alpha) + (1 + 1 / self.alpha)


class Weibull(TransformedDistribution):
    """A power of the time until something of a constant rate."""

    def __init__(self, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.scale, self.concentration = together(scale, concentration)
        self.concentration_reciprocal = 1 / self.concentration
        powers = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(Exponential(ops.ones_like(self.scale)), powers)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.scale * exp(ops.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Any:
        """The likeliest value."""
        base = (self.concentration - 1) / self.concentration
        return self.scale * ops.pow(base, 1 / self.concentration)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        power = self.concentration_reciprocal
        squares = exp(ops.lgamma(1 + 2 * power)) - exp(2 * ops.lgamma(1 + power))
        return self.scale**2 * squares

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        power = self.concentration_reciprocal
        return _EULER * (1 - power) + ops.log(self.scale * power) + 1


class InverseGamma(TransformedDistribution):
    """The reciprocal of a Gamma number."""

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        base = Gamma(concentration, rate)
        super().__init__(base, PowerTransform(ms.Tensor(-1.0, base.rate.dtype)))

    @property
    def concentration(self) -> Any:
        """The Gamma number's."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """The Gamma number's."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        """The mean; infinite up to a concentration of 1."""
        a = self.concentration
        return choose(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        """The likeliest value."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        """Infinite up to a concentration of 2."""
        a = self.concentration
        return choose(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        a = self.concentration
        return a + ops.log(self.rate) + ops.lgamma(a) - (1 + a) * ops.digamma(a)


class Kumaraswamy(TransformedDistribution):
    """Shares, by powers of a uniform number."""

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        zeros = ops.zeros_like(self.concentration0)
        maps = [PowerTransform(1 / self.concentration0), AffineTransform(1.0, -1.0)]
        maps = [*maps, PowerTransform(1 / self.concentration1)]
        super().__init__(Uniform(zeros, zeros + 1), maps)

    def _moment(self, order: int) -> Any:
        a, b = 1 + order / self.concentration1, self.concentration0
        return b * exp(ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b))

    @property
    def mean(self) -> Any:
        """The mean."""
        return self._moment(1)

    @property
    def mode(self) -> Any:
        """The likeliest value; nan where a concentration is below 1."""
        a, b = self.concentration1, self.concentration0
        logs = log1p(-b) / b - log1p(-b * a)
        return exp(choose(ops.logical_or(b < 1, a < 1), math.nan, logs))

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        return self._moment(2) - self._moment(1) ** 2

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        a, b = self.concentration1, self.concentration0
        middle = (1 - 1 / a) * (ops.digamma(b + 1) + _EULER)
        return 1 - 1 / b + middle - ops.log(a) - ops.log(b)


class LogisticNormal(TransformedDistribution):
    """Shares, broken by the sigmoids of normal numbers."""

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        base = Normal(loc, scale)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform())

    @property
    def loc(self) -> Any:
        """The normal numbers' centre."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """The normal numbers' width."""
        return self.base_dist.base_dist.scale
