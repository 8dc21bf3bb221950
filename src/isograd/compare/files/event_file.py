"""Scalars of TensorBoard's and MindSpore's summary files, read without either.

Both are TFRecords (length, its masked CRC-32C, data, its masked CRC-32C) of protobuf messages
`Event`: 2 is the step, 5 the summary; a summary's 1 is a value with 1 as its tag and its scalar in
2 (TensorBoard), 3 (MindSpore) or, as a tensor, in 8.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from isograd.compare.files.event_fields import parts
from isograd.errors import CheckpointError

_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
#: Larger records are pictures or graphs.
_LARGEST_SCALAR = 1 << 16
_ADVICE = "Copy the file again, or compare another one."


def _table() -> tuple[int, ...]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


_CRC_TABLE = _table()


def masked_crc(data: bytes) -> int:
    """The CRC-32C of TFRecord, masked so that checksums of checksums differ."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def is_event_file(path: Path) -> bool:
    """Whether the first record's length has its checksum."""
    try:
        with path.open("rb") as file:
            head = file.read(12)
    except OSError:
        return False
    if len(head) < 12:
        return False
    return masked_crc(head[:8]) == int.from_bytes(head[8:], "little")


def read_scalars(path: Path) -> dict[str, list[tuple[int, float]]]:
    """All scalars by tag, as (step, value); a last record that is cut off is left out.

    Raises CheckpointError for a damaged record.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    try:
        for data in records(path):
            for tag, step, value in _scalars(data):
                found.setdefault(tag, []).append((step, value))
    except (OSError, ValueError, IndexError, struct.error) as error:
        raise CheckpointError(f"{path}: an event is damaged ({error})", _ADVICE) from error
    return found


def records(path: Path) -> Iterator[bytes]:
    """The content of each record, checked; CheckpointError for a damaged one."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while True:
            start = file.tell()
            head = file.read(12)
            if len(head) < 12:
                return
            length, crc = struct.unpack("<QI", head)
            if masked_crc(head[:8]) != crc:
                raise CheckpointError(f"{path}: the record at {start:,} is damaged", _ADVICE)
            if file.tell() + length + 4 > size:
                return
            if length > _LARGEST_SCALAR:
                file.seek(length + 4, 1)
                continue
            data = file.read(length)
            if masked_crc(data) != struct.unpack("<I", file.read(4))[0]:
                raise CheckpointError(f"{path}: the record at {start:,} is damaged", _ADVICE)
            yield data


def _scalars(event: bytes) -> Iterator[tuple[str, int, float]]:
    step, summaries = 0, []
    for number, value in fields(event):
        if number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in fields(summary):
            if number == 1 and isinstance(value, bytes):
                tag, scalar = _value(value)
                if scalar is not None:
                    yield tag, step, scalar


def _value(message: bytes) -> tuple[str, float | None]:
    tag, scalar = "", None
    for number, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", errors="replace")
        elif number in (2, 3) and isinstance(value, float):
            scalar = value
        elif number == 8 and isinstance(value, bytes):
            scalar = scalar_of_tensor(value)
    return tag, scalar


def scalar_of_tensor(message: bytes) -> float | None:
    """The one number of a TensorProto of float32 without dimensions."""
    for number, value in fields(message):
        if number == 4 and isinstance(value, bytes) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
        if number == 5 and isinstance(value, float):
            return value
        if number == 5 and isinstance(value, bytes) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
    return None


def fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Number and value of every field; fixed numbers are read as floats."""
    for part in parts(message, len(message)):
        content = message[part.start : part.start + part.length]
        yield part.number, content if part.value is None else part.value
