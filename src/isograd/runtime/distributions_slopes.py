"""Gradients of draws of Gamma and Dirichlet by their concentrations, as torch computes them.

-(d/da cdf(x; a)) / pdf(x; a): series near 0, saddle points for great concentrations, and rational
functions between (ATen/native/Distributions.h of torch 2.13).
"""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.exact import choose

#: By the power of log(x / a): coefficients of the powers of log a, above and below.
_GAMMA = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343),
    (1.0, 0.32668115, 0.10406089, 0.0014179084),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758),
    (0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777),
    (0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07),
)
#: Above and below, by the powers of log x and of log(a / x): coefficients of the powers of b.
_DIRICHLET = np.array(
    """1.003668233 -0.01061107488 -0.0657888334 0.01201642863
    0.6336835991 -0.3557432599 0.05486251648 -0.001465281033
    -0.03276231906 0.004474107445 0.002429354597 -0.0001557569013
    0.221950385 -0.3187676331 0.01799915743 0.01074823814
    -0.2951249643 0.06219954479 0.01535556598 0.001550077057
    0.02155310298 0.004170831599 0.001292462449 6.976601077e-05
    -0.05980841433 0.008441916499 0.01085618172 0.002319392565
    0.02911413504 0.01400243777 -0.002721828457 0.000751041181
    0.005900514878 -0.001936558688 -9.495446725e-06 5.385558597e-05
    1 -0.02924021934 -0.04438342661 0.007285809825
    0.6357567472 -0.3473456711 0.05454656494 -0.002407477521
    -0.03301322327 0.004845219414 0.00231480583 -0.0002307248149
    0.5925320577 -0.1757678135 0.01505928619 0.000564515273
    0.1014815858 -0.06589186703 0.01272886114 -0.0007316646956
    -0.007258481865 0.001096195486 0.0003934994223 -4.12701925e-05
    0.06469649321 -0.0236701437 0.002902096474 -5.896963079e-05
    0.001925008108 -0.002869809258 0.0008000589141 -6.063713228e-05
    -0.0003477407336 6.959756487e-05 1.097287507e-05 -1.650964693e-06""".split(),
    float,
).reshape(2, 3, 3, 4)


def _cubic(factors: Any, v: Any) -> Any:
    a, b, c, d = (float(factor) for factor in factors)
    return a + v * (b + v * (c + v * d))


def _known(x: Any) -> Any:
    return choose(ops.isnan(x), 0.0, x)


def standard_gamma_slope(concentration: Any, drawn: Any) -> Any:
    """Of a number that was drawn of Gamma(concentration, 1)."""
    a, x = concentration.astype(ms.float64), drawn.astype(ms.float64)
    u, v = ops.log(x / a), ops.log(a)
    tops = [_cubic(row, v) for row in _GAMMA[::2]]
    lows = [_cubic(row, v) for row in _GAMMA[1::2]]
    ratio = (tops[0] + u * (tops[1] + u * tops[2])) / (lows[0] + u * (lows[1] + u * lows[2]))
    found = ops.where(a > 8.0, _gamma_slope_of_great(a, x), ops.exp(ratio))
    return ops.where(x < 0.8, _gamma_slope_near_zero(a, x), found).astype(drawn.dtype)


def _gamma_slope_near_zero(a: Any, x: Any) -> Any:
    factor = ops.ones_like(x)
    below = a
    first, second = factor / below, factor / (below * below)
    for number in range(1, 6):
        factor = factor * -x / number
        below = below + 1
        first, second = first + factor / below, second + factor / (below * below)
    power = ops.pow(x, a)
    density = ops.pow(x, a - 1) * ops.exp(-x)
    moved = (ops.log(x) - ops.digamma(a)) * power * first - power * second
    return _known(-moved / density)


def _gamma_slope_of_great(a: Any, x: Any) -> Any:
    inner = 1440 * a * a + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x)
    near = (1 + 24 * a * (1 + 12 * a)) * inner / (1244160 * a**4)
    is_near = ops.logical_and(0.9 * a <= x, x <= 1.1 * a)
    apart = ops.where(is_near, ops.ones_like(a), a - x)
    width = ops.sqrt(8 * a)
    saddle = ops.pow(x - a - a * ops.log(x / a), -1.5)
    terms = width / apart + ops.where(x < a, -saddle, saddle)
    term = ops.log(x / a) * terms - ops.sqrt(2 / a) * (a + x) / (apart * apart)
    stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a))
    return ops.where(is_near, near, -stirling * x * term / width)


def dirichlet_slope(drawn: Any, concentration: Any, total: Any) -> Any:
    """Of a share that was drawn of Dirichlet, over 1 - x."""
    x, a = drawn.astype(ms.float64), concentration.astype(ms.float64)
    total = ops.broadcast_to(total.astype(ms.float64), tuple(a.shape))
    b = total - a
    border = total * x * (1 - x)
    found = _between(x, a, total)
    are_great = ops.logical_and(a > 6, b > 6)
    found = ops.where(are_great, _beta_slope_of_great(x, a, b), found)
    near_one = ops.logical_and(x >= 0.5, border < 0.75)
    found = ops.where(near_one, -_beta_slope_of_rest(1 - x, b, a), found)
    near_zero = ops.logical_and(x <= 0.5, border < 2.5)
    return ops.where(near_zero, _beta_slope_near_zero(x, a, b), found).astype(drawn.dtype)


def _between(x: Any, a: Any, total: Any) -> Any:
    u = ops.log(x)
    v = ops.log(a) - u
    w = ops.log(total) - v
    ones = ops.ones_like(u)
    parts = []
    for table in _DIRICHLET:
        rows = [(ones, u, u * u)[i] * (ones, v, v * v)[j] * _cubic(table[i][j], w)
                for i in range(3) for j in range(3)]  # fmt: skip
        parts.append(sum(rows[1:], rows[0]))
    return parts[0] / parts[1] * x * (ops.digamma(total) - ops.digamma(a)) / (total - a)


def _beta_slope_near_zero(x: Any, a: Any, b: Any) -> Any:
    factor = ops.digamma(a) - ops.digamma(a + b) - ops.log(x)
    part = ops.ones_like(x)
    series = part / a * (factor + 1 / a)
    for number in range(1, 11):
        part = part * (number - b) * x / number
        series = series + part / (a + number) * (factor + 1 / (a + number))
    return _known(x * ops.pow(1 - x, -b) * series)


def _beta_slope_of_rest(x: Any, a: Any, b: Any) -> Any:
    factor = ops.digamma(a + b) - ops.digamma(b)
    part, product, slope = ops.ones_like(x), ops.ones_like(x), ops.zeros_like(x)
    series = factor / a
    for number in range(1, 9):
        part = part * -x / number
        slope = slope * (b - number) + product
        product = product * (b - number)
        series = series + part / (a + number) * (slope + factor * product)
    return _known(-ops.pow(1 - x, 1 - b) * series)


def _beta_slope_of_great(x: Any, a: Any, b: Any) -> Any:
    total = a + b
    mean = a / total
    width = ops.sqrt(a * b / (total + 1)) / total
    is_near = ops.abs(x - mean) <= 0.1 * width
    poly = 47 * x * b**4 + a * (
        (43 + 20 * (16 + 27 * b) * x) * b**3
        + a * (
            3 * (59 + 180 * b - 90 * x) * b**2
            + a * ((453 + 1620 * b * (1 - x) - 455 * x) * b + a * (8 * (1 - x) * (135 * b - 11)))
        )
    )  # fmt: skip
    above = (1 + 12 * a) * (1 + 12 * b) / (total * total)
    near = above / (1 - x) * poly / (12960 * a**3 * b**2 * (1 + 12 * total))
    apart = a * (x - 1) + b * x
    apart = ops.where(is_near, ops.ones_like(apart), apart)
    low = ops.sqrt(2 * a / b) * ops.pow(total, 1.5) * apart * apart
    first = (2 * a * a * (x - 1) + a * b * (x - 1) - x * b * b) / low
    base = b * ops.log(b / (total * (1 - x))) + a * ops.log(a / (total * x))
    saddle = ops.pow(base, -1.5)
    third = ops.sqrt(8 * a * b / total) / apart
    terms = first + 0.5 * ops.log(a / (total * x)) * (third + ops.where(x < mean, saddle, -saddle))
    stirling = _stirling(a) * _stirling(b) / _stirling(total)
    return ops.where(is_near, near, stirling * -x / ops.sqrt(2 * a * b / total) * terms)


def _stirling(a: Any) -> Any:
    return 1 + 1 / (12 * a) + 1 / (288 * a * a)
