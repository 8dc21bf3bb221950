"""Torch's functions that make tensors, for calls whose arguments are not written out.

`torch.zeros(n, **options)`, `make = torch.zeros`: a place and a layout mean nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253


def _of_size(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(*sizes: Any, size: Any = None, dtype: Any = None, **_: Any) -> Any:
        given = size if size is not None else sizes
        if len(given) == 1 and isinstance(given[0], (list, tuple)):
            given = given[0]
        return make(tuple(given), ms.float32 if dtype is None else dtype)

    return made


def _like(make: Callable[..., Any]) -> Callable[..., Any]:
    def made(input: Any, dtype: Any = None, **_: Any) -> Any:
        return make(tuple(input.shape), input.dtype if dtype is None else dtype)

    return made


#: What complex numbers consist of.
_PARTS = {ms.complex64: ms.float32, ms.complex128: ms.float64}


def _uniform(size: tuple[int, ...], dtype: Any) -> Any:
    if dtype in _PARTS:
        part = _PARTS[dtype]
        return ops.Complex()(ops.rand(*size, dtype=part), ops.rand(*size, dtype=part))
    return ops.rand(*size, dtype=dtype)


def _normal(size: tuple[int, ...], dtype: Any) -> Any:
    if dtype in _PARTS:
        part, share = _PARTS[dtype], 0.5**0.5  # the variance of both parts together is 1
        real, imaginary = ops.randn(*size, dtype=part), ops.randn(*size, dtype=part)
        return ops.Complex()(real * share, imaginary * share)
    return ops.randn(*size, dtype=dtype)


zeros, zeros_like = _of_size(ops.zeros), _like(ops.zeros)
ones, ones_like = _of_size(ops.ones), _like(ops.ones)
empty, empty_like = zeros, zeros_like
rand, rand_like = _of_size(_uniform), _like(_uniform)
randn, randn_like = _of_size(_normal), _like(_normal)


def eye(n: int, m: int | None = None, dtype: Any = None, **_: Any) -> Any:
    """Ones on the diagonal."""
    return ops.eye(n, m, ms.float32 if dtype is None else dtype)
