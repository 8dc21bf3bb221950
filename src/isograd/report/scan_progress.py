"""How far a scan is: one line that is rewritten on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

from isograd.report.wording import printable

#: Seconds before the first notice, and between two where there is no terminal.
_PATIENCE_S = 0.5
_PLAIN_S = 10.0
_LONGEST = 78


class ScanLine:
    """A listener to a scan; use it as a context manager, which clears the line."""

    def __init__(self, stream: TextIO, verb: str = "scan") -> None:
        self._stream, self._verb = stream, verb
        self._is_terminal = stream.isatty()
        self._next_s = time.monotonic() + (_PATIENCE_S if self._is_terminal else _PLAIN_S)
        self._is_drawn = False

    def __enter__(self) -> ScanLine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_drawn:
            self._write("\r\x1b[K")

    def advance(self, done: int, total: int, what: str) -> None:
        """`done` of `total` files were scanned."""
        now = time.monotonic()
        if now < self._next_s:
            return
        line = f"{self._verb}  {done:,} / {total:,}  {printable(what)}"
        if self._is_terminal:
            self._next_s = now + 0.1
            self._is_drawn = True
            encoding = self._stream.encoding or "utf-8"
            shown = line[:_LONGEST].encode(encoding, "replace").decode(encoding)
            self._write(f"\r\x1b[K{shown}")
        else:
            self._next_s = now + _PLAIN_S
            self._write(line + "\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._is_drawn = False
