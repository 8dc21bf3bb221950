"""Element by element: arithmetic, activations, casts; and the softmaxes.

Every branch of a `where` is finite where it is not chosen, because its gradient is computed too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

from isograd.runtime.basics import axes_of, cast, shape_with, take
from isograd.runtime.exact import (
    choose,
    exp,
    expm1,
    log1p,
    tanh,
)
from isograd.runtime.pointwise import (
    elu,
    log_sigmoid,
    log_softmax,
    maximum,
    minimum,
    mish,
    selu,
    softmax,
    softplus,
    threshold,
)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + exp(choose(x < -80.0, 80.0, -x)))


def gelu(input: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (input + 0.044715 * input * input * input)
        return 0.5 * input * (1 + tanh(inner))
    return 0.5 * input * (1 + ops.erf(input * math.sqrt(0.5)))


def celu(input: Any, alpha: float = 1.0) -> Any:
    return elu(input, alpha, input_scale=1.0 / alpha)


def leaky_relu(input: Any, negative_slope: float = 0.01) -> Any:
    return choose(input > 0, input, negative_slope * input)


def prelu(input: Any, weight: Any) -> Any:
    if weight.size > 1:
        weight = weight.reshape(*[-1 if axis == 1 else 1 for axis in range(input.ndim)])
    return choose(input > 0, input, weight * input)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    low = choose(input <= min_val, min_val, input)
    return choose(input >= max_val, max_val, low)


def hardsigmoid(input: Any) -> Any:
    return hardtanh(input + 3.0, 0.0, 6.0) / 6.0


def hardswish(input: Any) -> Any:
    middle = input * (input + 3.0) / 6.0
    return choose(input <= -3.0, 0.0, choose(input >= 3.0, input, middle))


def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    return choose(ops.abs(input) > lambd, input, 0.0)


def softshrink(input: Any, lambd: float = 0.5) -> Any:
    return choose(input > lambd, input - lambd, choose(input < -lambd, input + lambd, 0.0))


def softmin(input: Any, dim: int | None = None) -> Any:
    return softmax(-input, dim)


def glu(input: Any, dim: int = -1) -> Any:
    (axis,) = axes_of(dim, input)
    half = input.shape[axis] // 2
    first, second = (take(input, axis, np.arange(half) + start) for start in (0, half))
    return first * sigmoid(second)


def add(input: Any, other: Any, alpha: float = 1) -> Any:
    return input + (other if alpha == 1 else alpha * other)


def sub(input: Any, other: Any, alpha: float = 1) -> Any:
    return input - (other if alpha == 1 else alpha * other)


def rsub(input: Any, other: Any, alpha: float = 1) -> Any:
    return other - (input if alpha == 1 else alpha * input)


def div(input: Any, other: Any, rounding_mode: str | None = None) -> Any:
    quotient = input / other
    if rounding_mode is None:
        return quotient
    return ops.floor(quotient) if rounding_mode == "floor" else ops.trunc(quotient)


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        input = choose(input < min, min, input)
    return input if max is None else choose(input > max, max, input)


def power(input: Any, exponent: Any = None, other: Any = None) -> Any:
    exponent = other if exponent is None else exponent
    if isinstance(exponent, int) and 1 <= exponent <= 4:
        return math.prod([input] * (exponent - 1), start=input)  # exact in its gradient at 0
    return ops.pow(input, exponent)


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    return choose(mask.astype(ms.bool_), value, input)


def where(condition: Any, input: Any, other: Any) -> Any:
    return choose(condition.astype(ms.bool_), input, other)


def convert(input: Any, dtype: Any = None, other: Any = None, **unused: Any) -> Any:
    """`Tensor.to`: only a dtype changes anything."""
    wanted = next((v for v in (dtype, other) if v is not None), None)
    if isinstance(wanted, ms.Tensor):
        return input.astype(wanted.dtype)
    is_dtype = isinstance(wanted, str) and hasattr(ms, wanted.rpartition(".")[2])
    return cast(input, wanted) if is_dtype else input


def identity(input: Any, **unused: Any) -> Any:
    return input


def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    axes = axes_of(dim, input)
    top = ops.stop_gradient(input.max(axis=axes, keepdims=True))
    found = top + ops.log(exp(input - top).sum(axes, keepdims=True))
    if keepdim:
        return found
    kept = shape_with(found, -1, 1)
    return found.reshape(tuple(n for axis, n in enumerate(kept) if axis not in axes))


def _elementwise(operator: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda input: operator(input)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gelu": gelu,
    "relu": lambda input: choose(input > 0, input, 0.0),
    "relu6": lambda input: hardtanh(input, 0.0, 6.0),
    "silu": lambda input: input * sigmoid(input),
    "elu": elu,
    "selu": selu,
    "celu": celu,
    "leaky_relu": leaky_relu,
    "prelu": prelu,
    "sigmoid": _elementwise(sigmoid),
    "tanh": _elementwise(tanh),
    "softplus": softplus,
    "softsign": lambda input: input / (1 + ops.abs(input)),
    "tanhshrink": lambda input: input - tanh(input),
    "mish": mish,
    "hardswish": hardswish,
    "hardsigmoid": hardsigmoid,
    "hardtanh": hardtanh,
    "hardshrink": hardshrink,
    "softshrink": softshrink,
    "threshold": threshold,
    "logsigmoid": log_sigmoid,
    "log_sigmoid": log_sigmoid,
    "glu": glu,
    "softmax": softmax,
    "log_softmax": log_softmax,
    "softmin": softmin,
    "logsumexp": logsumexp,
    "add": add,
    "sub": sub,
    "rsub": rsub,
    "mul": lambda input, other: input * other,
    "div": div,
    "rdiv": lambda input, other: other / input,
    "neg": lambda input: -input,
    "pow": power,
    "square": lambda input: input * input,
    "exp": _elementwise(exp),
    "expm1": _elementwise(expm1),
    "log": _elementwise(ops.log),
    "log1p": _elementwise(log1p),
    "sqrt": _elementwise(ops.sqrt),
    "rsqrt": lambda input: 1 / ops.sqrt(input),
    "reciprocal": lambda input: 1 / input,
    "abs": _elementwise(ops.abs),
    "erf": _elementwise(ops.erf),
    "sin": _elementwise(ops.sin),
    "cos": _elementwise(ops.cos),
    "clamp": clamp,
    "clip": clamp,
    "maximum": maximum,
    "minimum": minimum,
    "masked_fill": masked_fill,
    "where": where,
    "to": convert,
    "float": lambda input: input.astype(ms.float32),
    "half": lambda input: input.astype(ms.float16),
    "double": lambda input: input.astype(ms.float64),
    "bfloat16": lambda input: input.astype(ms.bfloat16),
    "identity": identity,
    "contiguous": identity,
    "clone": identity,
    "dropout": identity,
    "dropout1d": identity,
    "dropout2d": identity,
    "dropout3d": identity,
    "alpha_dropout": identity,
    "feature_dropout": identity,
    "detach": lambda input: ops.stop_gradient(input),
}
