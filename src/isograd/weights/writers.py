"""Writers of checkpoints: the table first, then one tensor after the other, block by block."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import BinaryIO

import numpy as np

from isograd.checkpoints.checksum import crc32
from isograd.checkpoints.mindspore_file import CODES as MINDSPORE_CODES
from isograd.checkpoints.mindspore_file import CRC_BYTES, CRC_MARK
from isograd.checkpoints.safetensors_file import CODES as SAFETENSORS_CODES
from isograd.errors import CheckpointError
from isograd.weights.torch_pickle import checkpoint_pickle

#: Bytes of one record of a .ckpt, as MindSpore cuts large parameters.
RECORD_BYTES = 512 * 1024 * 1024
_ALIGNMENT = 64
_MINDSPORE_REFUSES = frozenset({"complex64", "complex128", "float8_e4m3fn", "float8_e5m2"})


@dataclass(frozen=True)
class Entry:
    """A tensor to be written; tied_to: an earlier entry with the same bytes, or None."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    tied_to: str | None = None


@dataclass(frozen=True)
class WriteOptions:
    """What a format may write besides the tensors.

    has_checksum: whether a .ckpt ends in its checksum, as `save_checkpoint(crc_check=True)` has it.
    metadata: texts for the header of a .safetensors.
    """

    has_checksum: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)


Blocks = Iterator[memoryview]
Tensors = Iterator[tuple[Entry, Blocks]]
Writer = Callable[[BinaryIO, Sequence[Entry], Tensors, WriteOptions], None]


def write_safetensors(
    file: BinaryIO, entries: Sequence[Entry], tensors: Tensors, options: WriteOptions
) -> None:
    """Write the safetensors layout."""
    header: dict[str, object] = {}
    if options.metadata:
        header["__metadata__"] = dict(options.metadata)
    position = 0
    for entry in entries:
        code = _code(SAFETENSORS_CODES, entry, ".safetensors")
        end = position + entry.size_bytes
        header[entry.name] = {
            "dtype": code,
            "shape": list(entry.shape),
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    file.write(len(text).to_bytes(8, "little") + text)
    for _, blocks in tensors:
        for block in blocks:
            file.write(block)


def write_ckpt(
    file: BinaryIO, entries: Sequence[Entry], tensors: Tensors, options: WriteOptions
) -> None:
    """Write MindSpore's protobuf; large tensors in several records of the same name."""
    for entry in entries:
        _require_readable_by_mindspore(entry)
    checksum = 0
    for entry, blocks in tensors:
        for part in _records(entry, blocks):
            if options.has_checksum:
                checksum = crc32(part, checksum)
            file.write(part)
    if options.has_checksum:
        file.write(CRC_MARK + checksum.to_bytes(CRC_BYTES, "big"))


def _require_readable_by_mindspore(entry: Entry) -> None:
    if entry.dtype in _MINDSPORE_REFUSES:
        raise CheckpointError(
            f"{entry.name} is {entry.dtype}, which mindspore.load_checkpoint does not read",
            "Cast it with --dtype, or write .safetensors.",
        )
    if entry.shape == (0,):
        raise CheckpointError(
            f"{entry.name} has no element, and a .ckpt writes a single number with its shape",
            "Leave it out with a map, or write .safetensors.",
        )


def _records(entry: Entry, blocks: Blocks) -> Iterator[bytes | memoryview]:
    """The bytes of a tensor's records: a head, then at most RECORD_BYTES of elements each."""
    left = entry.size_bytes
    room = min(left, RECORD_BYTES)
    yield _record_head(entry, room)
    for block in blocks:
        rest = block
        while rest:
            if not room:
                room = min(left, RECORD_BYTES)
                yield _record_head(entry, room)
            part = rest[:room]
            yield part
            room -= len(part)
            left -= len(part)
            rest = rest[len(part) :]


def _record_head(entry: Entry, size_bytes: int) -> bytes:
    """Everything of a record but its bytes."""
    code = _code(MINDSPORE_CODES, entry, ".ckpt").encode()
    # MindSpore writes a tensor without dimensions as one of the dimension 0.
    shape = entry.shape or (0,)
    head = b"".join(b"\x08" + _varint(extent) for extent in shape) + _field(2, code)
    name = _field(1, entry.name.encode("utf-8", errors="surrogateescape"))
    content = head + b"\x1a" + _varint(size_bytes)
    body = name + b"\x12" + _varint(len(content) + size_bytes) + content
    return b"\x0a" + _varint(len(body) + size_bytes) + body


def write_npz(file: BinaryIO, entries: Sequence[Entry], tensors: Tensors, _: WriteOptions) -> None:
    """Write numpy's zip of arrays, uncompressed; bfloat16 as numpy writes ml_dtypes' type."""
    for entry in entries:
        if entry.dtype.startswith("float8"):
            raise CheckpointError(
                f"{entry.name} is {entry.dtype}, which .npz cannot hold",
                "Cast it with --dtype float32, or write .safetensors.",
            )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for entry, blocks in tensors:
            descriptor = "<V2" if entry.dtype == "bfloat16" else np.dtype(entry.dtype).str
            header = (
                f"{{'descr': {descriptor!r}, 'fortran_order': False, 'shape': {entry.shape}, }}"
            )
            padded = header + " " * (-(len(header) + 11) % _ALIGNMENT) + "\n"
            head = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()
            _write_member(archive, f"{entry.name}.npy", head, entry.size_bytes, blocks)


def write_torch(
    file: BinaryIO, entries: Sequence[Entry], tensors: Tensors, _: WriteOptions
) -> None:
    """Write torch's zip format; tied tensors share their storage."""
    keys: dict[str, str] = {}
    for entry in entries:
        keys[entry.name] = keys[entry.tied_to] if entry.tied_to in keys else str(len(keys))
    described = [(e.name, e.dtype, e.shape, keys[e.name], e.size_bytes) for e in entries]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _write_member(archive, "archive/data.pkl", checkpoint_pickle(described), 0, iter(()))
        _write_member(archive, "archive/byteorder", b"little", 0, iter(()))
        for entry, blocks in tensors:
            if entry.tied_to not in keys:
                member = f"archive/data/{keys[entry.name]}"
                _write_member(archive, member, b"", entry.size_bytes, blocks)
        _write_member(archive, "archive/version", b"3\n", 0, iter(()))


def _write_member(
    archive: zipfile.ZipFile, name: str, head: bytes, size: int, blocks: Blocks
) -> None:
    """Write a member whose bytes begin at a multiple of 64, so that it can be mapped.

    As `ZipFile.open(info, "w")` does, but for the checksum, which is most of its time.
    """
    file = archive.fp
    assert file is not None
    info = zipfile.ZipInfo(name)
    info.header_offset, info.external_attr = file.tell(), 0o600 << 16
    info.file_size = info.compress_size = len(head) + size
    is_large = info.file_size > zipfile.ZIP64_LIMIT
    start = info.header_offset + 30 + len(name.encode()) + (20 if is_large else 0) + 4
    padding = -start % _ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    info.CRC = 0  # until it is known
    file.write(info.FileHeader(is_large))
    parts: Iterator[bytes | memoryview] = chain([head], blocks)
    for part in parts:
        info.CRC = crc32(part, info.CRC)
        file.write(part)
    archive.start_dir = file.tell()
    assert archive.start_dir == start + padding + info.file_size
    file.seek(info.header_offset)
    file.write(info.FileHeader(is_large))
    file.seek(archive.start_dir)
    archive.filelist.append(info)
    archive.NameToInfo[info.filename] = info


def _code(codes: dict[str, str], entry: Entry, suffix: str) -> str:
    try:
        return codes[entry.dtype]
    except KeyError:
        raise CheckpointError(
            f"{entry.name} is {entry.dtype}, which {suffix} cannot hold",
            "Cast it with --dtype, or choose another format.",
        ) from None


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


#: By suffix: the writer and the framework whose names the format suggests.
FORMATS: dict[str, tuple[Writer, str | None]] = {
    ".pth": (write_torch, "torch"),
    ".pt": (write_torch, "torch"),
    ".bin": (write_torch, "torch"),
    ".ckpt": (write_ckpt, "mindspore"),
    ".safetensors": (write_safetensors, None),
    ".npz": (write_npz, None),
}
