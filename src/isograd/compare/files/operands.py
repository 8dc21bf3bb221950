"""Two tensors as they lie in their files, decoded a segment at a time."""

from __future__ import annotations

import mmap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.dtypes import FOREIGN, decoded
from isograd.tensors import Array, TensorValue, bfloat16_to_bits

#: Bits of the fraction of each float with a sign; the coarser of two dtypes has fewer.
_FRACTIONS = {
    "float8_e5m2": 2, "float8_e5m2fnuz": 2, "float8_e4m3fn": 3, "float8_e4m3fnuz": 3,
    "bfloat16": 7, "float16": 10, "float32": 23, "float64": 52,
}  # fmt: skip
_LARGE_BYTES = 32 << 20
MASK32, MASK64 = (1 << 31) - 1, (1 << 63) - 1


@dataclass(frozen=True)
class Operand:
    """One tensor: the bits of its elements in C order, and what they mean."""

    bits: Array
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many elements there are."""
        return int(self.bits.size)

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers or booleans."""
        return self.dtype not in FOREIGN and self.bits.dtype.kind in "biu"

    @property
    def needs_care(self) -> bool:
        """Whether float64 does not hold every element: complex numbers, and floats beyond it."""
        return self.bits.dtype.kind == "c" or self.bits.dtype.itemsize > 8

    @property
    def fits_float32(self) -> bool:
        """Whether float32 holds every element."""
        return self.dtype in FOREIGN or self.bits.dtype.char in "fe"

    def piece(self, start: int, stop: int) -> Array:
        """The bits of a segment; copied where they are not aligned in their file.

        Returns (stop - start,) in the dtype of the stored bits.
        """
        bits = self.bits[start:stop]
        return bits if bits.flags.aligned else bits.copy()

    def values(self, start: int, stop: int) -> Array:
        """The values of a segment; float32 for the dtypes that numpy lacks.

        Returns (stop - start,) in the tensor's dtype; float32 for the dtypes that numpy lacks.
        """
        return decoded(self.piece(start, stop), self.dtype).values


def operand(raw: RawTensor) -> Operand:
    """A tensor as a source yields it."""
    return Operand(_flat(raw.bits), raw.dtype, raw.bits.shape)


def operand_of_value(value: TensorValue) -> Operand:
    """A tensor in memory.

    value: any shape and dtype.
    """
    if value.dtype == "bfloat16":
        return Operand(_flat(bfloat16_to_bits(value.values)), value.dtype, value.shape)
    return Operand(_flat(value.values), str(value.values.dtype), value.shape)


def _flat(array: Array) -> Array:
    """One dimension in the machine's byte order; a view where that is possible."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array.reshape(-1)


def coarser(first: str, second: str) -> str | None:
    """The dtype of two whose numbers lie further apart; None where no ulps can be counted."""
    if first not in _FRACTIONS or second not in _FRACTIONS:
        return first if first == second == "float8_e8m0fnu" else None
    if first != second and min(_FRACTIONS[first], _FRACTIONS[second]) < _FRACTIONS["bfloat16"]:
        return None  # nothing here rounds to eight bits
    return min(first, second, key=lambda dtype: _FRACTIONS[dtype])


def signed_bits(side: Operand, dtype: str, start: int, stop: int) -> tuple[Array, int]:
    """The bits of a segment in a dtype, as integers with the element's sign, and their mask.

    returns: (stop - start,) integers: int64 for float64, int32 for every other dtype.
    """
    if dtype == side.dtype:
        bits = side.piece(start, stop)
    else:
        with np.errstate(all="ignore"):
            bits = _rounded(side.values(start, stop), dtype)
    if dtype == "float64":
        return np.ascontiguousarray(bits).view(np.int64), MASK64
    if dtype == "float32":
        return np.ascontiguousarray(bits).view(np.int32), MASK32
    if dtype == "float8_e8m0fnu":
        return bits.astype(np.int32), MASK32
    if bits.dtype.itemsize == 2:
        wide = bits.view(np.uint16).astype(np.uint32)
        return _spread(wide, 0x8000, 16), MASK32
    return _spread(bits.astype(np.uint32), 0x80, 24), MASK32


def _spread(bits: NDArray[np.uint32], sign: int, shift: int) -> NDArray[np.int32]:
    magnitude = bits & np.uint32(sign - 1)
    return (((bits & np.uint32(sign)) << np.uint32(shift)) | magnitude).view(np.int32)


def _rounded(values: Array, dtype: str) -> Array:
    if dtype != "bfloat16":
        return values.astype(dtype)
    bits = values.astype(np.float32).view(np.uint32)
    half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return ((bits + half) >> np.uint32(16)).astype(np.uint16)


def _map_of(array: Array) -> mmap.mmap | None:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    return mapped if isinstance(mapped, mmap.mmap) else None


def is_mapped(array: Array) -> bool:
    """Whether an array is a view of a mapped file.

    array: any shape and dtype.
    """
    return _map_of(array) is not None


def drop_pages(array: Array) -> None:
    """Let the system take back the pages of a segment of a large map; they stay cached.

    Smaller maps are let go as a whole soon enough.

    array: any shape and dtype, contiguous.
    """
    mapped = _map_of(array)
    if mapped is None or len(mapped) < _LARGE_BYTES or not hasattr(mmap, "MADV_DONTNEED"):
        return
    first = array.ctypes.data - np.frombuffer(mapped, np.uint8, 1).ctypes.data
    start = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (first + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - start
    if length > 0:
        mapped.madvise(mmap.MADV_DONTNEED, start, length)
