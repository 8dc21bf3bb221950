"""How far a comparison is, its rate and the time left: one line on a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

#: Seconds before the first notice, and between two where there is no terminal.
_PATIENCE_S = 0.5
_PLAIN_S = 10.0


class CompareLine:
    """A listener to a comparison; use it as a context manager, which clears the line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._started_s = time.monotonic()
        self._next_s = self._started_s + (_PATIENCE_S if self._is_terminal else _PLAIN_S)
        self._is_drawn = False

    def __enter__(self) -> CompareLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_drawn:
            self._write("\r\x1b[K")

    def advance(self, done: int, total: int, done_bytes: int, total_bytes: int) -> None:
        """`done` of `total` pairs are compared."""
        now = time.monotonic()
        if now < self._next_s:
            return
        line = progress_text(done, total, done_bytes, total_bytes, now - self._started_s)
        if self._is_terminal:
            self._next_s = now + 0.1
            self._is_drawn = True
            self._write(f"\r\x1b[K{line}")
        else:
            self._next_s = now + _PLAIN_S
            self._write(line + "\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._is_drawn = False


def progress_text(
    done: int, total: int, done_bytes: int, total_bytes: int, elapsed_s: float
) -> str:
    """One line: pairs, rate, and the time that the rest takes at this rate."""
    rate = done_bytes / elapsed_s if elapsed_s > 0 else 0.0
    left = f", {(total_bytes - done_bytes) / rate:,.0f} s left" if rate > 0 else ""
    return f"compare  {done:,} / {total:,} pairs, {rate / 1e9:.2f} GB/s{left}"
