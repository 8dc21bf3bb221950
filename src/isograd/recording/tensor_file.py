"""Files of tensors in the safetensors layout, written without a copy and read through a map.

The layout is eight bytes of header size, a JSON header, and the tensors' bytes without gaps (see
https://github.com/huggingface/safetensors).  It is read here, and not by that library, because
its numpy side knows no bfloat16 and because a recording of third parties must be refused with a
message that names the file.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from isograd.errors import RecordingError
from isograd.tensors import Array, TensorValue, bfloat16_from_bits

MAX_HEADER_BYTES = 100_000_000
#: What direct writing needs buffers, offsets and sizes to be multiples of.
PAGE_BYTES = 4096

#: safetensors' names of dtypes, by ours; complex128 is stored as pairs of float64.
CODES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}
_DTYPES = {code: name for name, code in CODES.items()}
_ADVICE = "The file is damaged or no recording of isograd's; record it again."


@dataclass(frozen=True)
class Entry:
    """One tensor's place in a file: start and end count from the end of the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def item_size_bytes(dtype: str) -> int:
    """Bytes of one element."""
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def write_tensor_file(file: BinaryIO, entries: list[Entry], body: memoryview) -> int:
    """Write a header and the body that its entries tile; return the size in bytes."""
    head = _head(entries, 8)
    file.write(head)
    file.write(body)
    return len(head) + len(body)


def page_buffer(size_bytes: int) -> NDArray[np.uint8]:
    """A buffer of whole pages, (bytes,) uint8 in one piece, as `write_tensor_file_past_cache` needs
    it.

    returns: of shape (bytes,), uint8, at least as long as asked.
    """
    pages = mmap.mmap(-1, max(1, -(-size_bytes // PAGE_BYTES)) * PAGE_BYTES)
    return np.frombuffer(pages, np.uint8)


def write_tensor_file_past_cache(
    path: Path, entries: list[Entry], buffer: NDArray[np.uint8], used: int
) -> int:
    """The same from a page buffer, past the page cache where the file system allows it.

    The kernel's copying and writing back would compete with the training for the processor:
    measured with ResNet-50 on two cores, they cost more than the training step itself.

    buffer: of shape (bytes,), uint8, from `page_buffer`; its first `used` bytes are written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        descriptor = os.open(path, flags | getattr(os, "O_DIRECT", 0), 0o644)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        descriptor = os.open(path, flags, 0o644)
    try:
        head = _head(entries, PAGE_BYTES)
        first = page_buffer(len(head))
        first[: len(head)] = np.frombuffer(head, np.uint8)
        _write_all(descriptor, first.data)
        _write_all(descriptor, buffer[: -(-used // PAGE_BYTES) * PAGE_BYTES].data)
        os.ftruncate(descriptor, len(head) + used)
    finally:
        os.close(descriptor)
    return len(head) + used


def _write_all(descriptor: int, data: memoryview) -> None:
    while len(data):
        data = data[os.write(descriptor, data) :]


def _head(entries: list[Entry], multiple: int) -> bytes:
    """The size and the header of a file, padded with spaces to a multiple of this many bytes."""
    header: dict[str, Any] = {
        entry.name: {
            "dtype": CODES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [entry.start, entry.end],
        }
        for entry in entries
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % multiple)
    return struct.pack("<Q", len(text)) + text


class TensorFile:
    """A file of tensors, mapped into memory; a tensor's pages are read when it is."""

    def __init__(self, path: Path) -> None:
        """Open and check a file.

        Raises RecordingError for anything that is not a complete safetensors file.
        """
        self.path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise self._refusal(f"cannot be read ({error})") from error
        self._start, header = self._read_header()
        self._entries = {entry.name: entry for entry in self._check(header)}

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def tensor(self, name: str) -> TensorValue:
        """Read one tensor: read-only views of the file, except bfloat16, which becomes float32.

        returns: the shape and dtype that the file names.
        Raises RecordingError where there is no tensor of this name or its dtype is unknown.
        """
        try:
            entry = self._entries[name]
        except KeyError:
            raise self._refusal(f"has no tensor {name!r}") from None
        count = (entry.end - entry.start) // item_size_bytes(entry.dtype)
        raw = np.uint16 if entry.dtype == "bfloat16" else np.dtype(entry.dtype)
        values: Array
        if count:
            values = np.frombuffer(self._map, raw, count, self._start + entry.start)
        else:
            values = np.empty(0, raw)
        if not values.flags.aligned:
            values = values.copy()
        values = values.reshape(entry.shape)
        if entry.dtype == "bfloat16":
            values = bfloat16_from_bits(values.astype(np.uint16, copy=False))
        return TensorValue(values, entry.dtype)

    def _refusal(self, what: str) -> RecordingError:
        return RecordingError(f"{self.path}: {what}", _ADVICE)

    def _read_header(self) -> tuple[int, dict[str, Any]]:
        if len(self._map) < 8:
            raise self._refusal("is shorter than a header")
        (size,) = struct.unpack("<Q", self._map[:8])
        if size > MAX_HEADER_BYTES or 8 + size > len(self._map):
            raise self._refusal(f"announces a header of {size:,} bytes, which it does not hold")
        try:
            header = json.loads(self._map[8 : 8 + size], object_pairs_hook=_without_duplicates)
        except (ValueError, RecursionError) as error:
            raise self._refusal(f"has a header that is no JSON ({error})") from error
        if not isinstance(header, dict):
            raise self._refusal("has a header that is no JSON object")
        header.pop("__metadata__", None)
        return 8 + size, header

    def _check(self, header: dict[str, Any]) -> list[Entry]:
        entries = sorted(
            (self._entry(name, fields) for name, fields in header.items()),
            key=lambda entry: (entry.start, entry.end),
        )
        position = 0
        for entry in entries:
            if entry.start != position:
                raise self._refusal(f"leaves a gap or an overlap before tensor {entry.name!r}")
            position = entry.end
        if self._start + position != len(self._map):
            raise self._refusal(
                f"holds {len(self._map) - self._start:,} bytes of tensors, "
                f"and its header announces {position:,}"
            )
        return entries

    def _entry(self, name: str, fields: Any) -> Entry:
        try:
            dtype = _DTYPES[fields["dtype"]]
            shape = tuple(fields["shape"])
            start, end = fields["data_offsets"]
        except (KeyError, TypeError, ValueError) as error:
            raise self._refusal(f"describes tensor {name!r} incompletely ({error!r})") from error
        numbers = (*shape, start, end)
        if any(type(number) is not int or number < 0 for number in numbers):
            raise self._refusal(f"gives tensor {name!r} a size that is no natural number")
        size_bytes = item_size_bytes(dtype)
        for extent in shape:
            size_bytes *= extent
        if len(shape) > 32 or end - start != size_bytes:
            raise self._refusal(f"gives tensor {name!r} a shape that does not fit its bytes")
        return Entry(name, dtype, shape, start, end)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found
