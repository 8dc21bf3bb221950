"""The wire format of protobuf, as far as files of tensors need it."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT_LIMIT = 10


class MalformedError(ValueError):
    """What a message lacks."""


def fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, and either the number itself or where its bytes begin; and their end."""
    position = start
    while position < end:
        key, position = varint(data, position, end)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, position = varint(data, position, end)
            yield number, kind, value, position
            continue
        if kind == 2:
            size, position = varint(data, position, end)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise MalformedError(f"byte {position:,} has an unknown wire type")
        if size > end - position:
            raise MalformedError(f"byte {position:,} announces {size:,} bytes beyond the end")
        yield number, kind, position, position + size
        position += size


def varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = 0
    for index in range(_VARINT_LIMIT):
        if position + index >= end:
            break
        byte = data[position + index]
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return value, position + index + 1
    raise MalformedError(f"byte {position:,} begins no complete number")


def naturals(data: memoryview, kind: int, first: int, last: int, most: int) -> list[int]:
    """The numbers of a repeated field, packed or alone; MalformedError for more than `most`."""
    if kind == 0:
        return [first]
    found: list[int] = []
    while first < last:
        value, first = varint(data, first, last)
        found.append(value)
        if len(found) > most:
            raise MalformedError(f"byte {first:,} lists too many numbers")
    return found
