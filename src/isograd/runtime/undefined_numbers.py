"""NaN, where MindSpore's operators (2.10, CPU) take another number for it."""

from __future__ import annotations

import builtins
import math
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import axes_of
from isograd.runtime.exact import choose


def with_nans(function: Any, input: Any, *given: Any, **named: Any) -> Any:
    """The elements that a function computes; NaN where an operand is, as in torch.

    Args:
        function: computes each element by those of its operands.
        input: the first of them (*).
    """
    result = function(input, *given, **named)
    for operand in (input, *given, *named.values()):
        if isinstance(operand, ms.Tensor) and ops.is_floating_point(operand):
            result = choose(ops.isnan(ops.stop_gradient(operand)), math.nan, result)
    return result


def extreme_with_nans(
    function: Any, input: Any, dim: Any = None, keepdim: bool = False, **named: Any
) -> Any:
    """The greatest or the least; NaN of what holds NaN, as in torch.

    Args:
        function: finds it.
        input: tensor (*).
        dim: one axis or several; None for all.  A function that also gives positions finds NaN
            along an axis; another tensor is compared by element.
    """
    other = named.get("other", dim)
    if isinstance(other, ms.Tensor):
        return with_nans(function, input, other)
    found = function(input) if dim is None else function(input, dim, keepdim)
    if isinstance(found, builtins.tuple) or not ops.is_floating_point(input):
        return found
    are_nan = ops.isnan(ops.stop_gradient(input))
    held = are_nan.astype(ms.int32).sum(axes_of(dim, input), keepdims=keepdim and dim is not None)
    return choose(held > 0, math.nan, found)


def position_with_nans(
    function: Any, input: Any, dim: int | None = None, keepdim: bool = False
) -> Any:
    """The position of the greatest or the least: of the first NaN where there is one, as in torch.

    Args:
        function: finds it.
        input: tensor (*).
    """
    found = function(input, dim, keepdim).astype(ms.int64)
    if not ops.is_floating_point(input):
        return found
    are_nan = ops.isnan(input).astype(ms.int32)
    first = ops.argmax(are_nan, dim, keepdim).astype(ms.int64)
    axes = axes_of(dim, input)
    held = are_nan.sum(axes, keepdims=keepdim and dim is not None)
    return ops.where(held > 0, first, found)
