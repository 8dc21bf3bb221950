"""The events of a Chrome trace in blocks of whole events, in bounded memory.

JSON cannot be cut at any `},{`, because one may stand inside of an event or of a string. A block is
cut at the last place that looks like a border and decoded; a decoder accepts a list only if all
its brackets close, so a wrong cut cannot pass. Where that fails, the depth of every byte is
counted, which is slower and exact.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from isograd.errors import ProfileError

Decoded = TypeVar("Decoded")

BLOCK_BYTES = 8 << 20
#: An event larger than this is refused: no profiler writes one.
EVENT_BYTES = 32 << 20
_HEAD_BYTES = 64 << 20
#: `"traceEvents": [` is shorter than this, so that no block cuts it in two unseen.
_OVERLAP = 4096
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_TAIL_BYTES = 4096


class Blocks:
    """Iterates over decoded blocks; afterwards `is_complete` and `rest` say how the file ended."""

    def __init__(self, path: Path, decode: Callable[[bytes], Decoded]) -> None:
        self.path = path
        self.is_complete = False
        self.bytes_read = 0
        self.head = b""
        self._decode = decode

    def __iter__(self) -> Iterator[Any]:
        with open_bytes(self.path) as stream:
            rest = self._skip_head(stream)
            while True:
                more = _read(stream, BLOCK_BYTES)
                self.bytes_read += len(more)
                block = rest + more
                if not more:
                    yield from self._last(block)
                    return
                decoded, rest, is_end = self._cut(block)
                if decoded is not None:
                    yield decoded
                if is_end:
                    self.is_complete = True
                    return
                self._check_start(rest)
                if len(rest) > EVENT_BYTES:
                    raise ProfileError(
                        f"{self.path}: an event is larger than {EVENT_BYTES >> 20} MiB",
                        "Give a Chrome trace as a profiler wrote it.",
                    )

    def _check_start(self, rest: bytes) -> None:
        """What follows the decoded events must begin an event; raise ProfileError else."""
        first = rest[:1]
        if first not in (b"", b"{", b"]"):
            at = self.bytes_read - len(rest)
            raise ProfileError(
                f"{self.path}: an event was expected at byte {at}, and {first!r} stands there",
                "Write the trace again; a truncated end alone would have been accepted.",
            )

    def _skip_head(self, stream: BufferedIOBase) -> bytes:
        head = b""
        while len(head) < _HEAD_BYTES:
            more = _read(stream, 1 << 20)
            self.bytes_read += len(more)
            searched = max(len(head) - _OVERLAP, 0)
            head += more
            first = head[:_OVERLAP].lstrip()[:1]
            if first == b"[":
                return head.lstrip()[1:]
            if first not in (b"{", b""):
                break
            if found := _ARRAY.search(head, searched):
                self.head = head[: found.start()]
                return head[found.end() :]
            if not more:
                break
        raise ProfileError(
            f"{self.path}: it holds no list `traceEvents`", "Give a Chrome trace of a profiler."
        )

    def _cut(self, block: bytes) -> tuple[Any, bytes, bool]:
        """Decoded whole events, the bytes after them, and whether the list ended."""
        if not block.strip():
            return None, b"", False
        borders = [found.start() + 1 for found in _BORDER.finditer(block[-_TAIL_BYTES:])]
        if borders:
            cut = max(len(block) - _TAIL_BYTES, 0) + borders[-1]
            try:
                return self._decode(b"[" + block[:cut] + b"]"), _after_comma(block[cut:]), False
            except ValueError:
                pass
        return self._cut_exactly(block)

    def _cut_exactly(self, block: bytes) -> tuple[Any, bytes, bool]:
        ends, closed = _event_ends(block)
        if not ends.size:
            rest = b"" if closed is not None else block.lstrip()
            return None, rest, closed is not None
        cut = int(ends[-1]) + 1
        try:
            decoded = self._decode(b"[" + block[:cut] + b"]")
        except ValueError as error:
            raise ProfileError(
                f"{self.path}: byte {self.bytes_read - len(block)} and on is not JSON: {error}",
                "Write the trace again; a truncated end alone would have been accepted.",
            ) from error
        return decoded, _after_comma(block[cut:]), closed is not None

    def _last(self, block: bytes) -> Iterator[Any]:
        if not block.strip().strip(b","):
            return
        decoded, _, self.is_complete = self._cut_exactly(block)
        if decoded is not None:
            yield decoded


def open_bytes(path: Path) -> BufferedIOBase:
    """Open a file, decompressed where its first bytes say gzip; raise ProfileError."""
    try:
        stream = path.open("rb")
        is_gzip = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
    except OSError as error:
        raise ProfileError(
            f"{path} cannot be read: {error.strerror or error}", "Give a file that exists."
        ) from error
    if not is_gzip:
        return stream
    stream.close()
    return gzip.GzipFile(path, "rb")


def _read(stream: BufferedIOBase, size: int) -> bytes:
    """Bytes, fewer where a compressed file was cut: what stands before the cut is read."""
    parts, left = [], size
    try:
        while left > 0 and (more := stream.read1(min(left, 1 << 20))):
            parts.append(more)
            left -= len(more)
    except (OSError, EOFError, zlib.error):
        pass
    return b"".join(parts)


def _after_comma(rest: bytes) -> bytes:
    rest = rest.lstrip()
    return rest[1:].lstrip() if rest[:1] == b"," else rest


def _event_ends(block: bytes) -> tuple[npt.NDArray[np.int64], int | None]:
    """Where each event at depth 0 ends, and where the list that holds them closes."""
    data = np.frombuffer(block, dtype=np.uint8)
    inside = _inside_strings(data)
    opens = ((data == 0x7B) | (data == 0x5B)) & ~inside
    closes = ((data == 0x7D) | (data == 0x5D)) & ~inside
    depth = np.cumsum(opens.astype(np.int32) - closes.astype(np.int32), dtype=np.int32)
    beyond = np.flatnonzero(depth < 0)
    closed = int(beyond[0]) if beyond.size else None
    ends = np.flatnonzero(closes & (depth == 0))
    return ends if closed is None else ends[ends < closed], closed


def _inside_strings(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    quotes = np.flatnonzero(data == 0x22)
    if quotes.size and (data == 0x5C).any():
        quotes = quotes[~_is_escaped(data, quotes)]
    toggles = np.zeros(data.size, dtype=np.int8)
    toggles[quotes] = 1
    return np.asarray(np.cumsum(toggles, dtype=np.int64) % 2 == 1)


def _is_escaped(
    data: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Whether an odd number of backslashes stands before each quote."""
    is_slash = data == 0x5C
    position = np.arange(data.size)
    last_other = np.maximum.accumulate(np.where(is_slash, -1, position))
    before = np.maximum(quotes - 1, 0)
    run = np.where(quotes > 0, before - last_other[before], 0)
    return np.asarray(run % 2 == 1)
