"""Elementary functions to float32 accuracy: some of MindSpore's CPU kernels are rough.

Measured in 2.10: `exp` is off by up to 1e-5 (relative), `tanh` by 1e-4, `expm1` and `log1p` lose
all digits near 0.  `pow`, `erf`, `log` and `sqrt` are good to a few units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

_E = float(np.float32(math.e))
#: What float32 lacks of e, relative to it.
_REST = math.log(math.e) - math.log(_E)
#: Below these a polynomial is exact.
_NEAR_EXP, _NEAR_LOG, _NEAR_TANH = 0.1, 0.05, 0.2


def like(value: Any, other: Any) -> Any:
    """A number as a tensor of the other's dtype."""
    return value if isinstance(value, ms.Tensor) else ms.Tensor(value, other.dtype)


def choose(condition: Any, x: Any, y: Any) -> Any:
    """`where` of tensors and numbers; the branch not chosen must be finite for the gradient."""
    kind = x if isinstance(x, ms.Tensor) else y
    return ops.where(condition, like(x, kind), like(y, kind))


def exp(x: Any) -> Any:
    """e to the power x, to float32 accuracy."""
    if x.dtype != ms.float32:
        return ops.exp(x)
    return ops.pow(_E, x) * (1 + choose(ops.abs(x) > 100.0, 0.0, x) * _REST)


def expm1(x: Any) -> Any:
    """exp(x) - 1, exact near 0."""
    near = ops.abs(x) < _NEAR_EXP
    small = choose(near, x, 0.0)
    series = small * (1 + small / 2 * (1 + small / 3 * (1 + small / 4 * (1 + small / 5))))
    return choose(near, series, exp(choose(near, 1.0, x)) - 1)


def log1p(x: Any) -> Any:
    """log(1 + x), exact near 0."""
    near = ops.abs(x) < _NEAR_LOG
    y = choose(near, x, 0.0)
    series = y * (1 - y * (1 / 2 - y * (1 / 3 - y * (1 / 4 - y * (1 / 5 - y / 6)))))
    return choose(near, series, ops.log(1 + choose(near, 1.0, x)))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent, to float32 accuracy."""
    near = ops.abs(x) < _NEAR_TANH
    small = choose(near, x, 0.0)
    s = small * small
    series = small * (1 - s * (1 / 3 - s * (2 / 15 - s * (17 / 315 - s * (62 / 2835)))))
    e = exp(-2 * ops.abs(choose(near, 1.0, x)))
    return choose(near, series, ops.sign(x) * (1 - e) / (1 + e))
