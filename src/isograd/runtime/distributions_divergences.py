"""torch.distributions.kl: the Kullback-Leibler divergences that have a formula.

They ask for the classes by their names, so that a port that needs one does not hold all classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mindspore import ops  # noqa: TID253

from isograd.runtime.distributions_base import slopes_of, sum_of_last
from isograd.runtime.exact import choose, exp, log1p
from isograd.runtime.pointwise import softplus

_Rule = Callable[[Any, Any], Any]
_EULER = 0.57721566490153286060
#: A project's own.
_REGISTERED: dict[tuple[Any, Any], _Rule] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[_Rule], _Rule]:
    """A decorator of the function that computes the divergence of two classes."""

    def keep(function: _Rule) -> _Rule:
        _REGISTERED[type_p, type_q] = function
        return function

    return keep


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of two distributions, by their nearest classes."""
    rules = _rules()
    for kind in type(p).__mro__:
        for other in type(q).__mro__:
            names = (kind.__name__, other.__name__)
            rule = _REGISTERED.get((kind, other)) or rules.get(names)
            if rule is not None:
                return rule(p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


def _rules() -> dict[tuple[str, str], _Rule]:
    """The function of each pair of classes."""
    found: dict[tuple[str, str], _Rule] = {
        (name, name): rule
        for name, rule in {
            "Bernoulli": _of_bernoulli, "Beta": _of_beta, "Binomial": _of_binomial,
            "Categorical": _of_categorical, "Cauchy": _of_cauchy, "Dirichlet": _of_dirichlet,
            "ContinuousBernoulli": _to_continuous_bernoulli, "Exponential": _of_exponential,
            "ExponentialFamily": _of_families, "Gamma": _of_gamma, "Geometric": _of_geometric,
            "Gumbel": _of_gumbel, "HalfNormal": _of_bases, "Independent": _of_independent,
            "Laplace": _of_laplace, "Normal": _of_normal, "OneHotCategorical": _of_one_hot,
            "Pareto": _of_pareto, "Poisson": _of_poisson, "Uniform": _of_uniform,
            "TransformedDistribution": _of_transformed,
        }.items()
    }  # fmt: skip
    towards: dict[_Rule, tuple[str, str]] = {
        _to_exponential: ("Exponential", "Beta ContinuousBernoulli Gamma Pareto Uniform"),
        _to_gamma: ("Gamma", "Beta Exponential Pareto Uniform"),
        _to_gumbel: ("Gumbel", "Exponential Gamma Normal Uniform"),
        _to_normal: (
            "Normal", "Beta ContinuousBernoulli Exponential Gamma Gumbel Laplace Pareto Uniform"
        ),
        _to_uniform: ("Uniform", "Beta ContinuousBernoulli"),
        _to_continuous_bernoulli: ("ContinuousBernoulli", "Beta Uniform"),
    }  # fmt: skip
    for rule, (to, names) in towards.items():
        found.update(dict.fromkeys(((name, to) for name in names.split()), rule))
    found["Bernoulli", "Poisson"] = _of_bernoulli_to_poisson
    found["Normal", "Laplace"] = _of_normal_to_laplace
    found["Uniform", "Beta"] = _of_uniform_to_beta
    found["Uniform", "Pareto"] = _of_uniform_to_pareto
    vectors = ("MultivariateNormal", "LowRankMultivariateNormal")
    found.update({(first, second): _of_vectors for first in vectors for second in vectors})
    return found | _infinite_rules()


def _infinite_rules() -> dict[tuple[str, str], _Rule]:
    """The pairs of which one may be where the other cannot."""
    bounded = "Beta ContinuousBernoulli Pareto Uniform"
    everywhere = f"{bounded} Exponential Gamma"
    beyond = {
        "Beta": "Pareto", "ContinuousBernoulli": "Pareto", "Exponential": bounded,
        "Gamma": bounded, "Gumbel": everywhere, "Laplace": everywhere, "Normal": everywhere,
        "Pareto": "Beta ContinuousBernoulli Uniform", "Poisson": "Bernoulli Binomial",
    }  # fmt: skip
    return {(p, q): _infinite for p, names in beyond.items() for q in names.split()}


def _infinite(p: Any, q: Any) -> Any:
    return ops.full_like(ops.stop_gradient(p.mean), math.inf)


def _is_a(p: Any, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(p).__mro__)


def _of_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("no divergence of events of several depths")
    return sum_of_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _of_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("no divergence of distributions with other transforms")
    return kl_divergence(p.base_dist, q.base_dist)


def _of_bases(p: Any, q: Any) -> Any:
    return _of_normal(p.base_dist, q.base_dist)


def _of_families(p: Any, q: Any) -> Any:
    """By Bregman's divergence; as in torch no gradient goes to p."""
    if type(p) is not type(q):
        raise NotImplementedError("no divergence of several exponential families")
    parts = tuple(ops.stop_gradient(part) for part in p._natural_params)
    others = q._natural_params
    found = q._log_normalizer(*others) - ops.stop_gradient(p._log_normalizer(*parts))
    slopes = slopes_of(p._log_normalizer, parts)
    for part, other, slope in zip(parts, others, slopes, strict=True):
        count = part.ndim - len(p.batch_shape)
        found = found - sum_of_last((other - part) * ops.stop_gradient(slope), count)
    return found


def _of_normal(p: Any, q: Any) -> Any:
    ratio, shift = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + shift - 1 - ops.log(ratio))


def _bordered(found: Any, share: Any, other: Any) -> Any:
    """Infinite where only the other's probability is 0, 0 where p's is."""
    return choose(share == 0, 0.0, choose(other == 0, math.inf, found))


def _of_bernoulli(p: Any, q: Any) -> Any:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return _bordered(ones, p.probs, q.probs) + _bordered(zeros, 1 - p.probs, 1 - q.probs)


def _of_categorical(p: Any, q: Any) -> Any:
    return _bordered(p.probs * (p.logits - q.logits), p.probs, q.probs).sum(-1)


def _of_one_hot(p: Any, q: Any) -> Any:
    return _of_categorical(p._categorical, q._categorical)


def _of_binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    found = p.probs * (p.logits - q.logits) + log1p(-p.probs) - log1p(-q.probs)
    return choose(p.total_count > q.total_count, math.inf, p.total_count * found)


def _of_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - log1p(-q.probs) / p.probs - q.logits


def _of_poisson(p: Any, q: Any) -> Any:
    return p.rate * (ops.log(p.rate) - ops.log(q.rate)) - (p.rate - q.rate)


def _of_bernoulli_to_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * ops.log(q.rate) - q.rate)


def _of_beta(p: Any, q: Any) -> Any:
    mine, theirs = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    found = ops.lgamma(mine) - ops.lgamma(theirs) + (theirs - mine) * ops.digamma(mine)
    pairs = ((p.concentration1, q.concentration1), (p.concentration0, q.concentration0))
    for a, b in pairs:
        found = found + ops.lgamma(b) - ops.lgamma(a) + (a - b) * ops.digamma(a)
    return found


def _of_dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    found = ops.lgamma(total) - ops.lgamma(b.sum(-1)) - (ops.lgamma(a) - ops.lgamma(b)).sum(-1)
    return found + ((a - b) * (ops.digamma(a) - ops.digamma(total).expand_dims(-1))).sum(-1)


def _of_gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    found = b * ops.log(p.rate / q.rate) + ops.lgamma(b) - ops.lgamma(a)
    return found + (a - b) * ops.digamma(a) + (q.rate - p.rate) * (a / p.rate)


def _of_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ops.log(ratio) + ratio - 1


def _of_cauchy(p: Any, q: Any) -> Any:
    apart = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return ops.log(apart) - ops.log(4 * p.scale * q.scale)


def _of_laplace(p: Any, q: Any) -> Any:
    ratio, away = p.scale / q.scale, ops.abs(p.loc - q.loc)
    return -ops.log(ratio) + away / q.scale + ratio * exp(-away / p.scale) - 1


def _of_gumbel(p: Any, q: Any) -> Any:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    found = -ops.log(ratio) + away + ratio * _EULER
    return found + exp(ops.lgamma(1 + ratio) - away) - (1 + _EULER)


def _of_pareto(p: Any, q: Any) -> Any:
    scales, powers = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * ops.log(scales) - ops.log(powers) + powers - 1
    return choose(p.scale < q.scale, math.inf, found)


def _of_uniform(p: Any, q: Any) -> Any:
    found = ops.log((q.high - q.low) / (p.high - p.low))
    return choose(ops.logical_or(q.low > p.low, q.high < p.high), math.inf, found)


def _of_vectors(p: Any, q: Any) -> Any:
    """Of normal vectors, whose covariances are whole or of low rank."""
    if p.event_shape != q.event_shape:
        raise ValueError("Multivariate Normals with different event shapes have no divergence")
    apart = q._trace_of(p) + q._mahalanobis(q.loc - p.loc)
    return 0.5 * (q._log_det() - p._log_det() + apart - p.event_shape[0])


def _moments(p: Any) -> tuple[Any, Any]:
    """Mean and variance; a Pareto's without the bounds up to which there are some."""
    if not _is_a(p, "Pareto"):
        return p.mean, p.variance
    mean = p.alpha * p.scale / (p.alpha - 1)
    return mean, p.scale**2 * p.alpha / ((p.alpha - 1) ** 2 * (p.alpha - 2))


def _x_log_x(x: Any) -> Any:
    return ops.xlogy(x, x)


def _mean_log(p: Any) -> Any:
    """The mean of the logarithm."""
    if _is_a(p, "Beta"):
        return ops.digamma(p.concentration1) - ops.digamma(p.concentration1 + p.concentration0)
    if _is_a(p, "Exponential"):
        return -_EULER - ops.log(p.rate)
    if _is_a(p, "Pareto"):
        return ops.log(p.scale) + 1 / p.alpha
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


def _bounded(p: Any, found: Any, power: float) -> Any:
    """Infinite where p is a Pareto without moments, or a Uniform that begins below 0."""
    if _is_a(p, "Pareto"):
        return choose(p.alpha <= power, math.inf, found)
    if _is_a(p, "Uniform") and power == 1:
        return choose(p.low < 0, math.inf, found)
    return found


def _to_exponential(p: Any, q: Any) -> Any:
    return _bounded(p, q.rate * _moments(p)[0] - p.entropy() - ops.log(q.rate), 1)


def _to_gamma(p: Any, q: Any) -> Any:
    a, b = q.concentration, q.rate
    found = ops.lgamma(a) - a * ops.log(b) - (a - 1) * _mean_log(p) + b * _moments(p)[0]
    return _bounded(p, found - p.entropy(), 1)


def _to_normal(p: Any, q: Any) -> Any:
    mean, variance = _moments(p)
    square = q.scale * q.scale
    spread = (variance + (mean - q.loc) ** 2) / (2 * square)
    return _bounded(p, 0.5 * ops.log(2 * math.pi * square) + spread - p.entropy(), 2)


def _to_gumbel(p: Any, q: Any) -> Any:
    width, loc = q.scale, q.loc / q.scale
    if _is_a(p, "Normal"):
        tail = exp(loc - p.loc / width + 0.5 * (p.scale / width) ** 2)
    elif _is_a(p, "Gamma"):
        tail = exp(loc) * ops.pow(1 + 1 / (p.rate * width), -p.concentration)
    elif _is_a(p, "Exponential"):
        tail = exp(loc) * p.rate * width / (p.rate * width + 1)
    else:
        tail = exp(loc - p.low / width) - exp(loc - p.high / width)
        tail = tail * width / (p.high - p.low)
    return ops.log(width) + p.mean / width - loc + tail - p.entropy()


def _to_uniform(p: Any, q: Any) -> Any:
    found = ops.log(q.high - q.low) - p.entropy()
    if _is_a(p, "Beta"):
        return choose(ops.logical_or(q.low > 0, q.high < 1), math.inf, found)
    return choose(ops.logical_or(q.low >= 0, q.high <= 1), math.inf, found)


def _to_continuous_bernoulli(p: Any, q: Any) -> Any:
    found = -p.entropy() - p.mean * q.logits - log1p(-q.probs) - q._cont_bern_log_norm()
    if not _is_a(p, "Uniform"):
        return found
    return choose(ops.logical_or(p.high >= 1, p.low <= 0), math.inf, found)


def _of_normal_to_laplace(p: Any, q: Any) -> Any:
    away, ratio = p.loc - q.loc, p.scale / q.scale
    share = away / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * exp(-0.5 * share * share)
    mean = mean + away * ops.erf(math.sqrt(0.5) * share)
    return -ops.log(ratio) + mean / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


def _of_uniform_to_beta(p: Any, q: Any) -> Any:
    width, a, b = p.high - p.low, q.concentration1, q.concentration0
    rest = (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    found = (b - 1) * rest - (a - 1) * _mean_log(p) - ops.log(width)
    found = found + ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)
    return choose(ops.logical_or(p.high > 1, p.low < 0), math.inf, found)


def _of_uniform_to_pareto(p: Any, q: Any) -> Any:
    width = ops.log(q.alpha * ops.pow(q.scale, q.alpha) * (p.high - p.low))
    return choose(p.low < q.scale, math.inf, _mean_log(p) * (q.alpha + 1) - width)
