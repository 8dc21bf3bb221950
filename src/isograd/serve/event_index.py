"""What an event file holds, by tag and step, found without reading what is large.

Records are walked by their lengths: small ones are read, of large ones (images, graphs) the first
bytes alone, which hold step and tag.  Of a file with more small records than are read here, places
at equal distances are read instead: a record's start is known by the checksum of its length.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from isograd.compare.files.event_fields import Part, parts, varint
from isograd.compare.files.event_file import masked_crc
from isograd.errors import CheckpointError
from isograd.serve.model import Item

#: Records up to this size are read whole; of others this much.
_SMALL_BYTES = 1 << 16
#: Bytes of small records that are read of one file, and of how many places of a larger one.
MOST_BYTES = 192 << 20
_PLACES, _PLACE_BYTES = 2_000, 1 << 14
#: A record that is longer is taken for damage: no message of protobuf is.
_LONGEST_BYTES = 1 << 31
_BLOCK = 1 << 20
#: TensorFlow's number of the dtype of texts.
_TEXT = 7
_WORD = struct.Struct("<Q")


class EventKind(str, Enum):
    """What a value of a summary is."""

    SCALAR = "scalar"
    HISTOGRAM = "histogram"
    IMAGE = "image"


@dataclass(frozen=True)
class Place:
    """Where the value of a step lies in the file: its first byte and its length."""

    step: int
    start: int
    length: int


@dataclass
class EventIndex:
    """scalars: (step, value) by tag in the file's order.  histograms, images: places by tag.

    read_bytes: how much was read.  is_complete: whether every record was seen.
    """

    scalars: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    histograms: dict[str, list[Place]] = field(default_factory=dict)
    images: dict[str, list[Place]] = field(default_factory=dict)
    read_bytes: int = 0
    is_complete: bool = True


@lru_cache(maxsize=8)
def index_of(item: Item) -> EventIndex:
    """The index of an event file as it stands; CheckpointError where it cannot be read."""
    return read_index(item.path)


def read_index(path: Path, most_bytes: int = MOST_BYTES) -> EventIndex:
    """The index of an event file of any size.

    A last record that is cut off is left out.  Raises CheckpointError for a damaged length.
    """
    index = EventIndex()
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            reached = _walk(file, 0, size, index, most_bytes)
            if reached < size:
                index.is_complete = False
                _sample(file, reached, size, index, most_bytes)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error})", "Check its rights.") from error
    except _DamagedError as error:
        raise CheckpointError(
            f"{path}: the record at {error.at:,} is damaged", "Copy the file again."
        ) from error
    return index


class _DamagedError(Exception):
    def __init__(self, at: int) -> None:
        self.at = at


def _walk(file: BinaryIO, at: int, end: int, index: EventIndex, most_bytes: int) -> int:
    """Add the records from a record's start on; where it stopped, `end` if all are read."""
    block, first = b"", at
    limit = index.read_bytes + most_bytes
    while at + 12 <= end:
        if index.read_bytes > limit:
            return at
        offset = at - first
        if offset + 12 > len(block):
            # Behind a large record there is often another one.
            is_far = offset > len(block)
            block, first, offset = _block(file, at, index, limit, is_far), at, 0
        (length,) = _WORD.unpack_from(block, offset)
        if length > _LONGEST_BYTES or _checksum(block, offset) != masked_crc(
            block[offset : offset + 8]
        ):
            raise _DamagedError(at)
        if at + length + 16 > end:
            return end
        if offset + 12 + min(length, _SMALL_BYTES) > len(block):
            is_large = length > _SMALL_BYTES
            block, first, offset = _block(file, at, index, limit, is_large), at, 0
        _add(block[offset + 12 : offset + 12 + length], at + 12, length, index)
        at += length + 16
    return end


def _block(file: BinaryIO, at: int, index: EventIndex, limit: int, is_short: bool) -> bytes:
    """Bytes from a record's start on: enough for a small one, and no more than may be read."""
    file.seek(at)
    wanted = 0 if is_short or at == 0 else min(_BLOCK, limit - index.read_bytes)
    block = file.read(max(_SMALL_BYTES + 12, wanted))
    index.read_bytes += len(block)
    return block


def _checksum(block: bytes, offset: int) -> int:
    return int.from_bytes(block[offset + 8 : offset + 12], "little")


def _sample(file: BinaryIO, start: int, end: int, index: EventIndex, most_bytes: int) -> None:
    """Add the records at equal distances, the last ones among them."""
    count = max(2, min(_PLACES, most_bytes // _PLACE_BYTES))
    width = max(_PLACE_BYTES, most_bytes // count)
    for number in range(count):
        at = max(start, int(start + (end - start - width) * (number / (count - 1))))
        file.seek(at)
        block = file.read(width)
        index.read_bytes += len(block)
        offset = _first_record(block)
        while offset is not None and offset + 12 <= len(block):
            (length,) = _WORD.unpack_from(block, offset)
            if offset + 12 + length > len(block):
                break
            _add(block[offset + 12 : offset + 12 + length], at + offset + 12, length, index)
            offset += length + 16
        start = max(start, at + (offset or 0))


def _first_record(block: bytes) -> int | None:
    """Where a record begins: eight bytes of a plausible length with their checksum behind them."""
    for offset in range(len(block) - 12):
        if block[offset + 4 : offset + 8] != b"\0\0\0\0":
            continue
        if masked_crc(block[offset : offset + 8]) == _checksum(block, offset):
            return offset
    return None


def _add(data: bytes, start: int, length: int, index: EventIndex) -> None:
    """Add the values of one event, of whose bytes the first are there."""
    scalar = _plain_scalar(data)
    if scalar is not None:
        tag, step, value = scalar
        index.scalars.setdefault(tag, []).append((step, value))
        return
    step = 0
    try:
        for part in parts(data, length):
            if part.number == 2 and isinstance(part.value, int):
                step = part.value
            elif part.number == 5 and part.length:
                _add_summary(data, part, step, start, index)
    except (ValueError, IndexError, struct.error):
        return  # an event of another kind, or cut off inside of a message that is not read


def _add_summary(data: bytes, summary: Part, step: int, start: int, index: EventIndex) -> None:
    for value in parts(data, summary.start + summary.length, summary.start):
        if value.number == 1 and value.length:
            _add_value(data, value, Place(step, start + value.start, value.length), index)


def _add_value(data: bytes, message: Part, place: Place, index: EventIndex) -> None:
    tag = ""
    for part in parts(data, message.start + message.length, message.start):
        if part.number == 1 and part.length:
            tag = data[part.start : part.start + part.length].decode("utf-8", "replace")
        elif part.number in (2, 3) and isinstance(part.value, float):
            index.scalars.setdefault(tag, []).append((place.step, part.value))
        elif part.number == 4 and part.length:
            index.images.setdefault(tag, []).append(place)
            return
        elif part.number in (5, 9) and part.length and _is_histogram(data, part):
            index.histograms.setdefault(tag, []).append(place)
            return
        elif part.number == 8 and part.length:
            _add_tensor(data, message, tag, place, index)
            return


def _is_histogram(data: bytes, part: Part) -> bool:
    """Whether it is one: in field 9 TensorBoard keeps a plugin's name, MindSpore its buckets.

    A bucket begins with a double, a name with its length.
    """
    return part.number == 5 or data[part.start + 2 : part.start + 3] == b"\x09"


def _add_tensor(data: bytes, message: Part, tag: str, place: Place, index: EventIndex) -> None:
    """TensorBoard's newer way: a tensor, and the name of the plugin that draws it."""
    content = data[message.start : message.start + message.length]
    if b"histograms" in content:
        index.histograms.setdefault(tag, []).append(place)
    elif b"images" in content or (len(content) < message.length and _holds_texts(content)):
        index.images.setdefault(tag, []).append(place)
    else:
        from isograd.compare.files.event_file import scalar_of_tensor

        for part in parts(content, len(content)):
            if part.number == 8 and part.length:
                value = scalar_of_tensor(content[part.start : part.start + part.length])
                if value is not None:
                    index.scalars.setdefault(tag, []).append((place.step, value))


def _holds_texts(value: bytes) -> bool:
    """Whether the tensor of a value that is cut off holds texts, as images are kept."""
    tensors = (part for part in parts(value, 1 << 62) if part.number == 8)
    tensor = next(tensors, None)
    if tensor is None:
        return False
    dtype = next(parts(value, tensor.start + tensor.length, tensor.start), None)
    return dtype is not None and dtype.number == 1 and dtype.value == _TEXT


def _plain_scalar(data: bytes) -> tuple[str, int, float] | None:
    """An event with one scalar as every writer lays it out, read in one go; None for others."""
    size = len(data)
    if size < 20 or size > 300 or data[0] != 0x09 or data[9] != 0x10:
        return None
    step, at = varint(data, 10)
    if at + 4 >= size or data[at] != 0x2A or data[at + 1] != size - at - 2:
        return None
    if data[at + 2] != 0x0A or data[at + 3] != size - at - 4 or data[at + 4] != 0x0A:
        return None
    end = at + 6 + data[at + 5]
    if end + 5 != size or data[end] not in (0x15, 0x1D):
        return None
    (value,) = struct.unpack_from("<f", data, end + 1)
    return data[at + 6 : end].decode("utf-8", "replace"), step, float(value)


def read_value(path: Path, place: Place, most_bytes: int) -> bytes:
    """The bytes of a value's message; CheckpointError where they are gone or too many."""
    if place.length > most_bytes:
        raise CheckpointError(
            f"{path}: the value at {place.start:,} has {place.length:,} bytes",
            "Open it with the program that wrote it.",
        )
    try:
        with path.open("rb") as file:
            file.seek(place.start)
            data = file.read(place.length)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error})", "Check its rights.") from error
    if len(data) < place.length:
        raise CheckpointError(f"{path}: is shorter than it was", "Open the page again.")
    return data
