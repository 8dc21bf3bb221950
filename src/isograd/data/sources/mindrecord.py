"""MindRecord files, read without MindSpore; their index (`.db`) is not needed.

A file is a JSON header behind its length (u64, little endian), then pages: page k begins at
`header_size + k · page_size` and uses `page["page_size"]` bytes of it.  A record is its length
(u64, little endian) and its body.  RAW_DATA pages hold a MessagePack map of the scalar fields,
BLOB_DATA pages the others: bytes alone where there is one such field, else each behind its length
(u64, big endian).  Integer arrays are a count (u32, big endian), 2 bits for the width of each
number (1, 2, 4, 8 bytes; the first in the highest bits), then the numbers, little endian; arrays
of floats are plain.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isograd.checkpoints.base import map_file
from isograd.data.limits import MAX_FIELDS, MAX_HEADER_BYTES, MAX_RECORD_BYTES
from isograd.data.sources.base import Item, Problem, Sample, SampleSource, Value, refuse
from isograd.errors import DataError
from isograd.tensors import Array

_ADVICE = "Write it again from its source."
_SCALARS = ("int32", "int64", "float32", "float64")
_U64, _BIG_U64 = struct.Struct("<Q"), struct.Struct(">Q")


class MalformedRecordError(ValueError):
    """A record that does not hold what the schema says."""


@dataclass(frozen=True)
class Field:
    """A field of the schema; shape is None for a scalar, and -1 means any extent."""

    name: str
    type: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Header:
    """What a file says of itself."""

    header_bytes: int
    page_bytes: int
    fields: tuple[Field, ...]
    blob_fields: tuple[str, ...]
    raw_pages: tuple[tuple[int, int], ...]
    blob_pages: tuple[tuple[int, int], ...]
    rows: int


def read_header(path: Path, data: memoryview) -> Header:
    """The header of a file; DataError where it is none."""
    length = _U64.unpack_from(data)[0] if len(data) >= 8 else 0
    if not 2 <= length <= min(MAX_HEADER_BYTES, len(data) - 8):
        raise refuse(path, "is no MindRecord: its header's length is wrong", _ADVICE)
    try:
        return _header(json.loads(bytes(data[8 : 8 + length])), len(data))
    except RecursionError as error:
        raise refuse(path, "its header nests too deeply", _ADVICE) from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise refuse(path, f"its header is malformed ({error})", _ADVICE) from error


def _header(found: dict[str, Any], size_bytes: int) -> Header:
    header_bytes, page_bytes = int(found["header_size"]), int(found["page_size"])
    if header_bytes < 8 or page_bytes < 8:
        raise ValueError("pages of no size")
    schema = found["schema"][0]
    described = schema["schema"]
    if len(described) > MAX_FIELDS:
        raise ValueError(f"{len(described):,} fields")
    fields = tuple(
        Field(str(name), str(entry["type"]), _shape(entry.get("shape")))
        for name, entry in described.items()
    )
    pages: dict[str, list[tuple[int, int, int]]] = {"RAW_DATA": [], "BLOB_DATA": []}
    rows = 0
    for page in found["page"]:
        kind, used = page["page_type"], int(page["page_size"])
        start = header_bytes + page_bytes * int(page["page_id"])
        if kind not in pages or used < 0 or start < header_bytes:
            raise ValueError(f"a page of kind {kind!r} with {used:,} bytes")
        rows = max(rows, int(page.get("end_row_id", 0)))
        pages[kind].append((int(page["page_type_id"]), start, used))
    in_order = {kind: tuple((s, u) for _, s, u in sorted(p)) for kind, p in pages.items()}
    return Header(
        header_bytes,
        page_bytes,
        fields,
        tuple(str(name) for name in schema["blob_fields"]),
        in_order["RAW_DATA"],
        in_order["BLOB_DATA"],
        rows,
    )


def _shape(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    return tuple(int(extent) for extent in (value if isinstance(value, list) else [value]))


class MindRecordFiles(SampleSource):
    """The rows of one file, or of its shards in their order."""

    format = "MindRecord"

    def __init__(self, paths: list[Path], address: str) -> None:
        super().__init__(address)
        self._paths = paths
        self._maps = [map_file(path) for path in paths]
        self._headers = [
            read_header(path, data) for path, data in zip(paths, self._maps, strict=True)
        ]

    @property
    def fields(self) -> tuple[Field, ...]:
        """The schema of the first shard."""
        return self._headers[0].fields

    def count(self) -> int | None:
        return sum(header.rows for header in self._headers) or None

    def samples(self) -> Iterator[Item]:
        several = len(self._paths) > 1
        shards = list(zip(self._paths, self._maps, self._headers, strict=True))
        for path, data, header in self._own(lambda: shards):
            prefix = f"{path.name}#" if several else "#"
            yield from _rows(data, header, prefix)

    @property
    def is_divisible(self) -> bool:
        return len(self._paths) > 1


def _rows(data: memoryview, header: Header, prefix: str) -> Iterator[Item]:
    blobs = _records(data, header.blob_pages)
    read_blob = _blob_reader(header)
    scalar_types = _scalar_types(header)
    unpack = _unpacker()
    number = 0
    try:
        for raw in _records(data, header.raw_pages):
            key = f"{prefix}{number}"
            number += 1
            blob = next(blobs, None) if header.blob_fields else memoryview(b"")
            if blob is None:
                raise MalformedRecordError("its blob is missing")
            try:
                fields = _scalars(unpack(raw) if len(raw) else {}, scalar_types)
                fields.update(read_blob(blob))
            except (ValueError, TypeError, struct.error) as error:
                yield Problem(key, f"is malformed ({error})")
                continue
            yield Sample(key, fields)
    except MalformedRecordError as error:
        yield Problem(f"{prefix}{number}", f"{error}; the rest is lost")


def _records(data: memoryview, pages: tuple[tuple[int, int], ...]) -> Iterator[memoryview]:
    """The bodies of the records of some pages, in their order."""
    size, unpack = len(data), _U64.unpack_from
    for start, used in pages:
        end = start + used
        if end > size:
            raise MalformedRecordError(
                f"the file is cut off: a page ends at byte {end:,} of {size:,}"
            )
        while start < end:
            if end - start < 8:
                raise MalformedRecordError(f"the record at byte {start:,} is cut off")
            length = unpack(data, start)[0]
            start += 8
            if length > end - start or length > MAX_RECORD_BYTES:
                raise MalformedRecordError(
                    f"the record at byte {start - 8:,} announces {length:,} bytes"
                )
            yield data[start : start + length]
            start += length


def _unpacker() -> Callable[[memoryview], Any]:
    try:
        import msgpack  # type: ignore[import-untyped]
    except ImportError as error:
        raise DataError(
            "MindRecord's scalar fields are read by msgpack, which is not installed",
            'Install it: pip install "isograd[data]".',
        ) from error

    def unpack(raw: memoryview) -> Any:
        # what a malformed message raises has many kinds, of which most are ValueError
        try:
            return msgpack.unpackb(raw, strict_map_key=False, unicode_errors="replace")
        except (msgpack.UnpackException, AssertionError) as error:
            raise ValueError(str(error) or "no MessagePack") from error

    return unpack


def _scalar_types(header: Header) -> dict[str, str]:
    return {f.name: f.type for f in header.fields if f.name not in header.blob_fields}


def _scalars(found: Any, types: dict[str, str]) -> dict[str, Value]:
    if not isinstance(found, dict):
        raise MalformedRecordError("its scalar fields are no map")
    result: dict[str, Value] = {}
    for name, kind in types.items():
        if name not in found:
            raise ValueError(f"field {name!r} is missing")
        value = found[name]
        if kind == "string":
            result[name] = str(value)
        elif kind in _SCALARS:
            result[name] = np.asarray(value, kind)
        else:
            raise ValueError(f"field {name!r} is of type {kind!r}")
    return result


def _blob_reader(header: Header) -> Callable[[memoryview], dict[str, Value]]:
    types = {field.name: field for field in header.fields}
    readers = [(name, _reader_of(types.get(name))) for name in header.blob_fields]
    if len(readers) == 1:
        only, read_only = readers[0]
        return lambda blob: {only: read_only(blob)}

    def read(blob: memoryview) -> dict[str, Value]:
        found: dict[str, Value] = {}
        position = 0
        for name, reader in readers:
            length = _BIG_U64.unpack_from(blob, position)[0]
            position += 8
            if length > len(blob) - position:
                raise ValueError(f"field {name!r} announces {length:,} bytes")
            found[name] = reader(blob[position : position + length])
            position += length
        return found

    return read


def _reader_of(field: Field | None) -> Callable[[memoryview], Value]:
    if field is None or field.type == "bytes":
        return bytes
    if field.type == "string":
        return lambda data: str(data, "utf-8", errors="replace")
    shape = field.shape or (-1,)
    if field.type in ("int32", "int64"):
        dtype = np.dtype(field.type)
        return lambda data: _integers(data, dtype).reshape(shape)
    if field.type in ("float32", "float64"):
        plain = np.dtype(field.type).newbyteorder("<")
        return lambda data: np.frombuffer(data, plain).reshape(shape)
    raise MalformedRecordError(f"field {field.name!r} is of the unknown type {field.type!r}")


_WIDTHS = np.asarray([1, 2, 4, 8])
_SIGNED: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, ("i1", "<i2", "<i4", "<i8")))


def _integers(data: memoryview, dtype: np.dtype[Any]) -> Array:
    """Integers of 1, 2, 4 or 8 bytes each, as their 2-bit codes say."""
    if len(data) < 4:
        raise ValueError("an array of integers has no count")
    count = int.from_bytes(data[:4], "big")
    coded = (count + 3) // 4
    if coded > len(data) - 4:
        raise ValueError(f"an array announces {count:,} integers")
    octets = np.frombuffer(data[4 : 4 + coded], np.uint8)
    codes = ((octets[:, None] >> np.array([6, 4, 2, 0], np.uint8)) & 3).reshape(-1)[:count]
    body = data[4 + coded :]
    if count and (codes == codes[0]).all():
        return np.frombuffer(body, _SIGNED[codes[0]], count).astype(dtype)
    widths = _WIDTHS[codes]
    starts = np.concatenate(([0], np.cumsum(widths)))
    if int(starts[-1]) > len(body):
        raise ValueError("an array of integers is cut off")
    source = np.frombuffer(body, np.uint8)
    found = np.zeros(count, dtype)
    for code, kind in enumerate(_SIGNED):
        chosen = np.flatnonzero(codes == code)
        if chosen.size:
            places = starts[chosen][:, None] + np.arange(kind.itemsize)
            found[chosen] = source[places].copy().view(kind).reshape(-1)
    return found


def shards_of(path: Path) -> list[Path]:
    """The shards that a file's own header lists, else the file alone."""
    data = map_file(path)
    length = _U64.unpack_from(data)[0] if len(data) >= 8 else 0
    if not 2 <= length <= min(MAX_HEADER_BYTES, len(data) - 8):
        return [path]
    try:
        addresses = json.loads(bytes(data[8 : 8 + length])).get("shard_addresses", [])
        names = [Path(str(address)).name for address in addresses]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return [path]
    found = [path.with_name(name) for name in names]
    if path in found and all(p.is_file() and is_mindrecord(p) for p in found):
        return found
    return [path]


def is_mindrecord(path: Path) -> bool:
    """Whether a file begins with a MindRecord's header."""
    try:
        with path.open("rb") as file:
            head = file.read(8 + 4096)
    except OSError:
        return False
    if len(head) < 10:
        return False
    length = _U64.unpack_from(head)[0]
    return 2 <= length <= MAX_HEADER_BYTES and head[8:9] == b"{" and b'"header_size"' in head


def open_mindrecords(paths: list[Path], address: str) -> MindRecordFiles:
    """Open shards; one that is named alone brings the others that its header lists."""
    found = shards_of(paths[0]) if len(paths) == 1 else paths
    return MindRecordFiles(found, address)
