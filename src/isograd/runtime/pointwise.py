"""Element by element: arithmetic, activations, casts; and the softmaxes.

Every branch of a `where` is finite where it is not chosen, because its gradient is computed too.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253
from mindspore.ops import functional  # noqa: TID253

from isograd.runtime.exact import (
    choose,
    exp,
    expm1,
    log1p,
    tanh,
)
from isograd.runtime.making import floating, of_one_dtype, of_one_float_dtype, promote_types

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _below(x: Any, most: float) -> Any:
    return choose(x > most, most, x)


def elu(
    input: Any,
    alpha: float = 1.0,
    inplace: bool = False,
    scale: float = 1.0,
    input_scale: float = 1.0,
) -> Any:
    """The input above 0, alpha * expm1 below."""
    falling = alpha * expm1(_below(input, 0.0) * input_scale)
    return scale * choose(input > 0, input, falling)


def selu(input: Any, inplace: bool = False) -> Any:
    """The self-normalising ELU."""
    return elu(input, _SELU_ALPHA, scale=_SELU_SCALE)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta x)) / beta, the input beyond the threshold."""
    scaled = input * beta
    return choose(scaled > threshold, input, log1p(exp(_below(scaled, threshold))) / beta)


def logit(input: Any, eps: Any = None) -> Any:
    """The inverse of the sigmoid; MindSpore 2.10's own writes its gradient beyond its memory."""
    share = input if eps is None else ops.clamp(input, eps, 1 - eps)
    return ops.log(share / (1 - share))


def heaviside(input: Any, values: Any) -> Any:
    """1 above 0, 0 below, and the values at 0."""
    return ops.where(input == 0, values, (input > 0).astype(input.dtype))


def log_sigmoid(input: Any) -> Any:
    """log of the sigmoid, without overflow."""
    falling = choose(input > 0, -input, input)
    return _below(input, 0.0) - log1p(exp(falling))


def mish(input: Any, inplace: bool = False) -> Any:
    """x * tanh(softplus(x))."""
    return input * tanh(softplus(input))


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """The input above a threshold, else a value."""
    return choose(input > threshold, input, value)


def softmax(input: Any, dim: int | None = None, dtype: Any = None, _stacklevel: int = 3) -> Any:
    """Exponentials that add up to 1 along an axis.

    Where a process's first gradient of MindSpore's own is of an axis of one element, all later
    ones are wrong (2.10, CPU), so such an axis is not left to it.
    """
    input = input if dtype is None else input.astype(dtype)
    dim = usual_axis(input) if dim is None else dim
    if not input.ndim or input.shape[dim] == 1:
        return input - input + 1
    return ops.softmax(input, dim)


def softmax_of_infinities(
    input: Any, dim: int | None = None, dtype: Any = None, _stacklevel: int = 3
) -> Any:
    """The softmax of what may hold infinity: a row of -inf alone is NaN, and no other is.

    MindSpore's own of the last axis (2.10, CPU, float32) makes zeros of such a row, and spoils
    valid rows beside it; with an axis behind it takes another kernel, whose rows are torch's.
    """
    input = input if dtype is None else input.astype(dtype)
    dim = usual_axis(input) if dim is None else dim
    if not input.ndim or input.shape[dim] == 1:
        return input - input + 1
    return ops.softmax(input.expand_dims(-1), dim if dim >= 0 else dim - 1).squeeze(-1)


def softmax_by_hand(input: Any, dim: int) -> Any:
    """The softmax, with exponentials as exact as torch's."""
    shifted = input - ops.stop_gradient(input.max(axis=dim, keepdims=True))
    powers = exp(shifted)
    return powers / powers.sum(dim, keepdims=True)


def softmax_of_masked(input: Any) -> Any:
    """The softmax of the last axis; a row of -inf alone is 0, as in torch's fused attention."""
    is_empty = (input == -math.inf).all(-1, True)
    shares = softmax_by_hand(choose(is_empty, 0.0, input), -1)
    return choose(is_empty, 0.0, shares)


def log_softmax(input: Any, dim: int | None = None, dtype: Any = None, _stacklevel: int = 3) -> Any:
    """The logarithm of the softmax."""
    input = input if dtype is None else input.astype(dtype)
    dim = usual_axis(input) if dim is None else dim
    if input.size == 0:  # of which MindSpore has no greatest
        return input * 1
    shifted = input - ops.stop_gradient(input.max(axis=dim, keepdims=True))
    return shifted - ops.log(exp(shifted).sum(dim, keepdims=True))


def fmod(input: Any, other: Any) -> Any:
    """The remainder with the sign of the first; MindSpore's wraps integers beyond 2 ** 31."""
    if _has_fractions(input) or _has_fractions(other):
        return ops.fmod(input, other)
    rest = input % other
    turns = ops.logical_and(rest != 0, (input < 0) != (other < 0))
    return ops.where(turns, rest - other, rest)


def _has_fractions(x: Any) -> bool:
    return bool(ops.is_floating_point(x)) if isinstance(x, ms.Tensor) else isinstance(x, float)


def usual_axis(x: Any) -> int:
    """Torch's choice where no axis is given (it warns)."""
    return 0 if x.ndim in (0, 1, 3) else 1


def maximum(input: Any, other: Any) -> Any:
    """Equal elements share the gradient, as in torch."""
    if not (ops.is_floating_point(input) or ops.is_floating_point(other)):
        return _either(input, other, ops.logical_or, ops.maximum)
    equal = choose(input == other, 0.5 * (input + other), other)
    return choose(input > other, input, equal)


def minimum(input: Any, other: Any) -> Any:
    """The lesser; equal elements share the gradient."""
    if not (ops.is_floating_point(input) or ops.is_floating_point(other)):
        return _either(input, other, ops.logical_and, ops.minimum)
    return -maximum(-input, -other)


def _either(input: Any, other: Any, of_booleans: Any, of_numbers: Any) -> Any:
    are_booleans = input.dtype == other.dtype == ms.bool_
    return (of_booleans if are_booleans else of_numbers)(input, other)


class _Chosen(nn.Cell):  # type: ignore[misc]
    """Python's `max` or `min`; compiled, by operators.

    The static graph runs a tensor's beside a number in Python, and with that all that it returns
    loses its gradient (2.10).
    """

    def __init__(self, is_least: bool) -> None:
        super().__init__()
        self.is_least = is_least

    def __call__(self, *values: Any) -> Any:
        return builtins.min(values) if self.is_least else builtins.max(values)

    def construct(self, *values: Any) -> Any:
        found = values[0]
        for other in values[1:]:
            found = _chosen(other, found, other < found if self.is_least else other > found)
        return found


def _chosen(other: Any, found: Any, is_other: Any) -> Any:
    """One of two for a graph: numbers of two kinds, one of them a tensor's, make no branches."""
    if isinstance(other, ms.Tensor) or isinstance(found, ms.Tensor):
        return ops.where(is_other, other, found)
    is_mixed = isinstance(other, float) != isinstance(found, float)
    if is_mixed and not (functional.isconstant(other) and functional.isconstant(found)):
        other, found = other * 1.0, found * 1.0
    return other if is_other else found


# One statement each: a port takes those that it uses.
_GREATEST = _Chosen(False)
_LEAST = _Chosen(True)


def greatest(*values: Any) -> Any:
    """Python's `max` of tensors and numbers."""
    return _GREATEST(*values)


def least(*values: Any) -> Any:
    """Python's `min` of tensors and numbers."""
    return _LEAST(*values)


def bitwise_not(input: Any) -> Any:
    """Every bit turned; of booleans, the logical not. Others than tensors have `~` themselves."""
    if not isinstance(input, ms.Tensor):
        return ~input
    return ops.logical_not(input) if input.dtype == ms.bool_ else -1 - input


def round(input: Any, decimals: int = 0) -> Any:
    """To the nearest number with so many decimals, halves to even."""
    if decimals < 0:
        # 10.0**-1 is no tenth: torch divides by an integer here.
        return ops.round(input / 10.0**-decimals) * 10.0**-decimals
    return ops.round(input * 10.0**decimals) / 10.0**decimals if decimals else ops.round(input)


def fmin(input: Any, other: Any) -> Any:
    """The least; of a number and nan the number."""
    return ops.where(ops.logical_or(input <= other, ops.isnan(other)), input, other)


def atan2(input: Any, other: Any) -> Any:
    """The angle of a point; of none at the origin, where its gradient is 0."""
    input, other = floating(input), floating(other)
    is_origin = ops.logical_and(input == 0, other == 0)
    angle_there = ops.stop_gradient(ops.atan2(input, other))
    beside = ops.where(is_origin, ops.ones_like(other), other)
    return ops.where(is_origin, angle_there, ops.atan2(input, beside))


def compared(input: Any, other: Any, how: str) -> Any:
    """A comparison as numbers of the tensor's own dtype, as in-place comparisons give."""
    names = {"eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal"}
    short = how.rstrip("_")
    name = {**names, "lt": "less", "le": "less_equal"}.get(short, short)
    return getattr(ops, name)(input, other).astype(input.dtype)


def absolute(input: Any) -> Any:
    """The absolute value; of complex numbers a real one, whose gradient at zero is zero."""
    if not isinstance(input, ms.Tensor):
        return abs(input)
    if input.dtype not in (ms.complex64, ms.complex128):
        return ops.abs(input)
    real, imaginary = ops.real(input), ops.imag(input)
    is_zero = (real == 0) & (imaginary == 0)
    found = ops.hypot(ops.where(is_zero, ops.ones_like(real), real), imaginary)
    return ops.where(is_zero, ops.zeros_like(found), found)


def angle(input: Any) -> Any:
    """The angle of a complex number; of a real one 0 or pi."""
    if input.dtype in (ms.complex64, ms.complex128):
        return ops.angle(input)
    return ops.where(input < 0, ops.full_like(input, math.pi), ops.zeros_like(input))


def signbit(input: Any) -> Any:
    """Whether the sign is a minus, that of -0.0 as well, which `ops.signbit` takes for a plus."""
    is_below = input < 0
    if not input.is_floating_point():
        return is_below
    return ops.logical_or(is_below, ops.logical_and(input == 0, ops.reciprocal(input) < 0))


def copysign(input: Any, other: Any) -> Any:
    """The magnitude of one with the sign of another, -0.0 included, which `ops.copysign` is not."""
    if not isinstance(other, ms.Tensor):
        size = ops.abs(floating(input))
        return -size if math.copysign(1.0, other) < 0 else size
    input, other = of_one_float_dtype(input, other)
    size = ops.abs(input)
    return ops.where(signbit(other), -size, size)


def _shifted(shift: Any, input: Any, other: Any) -> Any:
    """By a shift of MindSpore's, which takes two of one dtype and no booleans."""
    if isinstance(input, ms.Tensor) and input.dtype == ms.bool_:
        input = input.astype(ms.int64)
    if isinstance(other, ms.Tensor) and other.dtype == ms.bool_:
        other = other.astype(ms.int64)
    if isinstance(input, ms.Tensor) and isinstance(other, ms.Tensor):
        kind = promote_types(input.dtype, other.dtype)
        input, other = input.astype(kind), other.astype(kind)
    return shift(input, other)


def bitwise_left_shift(input: Any, other: Any) -> Any:
    """Every bit moved up; booleans as int64."""
    return _shifted(ops.bitwise_left_shift, input, other)


def bitwise_right_shift(input: Any, other: Any) -> Any:
    """Every bit moved down; booleans as int64."""
    return _shifted(ops.bitwise_right_shift, input, other)


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """input + value * tensor1 * tensor2."""
    return ops.addcmul(*of_one_dtype((input, tensor1, tensor2)), value)


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """input + value * tensor1 / tensor2; of divisors up to 1e-6 `ops.addcdiv` makes NaN."""
    input, tensor1, tensor2 = of_one_dtype((input, tensor1, tensor2))
    return input + tensor1 * value / tensor2
