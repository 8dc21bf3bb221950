"""Writers of checkpoints: the table first, then one tensor after the other."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from isograd.checkpoints.base import RawTensor
from isograd.checkpoints.mindspore_file import CODES as MINDSPORE_CODES
from isograd.checkpoints.safetensors_file import CODES as SAFETENSORS_CODES
from isograd.errors import CheckpointError
from isograd.tensors import Array
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


Tensors = Iterator[tuple[Entry, RawTensor]]
Writer = Callable[[BinaryIO, Sequence[Entry], Tensors], None]


def bytes_of(bits: Array) -> memoryview:
    """The bytes of an array in C order, without a copy where it is so already."""
    flat = np.ascontiguousarray(bits).reshape(-1)
    return flat.view(np.uint8).data if flat.size else memoryview(b"")


def write_safetensors(file: BinaryIO, entries: Sequence[Entry], tensors: Tensors) -> None:
    """Write the safetensors layout."""
    header: dict[str, object] = {}
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
    for _, tensor in tensors:
        file.write(bytes_of(tensor.bits))


def write_ckpt(file: BinaryIO, entries: Sequence[Entry], tensors: Tensors) -> None:
    """Write MindSpore's protobuf; large tensors in several records of the same name."""
    for entry in entries:
        if entry.dtype in _MINDSPORE_REFUSES:
            raise CheckpointError(
                f"{entry.name} is {entry.dtype}, which mindspore.load_checkpoint does not read",
                "Cast it with --dtype, or write .safetensors.",
            )
    for entry, tensor in tensors:
        code = _code(MINDSPORE_CODES, entry, ".ckpt").encode()
        data = bytes_of(tensor.bits)
        # MindSpore writes a tensor without dimensions as one of the dimension 0.
        shape = entry.shape or (0,)
        head = b"".join(b"\x08" + _varint(extent) for extent in shape) + _field(2, code)
        name = _field(1, entry.name.encode("utf-8", errors="surrogateescape"))
        for start in range(0, max(1, len(data)), RECORD_BYTES):
            part = data[start : start + RECORD_BYTES]
            content = head + b"\x1a" + _varint(len(part))
            size = len(content) + len(part)
            body = name + b"\x12" + _varint(size) + content
            file.write(b"\x0a" + _varint(len(body) + len(part)) + body)
            file.write(part)


def write_npz(file: BinaryIO, entries: Sequence[Entry], tensors: Tensors) -> None:
    """Write numpy's zip of arrays, uncompressed; bfloat16 has no place there."""
    for entry in entries:
        if entry.dtype.startswith(("bfloat", "float8")):
            raise CheckpointError(
                f"{entry.name} is {entry.dtype}, which .npz cannot hold",
                "Cast it with --dtype float32, or write .safetensors.",
            )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for entry, tensor in tensors:
            descriptor = np.dtype(entry.dtype).str
            header = (
                f"{{'descr': {descriptor!r}, 'fortran_order': False, 'shape': {entry.shape}, }}"
            )
            padded = header + " " * (-(len(header) + 11) % _ALIGNMENT) + "\n"
            head = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()
            _write_member(archive, f"{entry.name}.npy", head, bytes_of(tensor.bits))


def write_torch(file: BinaryIO, entries: Sequence[Entry], tensors: Tensors) -> None:
    """Write torch's zip format; tied tensors share their storage."""
    keys: dict[str, str] = {}
    for entry in entries:
        keys[entry.name] = keys[entry.tied_to] if entry.tied_to in keys else str(len(keys))
    described = [(e.name, e.dtype, e.shape, keys[e.name], e.size_bytes) for e in entries]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _write_member(archive, "archive/data.pkl", checkpoint_pickle(described), memoryview(b""))
        _write_member(archive, "archive/byteorder", b"little", memoryview(b""))
        for entry, tensor in tensors:
            if entry.tied_to not in keys:
                member = f"archive/data/{keys[entry.name]}"
                _write_member(archive, member, b"", bytes_of(tensor.bits))
        _write_member(archive, "archive/version", b"3\n", memoryview(b""))


def _write_member(archive: zipfile.ZipFile, name: str, head: bytes, data: memoryview) -> None:
    """Write a member whose bytes begin at a multiple of 64, so that it can be mapped."""
    info = zipfile.ZipInfo(name)
    info.file_size = len(head) + len(data)
    is_large = info.file_size * 1.05 > zipfile.ZIP64_LIMIT
    assert archive.fp is not None
    start = archive.fp.tell() + 30 + len(name.encode()) + (20 if is_large else 0) + 4
    padding = -start % _ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    with archive.open(info, "w") as member:
        member.write(head)
        for begin in range(0, len(data), 1 << 24):
            member.write(data[begin : begin + (1 << 24)])


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
