"""MindRecord, written without MindSpore and with the index that MindSpore asks for.

`sources/mindrecord.py` says the layout.  A page of blobs is one group of rows; the raw records of a
group never lie on two pages.  The index is SQLite: where each row lies in both kinds of pages.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isograd.data.sources.base import Value
from isograd.data.write.base import Fields, Writer, cannot
from isograd.errors import DataError

HEADER_BYTES = 1 << 24
PAGE_BYTES = 1 << 25
#: The largest page: a record must fit into one.
MOST_PAGE_BYTES = 1 << 28
_INDEX = (
    "CREATE TABLE INDEXES(ROW_ID INT NOT NULL, PAGE_ID_RAW INT NOT NULL, PAGE_OFFSET_RAW INT NOT "
    "NULL, PAGE_OFFSET_RAW_END INT NOT NULL, ROW_GROUP_ID INT NOT NULL, PAGE_ID_BLOB INT NOT NULL, "
    "PAGE_OFFSET_BLOB INT NOT NULL, PAGE_OFFSET_BLOB_END INT NOT NULL, PRIMARY KEY(ROW_ID))"
)
_NO_BLOB = bytes(4)


class PageTooSmallError(Exception):
    """A record does not fit into a page; `size_bytes` is what it needs."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


class MindRecordWriter(Writer):
    """One file and its index."""

    def __init__(self, path: Path, name: str, page_bytes: int = PAGE_BYTES) -> None:
        super().__init__(path)
        self._name, self._page_bytes = name, page_bytes
        self._file = path.open("wb")
        self._schema: dict[str, dict[str, Any]] = {}
        self._blobs: list[str] = []
        self._pages: list[dict[str, Any]] = []
        self._counts = {"RAW_DATA": 0, "BLOB_DATA": 0}
        self._blob = bytearray()
        self._raw = bytearray()
        self._groups: list[dict[str, int]] = []
        #: Rows of the raw page under way: what the index says, but the number of that page.
        self._waiting: list[tuple[int, int, int, int, int, int, int]] = []
        self._rows = 0
        self._group_start = 0
        self._index = sqlite3.connect(str(path) + ".db")
        self._index.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
        self._index.execute(_INDEX)
        self._index.execute("INSERT INTO SHARD_NAME VALUES(?)", (name,))

    def write(self, fields: Fields) -> None:
        self.require_same(fields, self._rows)
        if not self._schema:
            self._describe(fields)
        raw, blob = self._raw_body(fields), self._blob_body(fields)
        for body in (raw, blob):
            if len(body) + 8 > self._page_bytes:
                raise PageTooSmallError(len(body) + 8)
        if len(self._blob) + len(blob) + 8 > self._page_bytes:
            self._end_group()
        if len(self._raw) + len(raw) + 8 > self._page_bytes:
            self._end_group()
            self._end_raw_page()
        if not self._blob:
            group = self._counts["BLOB_DATA"]
            self._groups.append({"id": group, "offset": len(self._raw)})
            self._group_start = self._rows
        raw_start, blob_start = len(self._raw), len(self._blob)
        for store, body in ((self._raw, raw), (self._blob, blob)):
            store += struct.pack("<Q", len(body))
            store += body
        self._waiting.append(
            (
                self._rows,
                raw_start,
                len(self._raw),
                self._counts["BLOB_DATA"],
                len(self._pages),
                blob_start,
                len(self._blob),
            )
        )
        self._rows += 1

    def _describe(self, fields: Fields) -> None:
        for name, value in fields.items():
            if isinstance(value, str):
                self._schema[name] = {"type": "string"}
            elif isinstance(value, bytes):
                self._schema[name] = {"type": "bytes"}
                self._blobs.append(name)
            else:
                self._schema[name] = self._array_type(name, value)
                if value.ndim:
                    self._blobs.append(name)
        self._blobs.sort()

    def _array_type(self, name: str, value: NDArray[Any]) -> dict[str, Any]:
        dtype = str(value.dtype)
        kept = {"int32": "int32", "int64": "int64", "float32": "float32", "float64": "float64"}
        wider = {"float16": "float32", "uint32": "int64", "uint64": "int64"}
        if dtype not in kept:
            if value.dtype.kind not in "biuf":
                raise cannot(name, f"MindRecord has no {dtype}")
            kept[dtype] = wider.get(dtype, "int32")
            self.note(f"field {name!r}: MindRecord has no {dtype}; it is kept as {kept[dtype]}")
        found: dict[str, Any] = {"type": kept[dtype]}
        if value.ndim:
            found["shape"] = [-1, *value.shape[1:]]
        return found

    def _raw_body(self, fields: Fields) -> bytes:
        import msgpack  # type: ignore[import-untyped]

        scalars: dict[str, Any] = {}
        for name in sorted(self._schema):
            if name not in self._blobs:
                value = fields[name]
                scalars[name] = value if isinstance(value, str) else self._number(name, value)
        packed: bytes = msgpack.packb(scalars)
        return packed

    def _number(self, name: str, value: Value) -> int | float:
        kind = self._schema[name]["type"]
        if not isinstance(value, np.ndarray) or value.ndim:
            raise cannot(name, "is a number in the first sample and something else here")
        found = value.item()
        is_whole = kind.startswith("int")
        if is_whole != (value.dtype.kind in "biu") or (
            is_whole and not -(2**63) <= int(found) < 2**63
        ):
            raise cannot(name, f"{found} is no {kind}")
        if kind == "int32" and not -(2**31) <= int(found) < 2**31:
            raise cannot(name, f"{found} is no int32, as the first sample has")
        return int(found) if is_whole else float(found)

    def _blob_body(self, fields: Fields) -> bytes:
        if not self._blobs:
            return _NO_BLOB
        parts = [self._encoded(name, fields[name]) for name in self._blobs]
        if len(parts) == 1:
            return parts[0]
        return b"".join(struct.pack(">Q", len(part)) + part for part in parts)

    def _encoded(self, name: str, value: Value) -> bytes:
        kind = self._schema[name]
        if isinstance(value, bytes) and kind["type"] == "bytes":
            return value
        if not isinstance(value, np.ndarray) or list(value.shape[1:]) != kind.get("shape", [])[1:]:
            raise cannot(name, "its kind or its shape behind the first axis differs from the first")
        if kind["type"].startswith("int"):
            return encode_integers(value.reshape(-1).astype(np.int64))
        return value.astype(np.dtype(kind["type"]).newbyteorder("<")).tobytes()

    def _end_group(self) -> None:
        """Write the page of blobs under way."""
        if self._blob:
            page = self._page("BLOB_DATA", self._blob, [{"id": 0, "offset": 0}])
            page.update(start_row_id=self._group_start, end_row_id=self._rows)
            self._blob = bytearray()

    def _end_raw_page(self) -> None:
        if not self._raw:
            return
        number = len(self._pages)
        self._page("RAW_DATA", self._raw, self._groups)
        self._index.executemany(
            "INSERT INTO INDEXES VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            [(row, number, *rest) for row, *rest in self._waiting],
        )
        self._raw, self._groups, self._waiting = bytearray(), [], []

    def _page(self, kind: str, content: bytearray, groups: list[dict[str, int]]) -> dict[str, Any]:
        number = len(self._pages)
        self._file.seek(HEADER_BYTES + self._page_bytes * number)
        self._file.write(content)
        page = {
            "end_row_id": 0,
            "page_id": number,
            "page_size": len(content),
            "page_type": kind,
            "page_type_id": self._counts[kind],
            "row_group_ids": groups,
            "shard_id": 0,
            "start_row_id": 0,
        }
        self._counts[kind] += 1
        self._pages.append(page)
        return page

    def finish(self) -> list[Path]:
        if not self._rows:
            raise DataError("there is no sample to write", "Look at the source first.")
        self._end_group()
        self._end_raw_page()
        header = {
            "header_size": HEADER_BYTES,
            "index_fields": None,
            "page": self._pages,
            "page_size": self._page_bytes,
            "compression_size": 0,
            "schema": [
                {"blob_fields": self._blobs, "desc": "isograd data", "schema": self._schema}
            ],
            "shard_addresses": [self._name],
            "shard_id": 0,
            "statistics": None,
            "version": "3.0",
        }
        text = json.dumps(header).encode()
        if len(text) + 8 > HEADER_BYTES:
            raise DataError("the list of pages is longer than a header", "Write several files.")
        self._file.seek(0)
        self._file.write(struct.pack("<Q", len(text)) + text)
        self._file.close()
        self._index.commit()
        self._index.close()
        return [self.path.with_name(self._name + ".db")]


_CODED: tuple[Callable[[NDArray[np.int64]], NDArray[np.bool_]], ...] = tuple(
    (lambda values, bits=bits: (values >= -(1 << bits)) & (values < 1 << bits))  # type: ignore[misc]
    for bits in (7, 15, 31)
)


def encode_integers(values: NDArray[np.int64]) -> bytes:
    """Integers in as few bytes each as they need; the codes of widths come first.

    values: (n,) int64.
    """
    count = len(values)
    codes = np.full(count, 3, np.uint8)
    for code in (2, 1, 0):
        codes[_CODED[code](values)] = code
    padded = np.zeros((count + 3) // 4 * 4, np.uint8)
    padded[:count] = codes
    quads = padded.reshape(-1, 4)
    packed = quads[:, 0] << 6 | quads[:, 1] << 4 | quads[:, 2] << 2 | quads[:, 3]
    octets = values.astype("<i8").view(np.uint8).reshape(count, 8)
    widths = np.asarray([1, 2, 4, 8])[codes]
    body = octets[np.arange(8)[None, :] < widths[:, None]]
    return count.to_bytes(4, "big") + packed.astype(np.uint8).tobytes() + body.tobytes()
