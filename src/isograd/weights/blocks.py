"""Arrays cut into blocks in C order, so that no tensor is ever copied whole."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isograd.tensors import Array

#: Bytes of one block: large enough for the disk, small enough for the processor's cache.
BLOCK_BYTES = 1 << 22


def contiguous_blocks(array: Array) -> Iterator[Array]:
    """The elements in C order as one-dimensional arrays; copies only what is not contiguous.

    array: any shape and dtype.
    returns: 1-d views or copies of the same dtype.
    """
    if array.size == 0:
        return
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        step = max(1, BLOCK_BYTES // array.itemsize)
        for start in range(0, flat.size, step):
            yield flat[start : start + step]
        return
    row_bytes = array.nbytes // len(array)
    if row_bytes > BLOCK_BYTES:
        for row in array:
            yield from contiguous_blocks(row)
        return
    rows = max(1, BLOCK_BYTES // max(1, row_bytes))
    for start in range(0, len(array), rows):
        yield np.ascontiguousarray(array[start : start + rows]).reshape(-1)


def bytes_of(bits: Array) -> memoryview:
    """The bytes of an array in C order, without a copy where it is so already.

    bits: any shape and dtype.
    """
    flat = np.ascontiguousarray(bits).reshape(-1)
    return flat.view(np.uint8).data if flat.size else memoryview(b"")


def are_same_bytes(first: memoryview, second: memoryview) -> bool:
    """Whether two runs of bytes are equal."""
    if len(first) != len(second):
        return False
    if not len(first):
        return True
    here, there = np.frombuffer(first, np.uint8), np.frombuffer(second, np.uint8)
    words = len(here) // 8 * 8
    return bool(
        np.array_equal(here[:words].view(np.uint64), there[:words].view(np.uint64))
        and np.array_equal(here[words:], there[words:])
    )
