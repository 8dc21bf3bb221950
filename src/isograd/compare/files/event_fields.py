"""The fields of a protobuf message of which only the first bytes may be there."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One field: its number and value, or where its content starts and how long it is.

    value: of a number; fixed numbers are read as floats.  length: 0 of a number.
    """

    number: int
    value: int | float | None
    start: int = 0
    length: int = 0


def parts(data: bytes, end: int, at: int = 0) -> Iterator[Part]:
    """The fields of data[at:end]; those that begin behind the bytes that are there are left out.

    Raises ValueError, IndexError or struct.error for what is no message.
    """
    while at < min(end, len(data)):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
            yield Part(number, value)
        elif kind in (1, 5):
            (real,) = struct.unpack_from("<d" if kind == 1 else "<f", data, at)
            yield Part(number, float(real))
            at += 8 if kind == 1 else 4
        elif kind == 2:
            length, at = varint(data, at)
            if at + length > end:
                raise ValueError("a field is longer than its message")
            yield Part(number, None, at, length)
            at += length
        else:
            raise ValueError(f"wire type {kind}")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
