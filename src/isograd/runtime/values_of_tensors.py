"""Python's functions of what tensors hold: by operators in a graph, which runs Python's own apart.

With what runs apart, all that a graph returns loses its gradient (2.10), and nothing is said.
"""

from __future__ import annotations

import builtins
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253
from mindspore.ops import functional  # noqa: TID253

from isograd.runtime.making import promote_types

#: The most elements that a graph takes apart: each is a node of its own.
_MOST = 4096


class _Listed(nn.Cell):  # type: ignore[misc]
    def __call__(self, input: Any) -> Any:
        return input.tolist()

    def construct(self, input: Any) -> Any:
        if not isinstance(input, ms.Tensor) or functional.isconstant(input):
            return input.tolist()
        if input.size > _MOST:
            raise ValueError("tolist of a large tensor does not compile with its gradients.")
        return _parts(ops.stop_gradient(input))


def _parts(input: Any) -> Any:
    return [_parts(input[at]) for at in range(input.shape[0])] if input.ndim else input


class _InOrder(nn.Cell):  # type: ignore[misc]
    def __call__(self, values: Any) -> Any:
        return sorted(values)

    def construct(self, values: Any) -> Any:
        dtype = None
        for one in values:
            if isinstance(one, ms.Tensor):
                dtype = one.dtype if dtype is None else promote_types(dtype, one.dtype)
        if dtype is None:
            return sorted(values)
        for one in values:
            if isinstance(one, float):
                dtype = promote_types(dtype, ms.float32)
        row = ops.sort(ops.stack([ops.cast(one, dtype) for one in values]), 0)[0]
        return [row[at] for at in range(len(values))]


class _AnyOf(nn.Cell):  # type: ignore[misc]
    """Python's `any` or `all`."""

    def __init__(self, is_all: bool) -> None:
        super().__init__()
        self.is_all = is_all

    def __call__(self, values: Any) -> Any:
        return builtins.all(values) if self.is_all else builtins.any(values)

    def construct(self, values: Any) -> Any:
        found = self.is_all
        for one in values:
            true = one != 0
            if isinstance(one, ms.Tensor) or isinstance(found, ms.Tensor):
                found = ops.logical_and(found, true) if self.is_all else ops.logical_or(found, true)
            else:
                found = (found and true) if self.is_all else (found or true)
        return found


class _Rounded(nn.Cell):  # type: ignore[misc]
    def __call__(self, value: Any, digits: Any = None) -> Any:
        return builtins.round(value, digits)

    def construct(self, value: Any, digits: Any = None) -> Any:
        if functional.isconstant(value):
            return builtins.round(value, digits)
        if not isinstance(value, ms.Tensor):  # a number that is not known yet
            value = ops.cast(value, ms.float32)
        if digits is None:
            return ops.round(value).astype(ms.int64)
        return ops.round(value * 10.0**digits) / 10.0**digits


class _Absolute(nn.Cell):  # type: ignore[misc]
    def __call__(self, value: Any) -> Any:
        return builtins.abs(value)

    def construct(self, value: Any) -> Any:
        if isinstance(value, ms.Tensor):
            return ops.abs(value)
        return value if value >= 0 else -value


# One statement each: a port takes those that it uses.
_LISTED = _Listed()
_IN_ORDER = _InOrder()
_ANY = _AnyOf(False)
_ALL = _AnyOf(True)
_ROUNDED = _Rounded()
_ABSOLUTE = _Absolute()


def listed(input: Any) -> Any:
    """`tolist`; in a graph each element is a tensor, which no gradient passes."""
    return _LISTED(input)


def in_order(values: Any) -> Any:
    """Python's `sorted` of tensors and numbers."""
    return _IN_ORDER(values)


def any_of(values: Any) -> Any:
    """Python's `any` of tensors and numbers."""
    return _ANY(values)


def all_of(values: Any) -> Any:
    """Python's `all` of tensors and numbers."""
    return _ALL(values)


def rounded_number(value: Any, digits: Any = None) -> Any:
    """Python's `round` of a number that a tensor holds."""
    return _ROUNDED(value, digits)


def absolute_number(value: Any) -> Any:
    """Python's `abs` of a number that a tensor holds."""
    return _ABSOLUTE(value)
