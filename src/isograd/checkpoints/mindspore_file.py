"""MindSpore's .ckpt files, read by hand: protobuf of named tensors, with or without a checksum.

The file repeats field 1, one record for each parameter or for each part of a large one:
    1 { 1: name   2 { 1: dimension …   2: "Float32"   3: raw bytes } }
A parameter beyond 512 MiB is written in several records of the same name, whose bytes follow each
other.  With `crc_check=True`, the file ends in `crc_num` and ten digits or bytes.  Source:
mindspore/train/serialization.py and checkpoint.proto of MindSpore 2.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isograd.checkpoints.base import (
    IndexedSource,
    RawTensor,
    TensorInfo,
    drop_pages,
    map_file,
    size_in_bytes,
    view,
)
from isograd.checkpoints.checksum import crc32
from isograd.checkpoints.dtypes import holder
from isograd.checkpoints.protobuf import MalformedError, fields, varint

#: MindSpore's names of dtypes, by ours.
CODES = {
    "bool": "Bool",
    **{f"{s}int{b}": f"{'UI' if s else 'I'}nt{b}" for s in ("", "u") for b in (8, 16, 32, 64)},
    "float16": "Float16",
    "float32": "Float32",
    "float64": "Float64",
    "bfloat16": "BFloat16",
    "complex64": "Complex64",
    "complex128": "Complex128",
    "float8_e4m3fn": "Float8E4M3FN",
    "float8_e5m2": "Float8E5M2",
}
_DTYPES = {code: name for name, code in CODES.items()}
CRC_MARK = b"crc_num"
CRC_BYTES = 10
#: The dtype of a text, which is stored as numpy stores it: four bytes a character.
_TEXT = "str"
_MAX_TEXT_BYTES = 1 << 24
#: Bytes that are copied at a time, before their pages are let go.
COPIED_BYTES = 1 << 26


@dataclass(frozen=True)
class _Chunk:
    start: int
    size_bytes: int


class MindSporeFile(IndexedSource):
    """A checkpoint of MindSpore's, mapped into memory."""

    kind = "MindSpore checkpoint"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._data = map_file(path)
        self._end, self._crc = self._checksum()
        self._chunks: dict[str, list[_Chunk]] = {}
        self._texts: dict[str, str] = {}
        try:
            for start, end in _messages(self._data, 0, self._end, 1):
                self._register(start, end)
        except ValueError as error:
            raise self.refusal(f"is no complete MindSpore checkpoint ({error})") from error
        if not self._infos:
            raise self.refusal("holds no parameter")
        for info in self:
            held = sum(chunk.size_bytes for chunk in self._chunks[info.name])
            if held != info.size_bytes:
                raise self.refusal(
                    f"holds {held:,} bytes of {info.name!r}, whose shape {info.shape} and dtype "
                    f"{info.dtype} need {info.size_bytes:,}"
                )

    @property
    def metadata(self) -> Mapping[str, str]:
        """The texts that `save_checkpoint(append_dict=…)` put beside the parameters."""
        return self._texts

    def forget(self) -> None:
        drop_pages(self._data)

    def raw(self, name: str) -> RawTensor:
        return self._taken(name, aligned=True)

    def stored(self, name: str) -> RawTensor:
        return self._taken(name, aligned=False)

    def _taken(self, name: str, *, aligned: bool) -> RawTensor:
        info = self.info(name)
        chunks = self._chunks[name]
        if len(chunks) == 1:
            bits = view(self._data, chunks[0].start, info.dtype, info.shape, aligned=aligned)
            return RawTensor(bits, info.dtype)
        joined = np.empty(info.size_bytes, np.uint8)
        position = 0
        for chunk in chunks:
            for start in range(0, chunk.size_bytes, COPIED_BYTES):
                size = min(COPIED_BYTES, chunk.size_bytes - start)
                first = chunk.start + start
                joined[position : position + size] = np.frombuffer(
                    self._data[first : first + size], np.uint8
                )
                position += size
                self.forget()
        return RawTensor(joined.view(holder(info.dtype)).reshape(info.shape), info.dtype)

    def verify(self) -> bool:
        """Compare the checksum, where the file was written with one."""
        if self._crc is None:
            return False
        checksum = 0
        for start in range(0, self._end, COPIED_BYTES):
            end = min(self._end, start + COPIED_BYTES)
            checksum = crc32(self._data[start:end], checksum)
            self.forget()
        if checksum != self._crc:
            raise self.refusal("does not fit its checksum")
        return True

    def _checksum(self) -> tuple[int, int | None]:
        tail = bytes(self._data[-len(CRC_MARK) - CRC_BYTES :])
        if not tail.startswith(CRC_MARK):
            return len(self._data), None
        return len(self._data) - len(tail), int.from_bytes(tail[len(CRC_MARK) :], "big")

    def _register(self, start: int, end: int) -> None:
        name, tensor = None, None
        for number, kind, first, last in fields(self._data, start, end):
            if number == 1 and kind == 2:
                name = bytes(self._data[first:last]).decode("utf-8")
            elif number == 2 and kind == 2:
                tensor = (first, last)
            elif number == 3:
                raise MalformedError(f"{name!r} is a map parameter, which isograd does not read")
        if name is None or tensor is None:
            raise MalformedError("a record has no name or no tensor")
        shape, code, chunk = self._tensor(name, *tensor)
        if code == _TEXT:
            self._texts[name] = self._text(name, chunk)
            return
        dtype = _DTYPES[code]
        # save_checkpoint writes a tensor without dimensions as one of the dimension 0.
        if shape == (0,) and chunk.size_bytes == holder(dtype).itemsize:
            shape = ()
        if name in self._chunks:
            info = self.info(name)
            if (info.dtype, info.shape) != (dtype, shape):
                raise MalformedError(f"the parts of {name!r} disagree")
            self._chunks[name].append(chunk)
            return
        self.add(TensorInfo(name, dtype, shape, size_in_bytes(dtype, shape)))
        self._chunks[name] = [chunk]

    def _tensor(self, name: str, start: int, end: int) -> tuple[tuple[int, ...], str, _Chunk]:
        shape: list[int] = []
        code, chunk = "", _Chunk(0, 0)
        for number, kind, first, last in fields(self._data, start, end):
            if number == 1 and kind == 0:
                shape.append(first)
            elif number == 1 and kind == 2:
                while first < last:
                    extent, first = varint(self._data, first, last)
                    shape.append(extent)
                    if len(shape) > 64:
                        raise MalformedError(f"{name!r} has too many dimensions")
            elif number == 2 and kind == 2:
                code = bytes(self._data[first : min(last, first + 64)]).decode("utf-8")
            elif number == 3 and kind == 2:
                chunk = _Chunk(first, last - first)
        if code not in _DTYPES and code != _TEXT:
            raise MalformedError(f"{name!r} has the dtype {code!r}, which isograd does not know")
        return tuple(shape), code, chunk

    def _text(self, name: str, chunk: _Chunk) -> str:
        if chunk.size_bytes > _MAX_TEXT_BYTES or name in self._texts or name in self._infos:
            raise MalformedError(f"{name!r} is a text that is too long, or is there twice")
        found = bytes(self._data[chunk.start : chunk.start + chunk.size_bytes])
        return found.decode("utf-32-le").rstrip("\0")


def _messages(data: memoryview, start: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    for number, kind, first, last in fields(data, start, end):
        if number != wanted or kind != 2:
            raise MalformedError(f"byte {first:,} begins no parameter")
        yield first, last
