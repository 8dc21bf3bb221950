"""Dtypes of checkpoints: their names, the array that holds their bits, and their values.

numpy has neither bfloat16 nor the 8-bit floats, so their bits are held as unsigned integers and
their values as float32, in which each of them is exact.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.tensors import Array, TensorValue, bfloat16_from_bits

#: 8-bit floats by name: bits of the exponent and of the fraction, the exponent's bias, whether
#: there are infinities, and whether the one zero with a sign is the one NaN ("fnuz").
#: Source: the Open Compute Project's OFP8 specification, and arXiv:2206.02915 for fnuz.
_FLOAT8 = {
    "float8_e4m3fn": (4, 3, 7, False, False),
    "float8_e5m2": (5, 2, 15, True, False),
    "float8_e4m3fnuz": (4, 3, 8, False, True),
    "float8_e5m2fnuz": (5, 2, 16, False, True),
}
#: Names of the dtypes that numpy lacks, with what holds their bits.
FOREIGN: dict[str, type[np.unsignedinteger[Any]]] = {
    "bfloat16": np.uint16,
    **dict.fromkeys((*_FLOAT8, "float8_e8m0fnu"), np.uint8),
}
#: numpy's own dtypes that a checkpoint may hold.
NATIVE = (
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
KNOWN = frozenset((*NATIVE, *FOREIGN))


def holder(dtype: str) -> np.dtype[Any]:
    """The numpy dtype that holds the bits of a dtype of ours."""
    return np.dtype(FOREIGN.get(dtype, dtype))


def item_size_bytes(dtype: str) -> int:
    """Bytes of one element."""
    return holder(dtype).itemsize


def decoded(bits: Array, dtype: str) -> TensorValue:
    """The values of bits as `RawTensor` holds them; no copy for numpy's own dtypes.

    bits: any shape; uint16 for bfloat16, uint8 for the 8-bit floats, else of the dtype itself.
    returns: the same shape; float32 for the dtypes that numpy lacks, else the dtype of the bits.
    """
    if dtype == "bfloat16":
        return TensorValue(bfloat16_from_bits(bits.astype(np.uint16, copy=False)), dtype)
    if dtype in FOREIGN:
        return TensorValue(_table(dtype)[bits.astype(np.uint8, copy=False)], dtype)
    return TensorValue(bits, dtype)


@functools.cache
def _table(dtype: str) -> NDArray[np.float32]:
    """The value of each of the 256 patterns."""
    if dtype == "float8_e8m0fnu":
        exact = [float("nan") if code == 255 else 2.0 ** (code - 127) for code in range(256)]
    else:
        exact = [_float8(code, dtype) for code in range(256)]
    return np.array(exact, np.float32)


def _float8(code: int, dtype: str) -> float:
    exponent_bits, fraction_bits, bias, has_infinity, is_fnuz = _FLOAT8[dtype]
    sign = -1.0 if code & 128 else 1.0
    exponent = (code & 127) >> fraction_bits
    fraction = code & ((1 << fraction_bits) - 1)
    if is_fnuz:
        if code == 128:
            return float("nan")
    elif exponent == (1 << exponent_bits) - 1:
        if has_infinity:
            return float("nan") if fraction else sign * float("inf")
        if fraction == (1 << fraction_bits) - 1:
            return float("nan")
    if exponent == 0:
        return sign * float(fraction) * 2.0 ** (1 - bias - fraction_bits)
    return sign * (1 + fraction / (1 << fraction_bits)) * 2.0 ** (exponent - bias)
