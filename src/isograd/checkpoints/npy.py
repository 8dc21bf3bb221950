"""The layout of numpy's .npy files: a header that is a literal, then the elements."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass

import numpy as np

from isograd.checkpoints.base import size_in_bytes
from isograd.checkpoints.dtypes import NATIVE
from isograd.tensors import Array

MAX_HEADER_BYTES = 64 * 1024
#: Enough for the magic number, the sizes and any header that numpy writes itself.
USUAL_PREFIX_BYTES = 256
#: A header as numpy writes it: the type, the order and the shape.
_USUAL = re.compile(
    rb"\{'descr': '([<>|=]?[a-zA-Z]\d{0,3})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n?\Z"
)


@dataclass(frozen=True)
class NpyHeader:
    """What a header says; start: where the elements begin."""

    dtype: str
    shape: tuple[int, ...]
    is_fortran: bool
    is_swapped: bool
    start: int
    size_bytes: int


def parse_header(data: bytes | memoryview) -> NpyHeader:
    """Parse the beginning of a file; ValueError where it is no header of plain numbers.

    An element of two opaque bytes is a bfloat16: that is how numpy writes ml_dtypes' type.
    """
    prefix = bytes(data[: 12 + MAX_HEADER_BYTES])
    if prefix[:6] != b"\x93NUMPY" or len(prefix) < 12:
        raise ValueError("it is no .npy file")
    width = 2 if prefix[6] == 1 else 4
    start = 8 + width + int.from_bytes(prefix[8 : 8 + width], "little")
    if start > len(prefix) or prefix[6] not in (1, 2, 3):
        raise ValueError("its header is not complete")
    return _described(prefix[8 + width : start], start)


@functools.lru_cache(maxsize=4096)
def _described(literal: bytes, start: int) -> NpyHeader:
    """The header of a literal; kept, because the files of a dump have few different ones."""
    usual = _USUAL.match(literal)
    if usual is not None:
        descriptor: object = usual[1].decode("ascii")
        is_fortran: object = usual[2] == b"True"
        shape: object = tuple(int(extent) for extent in usual[3].split(b",") if extent.strip())
    else:
        descriptor, is_fortran, shape = _evaluated(literal)
    if not isinstance(descriptor, str) or not isinstance(shape, tuple) or len(descriptor) > 8:
        raise ValueError("its elements are no plain numbers")
    try:
        found = np.dtype(descriptor)
    except (TypeError, SyntaxError) as error:
        raise ValueError(f"its dtype {descriptor!r} is unknown") from error
    name = "bfloat16" if found.kind == "V" and found.itemsize == 2 else found.name
    if name != "bfloat16" and name not in NATIVE:
        raise ValueError(f"its elements are of type {descriptor!r}, no plain numbers")
    size = size_in_bytes(name, shape)
    is_swapped = found.itemsize > 1 and found.byteorder == ">"
    return NpyHeader(name, shape, bool(is_fortran), is_swapped, start, size)


def _evaluated(literal: bytes) -> tuple[object, object, object]:
    """The fields of a header that is written otherwise than numpy writes it."""
    if b"\\" in literal:  # an escape that is none would print a warning
        raise ValueError("its header is no literal of numpy's")
    try:
        fields = ast.literal_eval(literal.decode("utf-8").strip())
        return fields["descr"], fields["fortran_order"], fields["shape"]
    except (SyntaxError, MemoryError, RecursionError, KeyError, TypeError, IndexError) as error:
        raise ValueError("its header is no literal of numpy's") from error


def elements(data: memoryview, header: NpyHeader, *, aligned: bool = True) -> Array:
    """The elements in C order; a view where the file has them so.

    returns: the shape and the dtype of the header.
    Raises ValueError where the bytes are fewer or more than the header announces.
    """
    from isograd.checkpoints.base import view

    if header.start + header.size_bytes != len(data):
        raise ValueError(
            f"it holds {max(0, len(data) - header.start):,} bytes of elements instead of "
            f"{header.size_bytes:,}"
        )
    if header.is_fortran:
        turned = view(data, header.start, header.dtype, header.shape[::-1])
        values: Array = np.ascontiguousarray(turned.T).reshape(header.shape)
    else:
        values = view(data, header.start, header.dtype, header.shape, aligned=aligned)
    return values.byteswap() if header.is_swapped else values
