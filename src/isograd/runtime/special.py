"""Special functions that MindSpore has not, and those of which torch gives no gradient.

Coefficients are tensors of the input's dtype: beside a tensor of float64 MindSpore 2.10 rounds
Python's numbers to float32.  Every branch of a `where` is finite where it is not chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import is_compiled
from isograd.runtime.exact import choose, exp, like, log1p
from isograd.runtime.making import floating, of_one_float_dtype

#: (1 + 2x) erfcx(x) in Chebyshev polynomials of (x - 3.75) / (x + 3.75) for x >= 0 (Shepherd and
#: Laframboise 1981), fitted to scipy.special.erfcx: relative error 4e-15 in float64.
_ERFCX = (
    1.177578934567402, -0.004590054580646402, -0.08424913336651807, 0.05920993999819222,
    -0.026658668435305944, 0.009074997670705534, -0.0024131635404179477, 0.0004907758365256393,
    -6.916973302529758e-05, 4.139027986627131e-06, 7.740383059021139e-07, -2.188640099431982e-07,
    1.0764999860274349e-08, 4.521960222936272e-09, -7.754404167392703e-10, -6.318068290767087e-11,
    2.8687607844801732e-11, 1.9484414082171497e-13, -9.652452448438709e-13, 3.2432390106862385e-14,
    3.3867006421495205e-14, -1.6445178552260131e-15, -1.3444106938820255e-16,
)  # fmt: skip
#: The normal distribution's quantile by cephes, as in torch: numerators and denominators near the
#: middle, for sqrt(-2 log p) below 8, and above.  The highest power stands first.
_MIDDLE = (
    (-59.9633501014107895267, 98.0010754185999661536, -56.6762857469070293439,
     13.9312609387279679503, -1.23916583867381258016, 0.0),
    (1.0, 1.95448858338141759834, 4.67627912898881538453, 86.3602421390890590575,
     -225.462687854119370527, 200.260212380060660359, -82.0372256168333339912,
     15.9056225126211695515, -1.18331621121330003142),
)  # fmt: skip
_TAIL = (
    (4.05544892305962419923, 31.5251094599893866154, 57.1628192246421288162,
     44.0805073893200834700, 14.6849561928858024014, 2.18663306850790267539,
     -0.140256079171354495875, -0.0350424626827848203418, -8.57456785154685413611e-4, 0.0),
    (1.0, 15.7799883256466749731, 45.3907635128879210584, 41.3172038254672030440,
     15.0425385692907503408, 2.50464946208309415979, -0.142182922854787788574,
     -0.0380806407691578277194, -9.33259480895457427372e-4),
)  # fmt: skip
_FAR_TAIL = (
    (3.23774891776946035970, 6.91522889068984211695, 3.93881025292474443415,
     1.33303460815807542389, 0.201485389549179081538, 0.0123716634817820021358,
     3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9, 0.0),
    (1.0, 6.02427039364742014255, 3.67983563856160859403, 1.37702099489081330271,
     0.216236993594496635890, 0.0134204006088543189037, 3.28014464682127739104e-4,
     2.89247864745380683936e-6, 6.79019408009981274425e-9),
)  # fmt: skip
_TAIL_BELOW = 0.13533528323661269189  # exp(-2)


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """The polynomial whose highest power's coefficient stands first."""
    found = like(coefficients[0], x)
    for coefficient in coefficients[1:]:
        found = found * x + like(coefficient, x)
    return found


def chebyshev_sum(coefficients: Sequence[float], x: Any) -> Any:
    """Chebyshev polynomials with these weights, added up by Clenshaw's recurrence."""
    last = before = ops.zeros_like(x)
    for coefficient in coefficients[:0:-1]:
        last, before = 2 * x * last - before + like(coefficient, x), last
    return x * last - before + like(coefficients[0], x)


def _ratio(parts: tuple[Sequence[float], Sequence[float]], x: Any) -> Any:
    return polynomial(parts[0], x) / polynomial(parts[1], x)


def erfcx(input: Any) -> Any:
    """exp(x²) erfc(x), without overflow for large x."""
    x = floating(input)
    size = choose(x < 0, -x, x)
    above = chebyshev_sum(_ERFCX, 1 - 7.5 / (size + 3.75)) / (1 + 2 * size)
    below = choose(x < 0, x, 0.0)
    return choose(x < 0, 2 * exp(below * below) - above, above)


def log_ndtr(input: Any) -> Any:
    """The logarithm of the normal distribution's function, exact far below 0."""
    x = floating(input)
    root = like(math.sqrt(0.5), x)
    low = choose(x < -1, x, -1.0) * root
    high = choose(x < -1, 0.0, x) * root
    falling = ops.log(erfcx(-low) / 2) - low * low
    return choose(x < -1, falling, log1p(-ops.erfc(high) / 2))


def ndtri(input: Any) -> Any:
    """The value below which a share of the normal distribution lies."""
    share = floating(input)
    is_above = share > like(1 - _TAIL_BELOW, share)
    y = choose(is_above, 1 - share, share)
    is_middle = y > like(_TAIL_BELOW, y)
    c = choose(is_middle, y, 0.5) - 0.5
    middle = (c + c * _ratio(_MIDDLE, c * c)) * like(math.sqrt(2 * math.pi), c)
    z = ops.sqrt(-2 * ops.log(choose(ops.logical_or(is_middle, y <= 0), 0.1, y)))
    near, far = _ratio(_TAIL, 1 / z), _ratio(_FAR_TAIL, 1 / z)
    tail = z - ops.log(z) / z - choose(z < 8, near, far)
    found = choose(is_middle, middle, choose(is_above, tail, -tail))
    found = choose(y == 0, choose(is_above, math.inf, ops.full_like(y, -math.inf)), found)
    return choose(ops.logical_or(share < 0, share > 1), math.nan, found)


def zeta(input: Any, other: Any) -> Any:
    """Hurwitz's zeta function of x and q, with q's gradient: torch has none for x."""
    x, q = of_one_float_dtype(input, other)
    shape = np.broadcast_shapes(tuple(x.shape), tuple(q.shape))
    x, q = ops.stop_gradient(ops.broadcast_to(x, shape)), ops.broadcast_to(q, shape)
    return choose(ops.isinf(q), math.nan, ops.zeta(x, q))


def of_floats(function: Any) -> Any:
    """A function of MindSpore's that takes two tensors of one float dtype, of any two."""

    def run(input: Any, other: Any) -> Any:
        return function(*of_one_float_dtype(input, other))

    return run


logaddexp, logaddexp2 = of_floats(ops.logaddexp), of_floats(ops.logaddexp2)
igamma, igammac = of_floats(ops.igamma), of_floats(ops.igammac)
hypot = of_floats(ops.hypot)


def nextafter(input: Any, other: Any) -> Any:
    """The next number towards another; MindSpore's gives float32 back as it is (2.10, CPU)."""
    input, other = of_one_float_dtype(input, other)
    if is_compiled(input):
        return ops.nextafter(input, other)
    return ms.Tensor(np.nextafter(input.asnumpy(), other.asnumpy()))


# ---- torch gives no gradient through these: a port neither


def modified_bessel_i0(input: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0."""
    return ops.stop_gradient(ops.bessel_i0(floating(input)))


def modified_bessel_i1(input: Any) -> Any:
    """The modified Bessel function of the first kind, of order 1."""
    return ops.stop_gradient(ops.bessel_i1(floating(input)))


def _of_second_kind(function: Any, input: Any) -> Any:
    """A Bessel function that is infinite at 0 and not a number below."""
    x = ops.stop_gradient(floating(input))
    found = function(choose(x > 0, x, 1.0))
    edge = choose(x == 0, math.inf, ops.full_like(x, math.nan))
    return ops.where(x > 0, found, edge)


def modified_bessel_k0(input: Any) -> Any:
    """The modified Bessel function of the second kind, of order 0."""
    return _of_second_kind(ops.bessel_k0, input)


def modified_bessel_k1(input: Any) -> Any:
    """The modified Bessel function of the second kind, of order 1."""
    return _of_second_kind(ops.bessel_k1, input)


def scaled_modified_bessel_k0(input: Any) -> Any:
    """The same as `modified_bessel_k0`, times exp(x)."""
    return _of_second_kind(ops.bessel_k0e, input)


def scaled_modified_bessel_k1(input: Any) -> Any:
    """The same as `modified_bessel_k1`, times exp(x)."""
    return _of_second_kind(ops.bessel_k1e, input)


def spherical_bessel_j0(input: Any) -> Any:
    """sin(x) / x: 1 at 0, 0 at infinity."""
    x = ops.stop_gradient(floating(input))
    is_plain = ops.logical_and(x != 0, ops.logical_not(ops.isinf(x)))
    safe = choose(is_plain, x, 1.0)
    edge = choose(x == 0, 1.0, ops.zeros_like(x))
    return ops.where(is_plain, ops.sin(safe) / safe, edge)


def airy_ai(input: Any) -> Any:
    """Airy's function Ai, by scipy (a part of MindSpore's installation); nan at infinity."""
    from scipy import special

    x = ops.stop_gradient(floating(input))
    values = x.asnumpy().astype(np.float64)
    found = np.where(np.isinf(values), np.nan, special.airy(values)[0])
    return ms.Tensor(found).astype(x.dtype)
