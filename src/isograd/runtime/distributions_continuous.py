"""torch.distributions: angles, continuous shares, and what lies beyond a threshold."""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.distributions_base import (
    Distribution,
    ExponentialFamily,
    clamp_probs,
    together,
    uniform_draw,
)
from isograd.runtime.exact import choose, exp, expm1, log1p
from isograd.runtime.pointwise import log_sigmoid

_I0_SMALL = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_I0_LARGE = (
    0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537,
    -0.01647633, 0.00392377,
)  # fmt: skip
_I1_SMALL = (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411)
_I1_LARGE = (
    0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312,
    0.01787654, -0.00420059,
)  # fmt: skip


def _polynomial(y: Any, factors: tuple[float, ...]) -> Any:
    found: Any = factors[-1]
    for factor in factors[-2::-1]:
        found = factor + y * found
    return found


def _log_bessel(x: Any, order: int) -> Any:
    """The logarithm of a modified Bessel function of order 0 or 1, by torch's polynomials."""
    is_small = x < 3.75
    near, far = choose(is_small, x, 1.0), choose(is_small, 3.75, x)
    small = _polynomial((near / 3.75) ** 2, _I1_SMALL if order else _I0_SMALL)
    small = ops.abs(near) * small if order else small
    large = _polynomial(3.75 / far, _I1_LARGE if order else _I0_LARGE)
    return ops.where(is_small, ops.log(small), far - 0.5 * ops.log(far) + ops.log(large))


#: Tries of a draw of an angle: one is taken with 0.65 at least.
_TRIES = 32


class VonMises(Distribution):
    """An angle around a centre."""

    def __init__(self, loc: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.concentration = together(loc, concentration)
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Any:
        """The centre."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """The circular variance."""
        a = self.concentration
        return 1 - exp(_log_bessel(a, 1) - _log_bessel(a, 0))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        a = self.concentration
        return a * ops.cos(value - self.loc) - math.log(2 * math.pi) - _log_bessel(a, 0)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        """By rejection (Best and Fisher 1979), in double precision as in torch."""
        kappa = self.concentration.astype(ms.float64)
        tau = 1 + ops.sqrt(1 + 4 * kappa * kappa)
        rho = (tau - ops.sqrt(2 * tau)) / (2 * kappa)
        ratio = ops.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))
        first, second, third = (
            uniform_draw((_TRIES, *shape), ms.float32).astype(ms.float64) for _ in range(3)
        )
        z = ops.cos(math.pi * first)
        f = (1 + ratio * z) / (ratio + z)
        c = kappa * (ratio - f)
        safe = ops.clamp(c / ops.clamp(second, 1e-30), 1e-300)
        taken = ops.logical_or(c * (2 - c) - second > 0, ops.log(safe) + 1 - c >= 0)
        angles = ops.sign(third - 0.5) * ops.acos(ops.clamp(f, -1.0, 1.0))
        drawn = angles[0]
        for step in reversed(range(_TRIES)):
            drawn = ops.where(taken[step], angles[step], drawn)
        whole = ops.fmod(drawn + math.pi + self.loc.astype(ms.float64), 2 * math.pi)
        whole = ops.where(whole < 0, whole + 2 * math.pi, whole)
        return (whole - math.pi).astype(self.loc.dtype)


class ContinuousBernoulli(ExponentialFamily):
    """A share with the density of a Bernoulli's probability; near a half by Taylor's series."""

    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: Any = None,
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        (given,) = together(logits if probs is None else probs)
        if probs is None:
            self.logits, self.probs = given, clamp_probs(ops.sigmoid(given))
        else:
            self.probs = clamp_probs(given)
            self.logits = ops.log(self.probs) - log1p(-self.probs)
        self._lims = lims
        super().__init__(given.shape)

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple(self.probs.shape)

    def _outside_unstable_region(self) -> Any:
        return ops.logical_or(self.probs <= self._lims[0], self.probs > self._lims[1])

    def _cut_probs(self) -> Any:
        return choose(self._outside_unstable_region(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Any:
        cut = self._cut_probs()
        width = ops.log(ops.abs(log1p(-cut) - ops.log(cut)))
        below, above = choose(cut <= 0.5, cut, 0.0), choose(cut >= 0.5, cut, 1.0)
        width = width - ops.where(cut <= 0.5, log1p(-2.0 * below), ops.log(2.0 * above - 1.0))
        x = (self.probs - 0.5) ** 2
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return ops.where(self._outside_unstable_region(), width, series)

    @property
    def mean(self) -> Any:
        """The mean."""
        cut = self._cut_probs()
        found = cut / (2.0 * cut - 1.0) + 1.0 / (log1p(-cut) - ops.log(cut))
        x = self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x * x) * x
        return ops.where(self._outside_unstable_region(), found, series)

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean."""
        cut = self._cut_probs()
        found = cut * (cut - 1.0) / (1.0 - 2.0 * cut) ** 2
        found = found + 1.0 / (log1p(-cut) - ops.log(cut)) ** 2
        x = (self.probs - 0.5) ** 2
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return ops.where(self._outside_unstable_region(), found, series)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.icdf(uniform_draw(shape, self.probs.dtype))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        logits, value = together(self.logits, value)
        return value * logits + log_sigmoid(-logits) + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        cut = self._cut_probs()
        powers = ops.pow(cut, value) * ops.pow(1.0 - cut, 1.0 - value)
        found = (powers + cut - 1.0) / (2.0 * cut - 1.0)
        stable, found, value = self._outside_unstable_region(), *together(found, value)
        found = ops.where(stable, found, value)
        return choose(value <= 0.0, 0.0, choose(value >= 1.0, 1.0, found))

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        cut = self._cut_probs()
        above = log1p(-cut + value * (2.0 * cut - 1.0)) - log1p(-cut)
        found, value = together(above / (ops.log(cut) - log1p(-cut)), value)
        return ops.where(self._outside_unstable_region(), found, value)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        rest, share = log1p(-self.probs), ops.log(self.probs)
        return self.mean * (rest - share) - self._cont_bern_log_norm() - rest

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        (x,) = natural_params
        stable = ops.logical_or(x <= self._lims[0] - 0.5, x > self._lims[1] - 0.5)
        cut = choose(stable, x, self._lims[0] - 0.5)
        found = ops.log(ops.abs(expm1(cut))) - ops.log(ops.abs(cut))
        series = 0.5 * x + x**2 / 24.0 - x**4 / 2880.0
        return ops.where(stable, found, series)


class GeneralizedPareto(Distribution):
    """What lies beyond a threshold."""

    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: Any = None) -> None:
        self.loc, self.scale, self.concentration = together(loc, scale, concentration)
        super().__init__(self.loc.shape)

    def _parted(self) -> tuple[Any, Any]:
        """Where the concentration is none, and a concentration that divides."""
        is_none = ops.abs(self.concentration) <= 1e-8
        return is_none, choose(is_none, 1.0, self.concentration)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.icdf(uniform_draw(shape, self.loc.dtype))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density."""
        z, (is_none, safe) = (value - self.loc) / self.scale, self._parted()
        power = 1 / safe + ops.ones_like(z)
        found = ops.where(power == 0, power, power * log1p(safe * z))
        return -ops.log(self.scale) - ops.where(is_none, z, found)

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of the share above a value."""
        z, (is_none, safe) = (value - self.loc) / self.scale, self._parted()
        return ops.where(is_none, -z, -log1p(safe * z) / safe)

    def log_cdf(self, value: Any) -> Any:
        """The logarithm of the share below a value."""
        return log1p(-exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        """The share below a value."""
        return exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        """The value below which a share lies."""
        is_none, safe = self._parted()
        logs = log1p(-value)
        found = self.loc + self.scale / safe * expm1(-safe * logs)
        return ops.where(is_none, self.loc - self.scale * logs, found)

    @property
    def mean(self) -> Any:
        """The mean; nan from a concentration of 1 on."""
        is_there = self.concentration < 1
        safe = choose(is_there, self.concentration, 0.5)
        return choose(is_there, self.loc + self.scale / (1 - safe), math.nan)

    @property
    def mode(self) -> Any:
        """The threshold."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The mean square distance from the mean; nan from a concentration of a half on."""
        is_there = self.concentration < 0.5
        safe = choose(is_there, self.concentration, 0.25)
        return choose(is_there, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), math.nan)

    def entropy(self) -> Any:
        """The mean of the negated log_prob."""
        return ops.log(self.scale) + self.concentration + 1
