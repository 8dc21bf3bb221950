"""torch.distributions: Gamma, Beta and Dirichlet, and what is drawn by them.

Draws are Marsaglia's and Tsang's (2000, doi:10.1145/358407.358414), as torch's; MindSpore's
`random_gamma` is marked as deprecated on all devices and has no gradient on a CPU.
"""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.distributions_base import (
    Distribution,
    ExponentialFamily,
    normal_draw,
    together,
    uniform_draw,
)
from isograd.runtime.distributions_slopes import dirichlet_slope, standard_gamma_slope
from isograd.runtime.exact import choose, log1p
from isograd.runtime.making import finfo, of_one_dtype

#: Tries of a draw: one is taken with 0.95 at least, so that none is left out with 1e-16.
_TRIES = 12


def gamma_draw(concentration: Any) -> Any:
    """Numbers of Gamma(concentration, 1), without a gradient."""
    alpha = ops.stop_gradient(concentration)
    dtype, shape = alpha.dtype, tuple(alpha.shape)
    is_small = alpha < 1
    size = choose(is_small, alpha + 1, alpha) - 1 / 3
    noise = normal_draw((_TRIES, *shape), dtype)
    share = 1 - uniform_draw((_TRIES, *shape), dtype)
    cube = (1 + noise * ops.rsqrt(9 * size)) ** 3
    inside = choose(cube > 0, cube, 1.0)
    bound = 0.5 * noise * noise + size * (1 - inside + ops.log(inside))
    taken = ops.logical_and(cube > 0, ops.log(share) < bound)
    drawn = size
    for step in reversed(range(_TRIES)):
        drawn = ops.where(taken[step], size * cube[step], drawn)
    power = choose(is_small, 1 / choose(is_small, alpha, 1.0), 0.0)
    return ops.stop_gradient(drawn * ops.pow(1 - uniform_draw(shape, dtype), power))


def standard_gamma(concentration: Any) -> Any:
    """Numbers of Gamma(concentration, 1), with torch's gradient by the concentration."""
    given = ops.stop_gradient(concentration)
    drawn = gamma_draw(given)
    slope = ops.stop_gradient(standard_gamma_slope(given, drawn))
    return drawn + slope * (concentration - given)


def dirichlet_draw(concentration: Any) -> Any:
    """Shares that add up to 1 along the last axis, with torch's gradient."""
    given, dtype = ops.stop_gradient(concentration), concentration.dtype
    parts = gamma_draw(given.astype(ms.float64))
    shares = (parts / parts.sum(-1, keepdims=True)).astype(dtype)
    shares = ops.clamp(shares, finfo(dtype).tiny, 1 - finfo(dtype).eps / 2)
    total = given.sum(-1, keepdims=True)
    slope = ops.stop_gradient(dirichlet_slope(shares, given, total))
    shares = ops.stop_gradient(shares)
    moved = slope * (concentration - given)
    return shares + moved - shares * moved.sum(-1, keepdims=True)


def at_least_tiny(x: Any) -> Any:
    """What is below the smallest normal number raised to it, with the gradient as it is."""
    plain = ops.stop_gradient(x)
    return x + (ops.clamp(plain, finfo(x.dtype).tiny) - plain)


class Gamma(ExponentialFamily):
    """The time until several events, at a rate."""

    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: Any = None) -> None:
        self.concentration, self.rate = together(concentration, rate)
        super().__init__(self.concentration.shape)

    @property
    def mean(self) -> Any:
        """Concentration by rate."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        """The likeliest value; 0 below a concentration of 1."""
        return ops.clamp((self.concentration - 1) / self.rate, 0)

    @property
    def variance(self) -> Any:
        """Concentration by the squared rate."""
        return self.concentration / (self.rate * self.rate)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        drawn = standard_gamma(ops.broadcast_to(self.concentration, shape))
        return at_least_tiny(drawn / self.rate)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        (value,) = together(value)
        value = value.astype(self.rate.dtype)
        powers = ops.xlogy(self.concentration, self.rate) + ops.xlogy(self.concentration - 1, value)
        return powers - self.rate * value - ops.lgamma(self.concentration)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        a = self.concentration
        return a - ops.log(self.rate) + ops.lgamma(a) + (1.0 - a) * ops.digamma(a)

    def cdf(self, value: Any) -> Any:
        """The share below a value; by the concentration it has no gradient, as in torch."""
        shape, value = ops.stop_gradient(self.concentration), self.rate * value
        given = ops.stop_gradient(value)
        found = ops.igamma(*together(shape, given))
        density = ops.exp((shape - 1) * ops.log(given) - given - ops.lgamma(shape))
        return ops.stop_gradient(found) + ops.stop_gradient(density) * (value - given)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return ops.lgamma(x + 1) + (x + 1) * ops.log(-1 / y)


class Chi2(Gamma):
    """The sum of squared normal numbers."""

    def __init__(self, df: Any, validate_args: Any = None) -> None:
        super().__init__(0.5 * df, 0.5)

    @property
    def df(self) -> Any:
        """How many there are."""
        return self.concentration * 2


class Dirichlet(ExponentialFamily):
    """Shares that add up to 1."""

    has_rsample = True

    def __init__(self, concentration: Any, validate_args: Any = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:])

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return dirichlet_draw(ops.broadcast_to(self.concentration, shape))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        a = self.concentration
        powers = ops.xlogy(*together(a - 1.0, value)).sum(-1)
        return powers + ops.lgamma(a.sum(-1)) - ops.lgamma(a).sum(-1)

    @property
    def mean(self) -> Any:
        """The shares of the concentrations."""
        return self.concentration / self.concentration.sum(-1, keepdims=True)

    @property
    def mode(self) -> Any:
        """The likeliest shares; a corner where all concentrations are below 1."""
        above = ops.clamp(self.concentration - 1, 0.0)
        mode = above / above.sum(-1, keepdims=True)
        places = ops.arange(mode.shape[-1])
        corner = ops.argmax(ops.stop_gradient(mode), -1).expand_dims(-1) == places
        is_corner = (self.concentration < 1).all(-1).expand_dims(-1)
        return ops.where(is_corner, corner.astype(mode.dtype), mode)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        a = self.concentration
        total = a.sum(-1, keepdims=True)
        return a * (total - a) / (total * total * (total + 1))

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        a = self.concentration
        count, total = a.shape[-1], a.sum(-1)
        found = ops.lgamma(a).sum(-1) - ops.lgamma(total)
        found = found - (count - total) * ops.digamma(total)
        return found - ((a - 1.0) * ops.digamma(a)).sum(-1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        return ops.lgamma(x).sum(-1) - ops.lgamma(x.sum(-1))


class Beta(ExponentialFamily):
    """A share and the rest."""

    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: Any = None) -> None:
        pair = of_one_dtype(together(concentration1, concentration0))
        self._dirichlet = Dirichlet(ops.stack(pair, -1))
        super().__init__(pair[0].shape)

    @property
    def concentration1(self) -> Any:
        """Of the share."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        """Of the rest."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Any:
        """The share of the concentrations."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        """The likeliest share."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total * total * (total + 1))

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self._dirichlet._draw((*shape, 2))[..., 0]

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        (value,) = together(value)
        return self._dirichlet.log_prob(ops.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return ops.lgamma(x) + ops.lgamma(y) - ops.lgamma(x + y)


class FisherSnedecor(Distribution):
    """The ratio of two mean squares."""

    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: Any = None) -> None:
        self.df1, self.df2 = together(df1, df2)
        super().__init__(self.df1.shape)

    @property
    def mean(self) -> Any:
        """The mean; nan up to 2 degrees of freedom below."""
        below = choose(self.df2 <= 2, math.nan, self.df2)
        return below / (below - 2)

    @property
    def mode(self) -> Any:
        """The likeliest value; nan up to 2 degrees of freedom above."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return choose(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean; nan up to 4 degrees of freedom below."""
        below = choose(self.df2 <= 4, math.nan, self.df2)
        spread = self.df1 * (below - 2) ** 2 * (below - 4)
        return 2 * below * below * (self.df1 + below - 2) / spread

    def _draw(self, shape: tuple[int, ...]) -> Any:
        above, below = (
            at_least_tiny(standard_gamma(ops.broadcast_to(df * 0.5, shape)) / df)
            for df in (self.df1, self.df2)
        )
        return at_least_tiny(above / below)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        above, below, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        found = ops.lgamma(above + below) - ops.lgamma(above) - ops.lgamma(below)
        found = found + above * ops.log(ratio) + (above - 1) * ops.log(value)
        return found - (above + below) * log1p(ratio * value)


class StudentT(Distribution):
    """A normal number by the root of a mean square."""

    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: Any = None
    ) -> None:
        self.df, self.loc, self.scale = together(df, loc, scale)
        super().__init__(self.df.shape)

    @property
    def mean(self) -> Any:
        """The centre; nan up to 1 degree of freedom."""
        return choose(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> Any:
        """The centre."""
        return self.loc

    @property
    def variance(self) -> Any:
        """Infinite up to 2 degrees of freedom, nan up to 1."""
        safe = choose(self.df > 2, self.df, 3.0)
        found = choose(self.df > 2, self.scale**2 * safe / (safe - 2), math.inf)
        return choose(self.df <= 1, math.nan, found)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        noise = normal_draw(shape, self.df.dtype)
        square = at_least_tiny(2 * standard_gamma(ops.broadcast_to(self.df * 0.5, shape)))
        return self.loc + self.scale * noise * ops.rsqrt(square / self.df)

    def _log_normalizer(self) -> Any:
        half = ops.lgamma(0.5 * self.df) - ops.lgamma(0.5 * (self.df + 1.0))
        return 0.5 * ops.log(self.df) + 0.5 * math.log(math.pi) + half

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        distance = (value - self.loc) / self.scale
        tail = -0.5 * (self.df + 1.0) * log1p(distance * distance / self.df)
        return tail - ops.log(self.scale) - self._log_normalizer()

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        half = 0.5 * (self.df + 1)
        spread = half * (ops.digamma(half) - ops.digamma(0.5 * self.df))
        return ops.log(self.scale) + spread + self._log_normalizer()
