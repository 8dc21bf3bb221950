"""TensorFlow's Example and SequenceExample messages, read and written without TensorFlow.

Example: 1 = Features{1 = map<string, Feature>}; SequenceExample: 1 = the context's Features,
2 = FeatureLists{1 = map<string, FeatureList{1 = Feature}>}.  Feature: 1 = BytesList, 2 = FloatList
(packed float32), 3 = Int64List (packed varints).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from isograd.checkpoints.protobuf import MalformedError, fields
from isograd.data.limits import MAX_FIELDS
from isograd.data.sources.base import Value
from isograd.tensors import Array

_LENGTHS = tuple(range(128))


def parse_example(data: memoryview) -> dict[str, Value]:
    """The features by name; MalformedError for what is no Example.

    One number is an array without axes, several are one of one axis; several byte strings become
    the fields NAME/0, NAME/1 and so on.
    """
    found: dict[str, Value] = {}
    for number, kind, first, last in fields(data, 0, len(data)):
        if kind != 2 or number not in (1, 2):
            raise MalformedError(f"an Example has no field {number} of wire type {kind}")
        for name, start, end in _entries(data, first, last):
            if number == 1:
                _add(found, name, _feature(data, start, end))
            else:
                _add_list(found, name, data, start, end)
        if len(found) > MAX_FIELDS:
            raise MalformedError(f"it has more than {MAX_FIELDS:,} features")
    return found


def _entries(data: memoryview, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """The entries of a map: name, and where the message under it lies."""
    for number, kind, first, last in fields(data, start, end):
        if number != 1 or kind != 2:
            raise MalformedError("a map of features holds something else")
        name, value = "", (first, first)
        for part, part_kind, begin, stop in fields(data, first, last):
            if part_kind != 2:
                raise MalformedError("an entry of a map is malformed")
            if part == 1:
                name = str(data[begin:stop], "utf-8", errors="replace")
            else:
                value = (begin, stop)
        yield name, *value


def _feature(data: memoryview, start: int, end: int) -> list[bytes] | Array:
    for number, kind, first, last in fields(data, start, end):
        if kind != 2:
            break
        if number == 1:
            return [bytes(data[a:b]) for _, _, a, b in fields(data, first, last)]
        if number == 2:
            return _floats(data, first, last)
        if number == 3:
            return _integers(data, first, last)
    return np.zeros(0, np.float32)


def _floats(data: memoryview, start: int, end: int) -> Array:
    parts = [np.frombuffer(data[a:b], "<f4") for _, _, a, b in fields(data, start, end)]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def _integers(data: memoryview, start: int, end: int) -> Array:
    found: list[Array] = []
    for _, kind, first, last in fields(data, start, end):
        if kind == 0:
            found.append(np.asarray([first], np.uint64).view(np.int64))
        elif last - first == 1 and data[first] < 128:
            found.append(np.asarray([data[first]], np.int64))
        else:
            found.append(unpack_varints(data[first:last]))
    if len(found) == 1:
        return found[0]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def unpack_varints(data: memoryview) -> NDArray[np.int64]:
    """Packed varints as (n,) int64, all at once.

    Raises MalformedError where the last number is cut off or one is too long.
    """
    octets = np.frombuffer(data, np.uint8)
    if octets.size == 0:
        return np.zeros(0, np.int64)
    is_last = octets < 128
    if not is_last[-1]:
        raise MalformedError("the last number of a list is cut off")
    if is_last.all():
        return octets.astype(np.int64)
    ends = np.flatnonzero(is_last)
    starts = np.concatenate(([0], ends[:-1] + 1))
    if int((ends - starts).max()) > 9:
        raise MalformedError("a number of a list is too long")
    place = np.arange(octets.size) - np.repeat(starts, ends - starts + 1)
    shifted = (octets & 127).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(shifted, starts).view(np.int64)


def _add(found: dict[str, Value], name: str, value: list[bytes] | Array) -> None:
    if not isinstance(value, list):
        found[name] = value.reshape(()) if value.size == 1 else value
    elif len(value) == 1:
        found[name] = value[0]
    else:
        for number, part in enumerate(value):
            found[f"{name}/{number}"] = part


def _add_list(found: dict[str, Value], name: str, data: memoryview, start: int, end: int) -> None:
    """A FeatureList: stacked where every step has as many numbers, else step by step."""
    steps = [_feature(data, a, b) for _, _, a, b in fields(data, start, end)]
    arrays = [step for step in steps if not isinstance(step, list)]
    if steps and len(arrays) == len(steps) and len({a.shape for a in arrays}) == 1:
        found[name] = np.stack(arrays)
        return
    for number, step in enumerate(steps):
        _add(found, f"{name}/{number}", step)


def encode_example(features: dict[str, list[bytes] | Array]) -> bytes:
    """An Example of features: byte strings, float32 or integer arrays of one axis.

    features: byte strings, or (n,) float32 or integers, by name.
    """
    body = b"".join(_entry(name, value) for name, value in features.items())
    return _tagged(1, body)


def _entry(name: str, value: list[bytes] | Array) -> bytes:
    if isinstance(value, list):
        feature = _tagged(1, b"".join(_tagged(1, part) for part in value))
    elif value.dtype.kind == "f":
        feature = _tagged(2, _tagged(1, value.astype("<f4").tobytes()))
    else:
        feature = _tagged(3, _tagged(1, pack_varints(value)))
    return _tagged(1, _tagged(1, name.encode("utf-8", errors="replace")) + _tagged(2, feature))


def pack_varints(values: Array) -> bytes:
    """Integers of one axis as packed varints.

    values: (n,) integers.
    """
    unsigned = values.astype(np.int64).view(np.uint64)
    if unsigned.size and int(unsigned.max()) < 128:
        return unsigned.astype(np.uint8).tobytes()
    return b"".join(_varint(int(value)) for value in unsigned)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _tagged(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def is_example(data: memoryview) -> bool:
    """Whether bytes parse as an Example with at least one named feature."""
    try:
        return bool(parse_example(data))
    except (MalformedError, ValueError, struct.error):
        return False
