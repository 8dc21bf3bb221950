"""A zip file, mapped: stored members are views of the map, others are inflated within bounds."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from pathlib import Path

from isograd.checkpoints.base import drop_pages, map_file
from isograd.checkpoints.checksum import crc32
from isograd.errors import CheckpointError

#: No deflate stream holds more than this many bytes for each of its own.
MAX_RATIO = 1032
#: Bytes that are read for a checksum before their pages are let go.
_CHECKED_BYTES = 1 << 26
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_MALFORMED = (
    zipfile.BadZipFile,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OverflowError,
    IndexError,
    struct.error,
    zlib.error,
)
_ADVICE = "The file is damaged; copy it again."


def member_names(path: Path) -> tuple[str, ...]:
    """Names of the members; CheckpointError where the directory cannot be read."""
    return ZipMap(path).names()


class ZipMap:
    """The members of a zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = map_file(path)
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
        except _MALFORMED as error:
            raise self._refusal(f"is no complete zip file ({error})") from error
        self._members = {member.filename: member for member in members}
        if len(self._members) != len(members):
            raise self._refusal("holds a member twice")

    def names(self) -> tuple[str, ...]:
        """Names in the order of the directory."""
        return tuple(self._members)

    def size_bytes(self, name: str) -> int:
        """The size of a member after inflating, as the directory announces it."""
        return self._member(name).file_size

    def is_stored(self, name: str) -> bool:
        """Whether a member lies there uncompressed."""
        return self._member(name).compress_type == zipfile.ZIP_STORED

    def member(self, name: str, most_bytes: int | None = None) -> memoryview:
        """The bytes of a member: a view where it is stored, else inflated, at most so many."""
        info = self._member(name)
        start = self._data_start(info)
        if start + info.compress_size > len(self._data):
            raise self._refusal(f"member {name!r} reaches beyond the end of the file")
        packed = self._data[start : start + info.compress_size]
        if most_bytes is not None and info.file_size > most_bytes:
            raise self._refusal(f"member {name!r} announces {info.file_size:,} bytes")
        if info.compress_type == zipfile.ZIP_STORED:
            if info.compress_size != info.file_size:
                raise self._refusal(f"member {name!r} has two different sizes")
            return packed
        if info.compress_type != zipfile.ZIP_DEFLATED:
            raise self._refusal(f"member {name!r} is compressed by an unknown method")
        return self._inflate(name, packed, info.file_size)

    def prefix(self, name: str, count: int) -> bytes:
        """The first bytes of a member, without inflating the rest."""
        info = self._member(name)
        start = self._data_start(info)
        packed = self._data[start : start + info.compress_size]
        if info.compress_type == zipfile.ZIP_STORED:
            return bytes(packed[:count])
        if info.compress_type != zipfile.ZIP_DEFLATED:
            raise self._refusal(f"member {name!r} is compressed by an unknown method")
        try:
            return zlib.decompressobj(-15).decompress(packed[: 16 * count + 1024], count)
        except zlib.error as error:
            raise self._refusal(f"member {name!r} cannot be inflated ({error})") from error

    def verify(self) -> None:
        """Compare every member with its CRC; a CRC of 0 means that none was written."""
        for name, info in self._members.items():
            if info.CRC and not name.endswith("/"):
                content = self.member(name)
                checksum = 0
                for start in range(0, len(content), _CHECKED_BYTES):
                    checksum = crc32(content[start : start + _CHECKED_BYTES], checksum)
                    self.forget()
                if checksum != info.CRC:
                    raise self._refusal(f"member {name!r} does not fit its checksum")

    def _member(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._members[name]
        except KeyError:
            raise self._refusal(f"has no member {name!r}") from None

    def _data_start(self, info: zipfile.ZipInfo) -> int:
        """Where a member's bytes begin, by its local header."""
        offset = info.header_offset
        if offset < 0 or offset + _LOCAL_HEADER.size > len(self._data) or info.flag_bits & 1:
            raise self._refusal(f"member {info.filename!r} is encrypted or out of the file")
        fields = _LOCAL_HEADER.unpack_from(self._data, offset)
        if fields[0] != b"PK\x03\x04" or fields[3] != info.compress_type:
            raise self._refusal(f"member {info.filename!r} has no local header that fits")
        return offset + _LOCAL_HEADER.size + int(fields[9]) + int(fields[10])

    def _inflate(self, name: str, packed: memoryview, size: int) -> memoryview:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if size > MAX_RATIO * len(packed) + 64 or size > memory // 2:
            raise self._refusal(f"member {name!r} announces {size:,} bytes, more than it can hold")
        try:
            inflater = zlib.decompressobj(-15)
            found = inflater.decompress(packed, size + 1)
        except (zlib.error, MemoryError) as error:
            raise self._refusal(f"member {name!r} cannot be inflated ({error})") from error
        if len(found) != size:
            raise self._refusal(f"member {name!r} does not hold the {size:,} bytes it announces")
        return memoryview(found)

    def forget(self) -> None:
        """Let go of the pages that were read."""
        drop_pages(self._data)

    def stream(self, name: str, most_bytes: int) -> io.BytesIO:
        """A small member as a stream."""
        return io.BytesIO(bytes(self.member(name, most_bytes)))

    def _refusal(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.path}: {what}", _ADVICE)
