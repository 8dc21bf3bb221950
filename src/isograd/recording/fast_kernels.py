"""One-pass statistics kernels, compiled by numba (the optional extra `fast`).

The minimum and the maximum run over the floats' bits, mapped to integers of the same order.  That
map is total, so the loop vectorises, and a NaN or an infinity shows as a key outside the finite
range: looking for them costs nothing.  Sums run in float64.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Kernel = Callable[[Any], tuple[float, float, int, int]]

#: Reassociation lets sums vectorise; NaN and infinity keep their meaning.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}


def _measure_float32(values: Any) -> Any:
    keys = values.view(np.int32)
    total = np.float64(0.0)
    squares = np.float64(0.0)
    low = np.int32(2147483647)
    high = np.int32(-2147483648)
    for index in range(values.size):
        value = np.float64(values[index])
        total += value
        squares += value * value
        key = keys[index]
        key = np.int32(key ^ ((key >> np.int32(31)) & np.int32(0x7FFFFFFF)))
        low = min(low, key)
        high = max(high, key)
    return total, squares, low, high


def _measure_float64(values: Any) -> Any:
    keys = values.view(np.int64)
    total = 0.0
    squares = 0.0
    low = np.int64(9223372036854775807)
    high = np.int64(-9223372036854775808)
    for index in range(values.size):
        value = values[index]
        total += value
        squares += value * value
        key = keys[index]
        key = np.int64(key ^ ((key >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF)))
        low = min(low, key)
        high = max(high, key)
    return total, squares, low, high


def compile_kernels() -> dict[str, Kernel]:
    """Compile the kernels, or load them from numba's cache, by the character of numpy's dtype."""
    numba = importlib.import_module("numba")
    return {
        "f": _compile(numba, _measure_float32, numba.types.float32),
        "d": _compile(numba, _measure_float64, numba.types.float64),
    }


def _compile(numba: Any, function: Callable[[Any], Any], element: Any) -> Kernel:
    signature = (numba.types.Array(element, 1, "C", readonly=True),)
    options = {"nogil": True, "fastmath": FAST_MATH, "error_model": "numpy"}
    try:
        kernel: Kernel = numba.njit(signature, cache=True, **options)(function)
    except RuntimeError:  # no folder in which numba may keep its cache
        kernel = numba.njit(signature, **options)(function)
    return kernel
