"""TFRecord files, also gzipped, with every checksum checked (MindSpore 2.10 checks none).

A record is its length (u64, little endian), the masked CRC-32C of these 8 bytes, the data, and the
masked CRC-32C of the data.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from isograd.checkpoints.base import map_file
from isograd.checkpoints.protobuf import MalformedError
from isograd.data.limits import MAX_HEADER_BYTES, MAX_RECORD_BYTES
from isograd.data.sources.base import Item, Problem, Sample, SampleSource, Value, refuse
from isograd.data.sources.example_proto import parse_example
from isograd.errors import DataError

HEAD = struct.Struct("<QI")
_GZIP = b"\x1f\x8b"
_SUFFIXES = (".gz", ".tfrecord", ".tfrecords", ".tfrec")
Checksum = Callable[[bytes], int]


def crc32c() -> Checksum:
    """CRC-32C by google-crc32c, in hardware where the processor has it."""
    try:
        import google_crc32c
    except ImportError as error:
        raise DataError(
            "checksums of TFRecord are computed by google-crc32c, which is not installed",
            'Install it: pip install "isograd[data]".',
        ) from error
    found: Checksum = google_crc32c.value
    return found


def masked(crc: int) -> int:
    """A checksum as TFRecord stores it."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


class TFRecordFiles(SampleSource):
    """Examples of one file or several shards, in the order of their names."""

    format = "TFRecord"

    def __init__(self, paths: list[Path], address: str) -> None:
        super().__init__(address)
        self._paths = paths
        self._schema = _read_schema(paths[0])

    def samples(self) -> Iterator[Item]:
        several = len(self._paths) > 1
        for path in self._own(lambda: self._paths):
            prefix = f"{path.name}#" if several else "#"
            for number, record in records(path):
                key = f"{prefix}{number}"
                if isinstance(record, str):
                    yield Problem(key, record)
                    continue
                try:
                    fields = parse_example(record)
                except (MalformedError, ValueError) as error:
                    yield Problem(key, f"is no Example ({error})")
                    continue
                yield Sample(key, self._typed(fields))

    @property
    def is_divisible(self) -> bool:
        return len(self._paths) > 1

    def _typed(self, fields: dict[str, Value]) -> dict[str, Value]:
        """The fields in the dtypes and shapes that a schema beside the file names."""
        if not self._schema:
            return fields
        found: dict[str, Value] = {}
        for name, value in fields.items():
            if name.endswith(_SHAPE) and name.removesuffix(_SHAPE) in self._schema:
                continue
            dtype = self._schema.get(name)
            found[name] = (
                value if dtype is None else _typed(value, dtype, fields.get(name + _SHAPE))
            )
        return found


#: The suffix under which isograd's writer stores the shape of a field, since an Example has none.
_SHAPE = "/shape"


def _typed(value: Value, dtype: str, shape: Value | None) -> Value:
    extents: tuple[int, ...] | None = None
    if isinstance(shape, np.ndarray):
        extents = tuple(int(extent) for extent in shape.reshape(-1))
    if dtype == "string":
        return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value
    if dtype == "bytes" or isinstance(value, str):
        return value
    try:
        if isinstance(value, bytes):
            array = np.frombuffer(value, np.dtype(dtype))
        else:
            array = value.astype(dtype)
        return array.reshape(extents) if extents is not None else array
    except (TypeError, ValueError):
        return value


def schema_path(path: Path) -> Path:
    """The schema of a TFRecord, in MindSpore's own format, beside it."""
    return path.with_name(path.name + ".schema.json")


def _read_schema(path: Path) -> dict[str, str]:
    beside = schema_path(path)
    if not beside.is_file() or beside.stat().st_size > MAX_HEADER_BYTES:
        return {}
    try:
        columns = json.loads(beside.read_text("utf-8"))["columns"]
        types = {str(name): str(column["type"]) for name, column in columns.items()}
        kept = {str(n): str(c["isograd"]) for n, c in columns.items() if "isograd" in c}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return types | kept


def records(path: Path) -> Iterator[tuple[int, memoryview | str]]:
    """Each record with its number; a text says why one cannot be read.

    After a wrong length nothing further can be found in a file; after wrong data the next can.
    """
    with path.open("rb") as file:
        if file.read(2) == _GZIP:
            file.seek(0)
            yield from _streamed(file)
            return
    yield from _mapped(map_file(path))


def _mapped(data: memoryview) -> Iterator[tuple[int, memoryview | str]]:
    checksum = crc32c()
    end, position, number = len(data), 0, 0
    unpack, head_bytes = HEAD.unpack_from, HEAD.size
    while position < end:
        if end - position < head_bytes:
            yield number, f"is cut off: the file ends at byte {end:,}"
            return
        length, crc = unpack(data, position)
        if masked(checksum(bytes(data[position : position + 8]))) != crc:
            yield number, f"its length at byte {position:,} has a wrong checksum; the rest is lost"
            return
        start = position + head_bytes
        position = start + length + 4
        if position > end:
            yield number, f"is cut off: it announces {length:,} bytes, the file ends at {end:,}"
            return
        body = bytes(data[start : start + length])
        stored = int.from_bytes(data[position - 4 : position], "little")
        if masked(checksum(body)) != stored:
            yield number, f"the data at byte {start:,} has a wrong checksum"
        else:
            yield number, memoryview(body)
        number += 1


def _streamed(file: BinaryIO) -> Iterator[tuple[int, memoryview | str]]:
    checksum, number = crc32c(), 0
    with gzip.GzipFile(fileobj=file) as stream:
        while True:
            try:
                head = stream.read(HEAD.size)
                if not head:
                    return
                length = _length(head, checksum)
                body, tail = stream.read(length), stream.read(4)
            except (OSError, EOFError, zlib.error) as error:
                yield number, f"the gzip stream is damaged ({error})"
                return
            except MalformedError as error:
                yield number, str(error)
                return
            if len(body) < length or len(tail) < 4:
                yield number, "is cut off"
                return
            is_whole = masked(checksum(body)) == int.from_bytes(tail, "little")
            yield number, memoryview(body) if is_whole else "the data has a wrong checksum"
            number += 1


def _length(head: bytes, checksum: Checksum) -> int:
    """The length that a record's head announces; MalformedError where it cannot be believed."""
    if len(head) < HEAD.size:
        raise MalformedError("is cut off")
    length, crc = HEAD.unpack(head)
    if masked(checksum(head[:8])) != crc:
        raise MalformedError("its length has a wrong checksum; the rest is lost")
    if length > MAX_RECORD_BYTES:
        raise MalformedError(f"announces {length:,} bytes")
    return int(length)


def is_tfrecord(path: Path) -> bool:
    """Whether the first record's length has its checksum."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD.size)
            if head[:2] == _GZIP:
                file.seek(0)
                head = gzip.GzipFile(fileobj=file).read(HEAD.size)
    except (OSError, EOFError, zlib.error):
        return False
    if len(head) < HEAD.size:
        return False
    return masked(crc32c()(head[:8])) == int(HEAD.unpack(head)[1])


def tfrecords_in(folder: Path) -> list[Path]:
    """The TFRecord shards of a folder, by their names."""
    named = [p for p in sorted(folder.iterdir()) if ".tfrec" in p.name and p.is_file()]
    return [p for p in named if not p.name.endswith(".json")]


def open_tfrecords(paths: list[Path], address: str) -> TFRecordFiles:
    """Open shards; DataError where the first is none."""
    if not is_tfrecord(paths[0]):
        raise refuse(paths[0], "is no TFRecord: its first checksum is wrong", "Copy it again.")
    return TFRecordFiles(paths, address)
