"""How far a pass over bytes is, its rate and the time left: one line on a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

#: Seconds before the first notice, and between two where there is no terminal.
_PATIENCE_S = 0.5
_PLAIN_S = 10.0


class BytesLine:
    """A listener to a pass over bytes; use it as a context manager, which clears the line."""

    def __init__(self, stream: TextIO, verb: str) -> None:
        self._stream, self._verb = stream, verb
        self._is_terminal = stream.isatty()
        self._started_s = time.monotonic()
        self._next_s = self._started_s + (_PATIENCE_S if self._is_terminal else _PLAIN_S)
        self._is_drawn = False

    def __enter__(self) -> BytesLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_drawn:
            self._write("\r\x1b[K")

    def advance(self, done_bytes: int, total_bytes: int) -> None:
        """So many bytes of all are done."""
        now = time.monotonic()
        if now < self._next_s:
            return
        line = bytes_text(self._verb, done_bytes, total_bytes, now - self._started_s)
        if self._is_terminal:
            self._next_s = now + 0.1
            self._is_drawn = True
            self._write(f"\r\x1b[K{line}")
        else:
            self._next_s = now + _PLAIN_S
            self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def bytes_text(verb: str, done_bytes: int, total_bytes: int, elapsed_s: float) -> str:
    """How much is done, at which rate, and the time that is left at this rate."""
    rate = done_bytes / elapsed_s if elapsed_s > 0 else 0.0
    left = f", {(total_bytes - done_bytes) / rate:,.0f} s left" if rate > 0 else ""
    return (
        f"{verb}  {done_bytes / 1e9:.2f} / {total_bytes / 1e9:.2f} GB, {rate / 1e9:.2f} GB/s{left}"
    )
