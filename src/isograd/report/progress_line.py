"""How far a long pass is: one line rewritten on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Self

#: Seconds before the first notice, and between two where there is no terminal.
_PATIENCE_S = 0.5
_PLAIN_S = 10.0
_LONGEST = 78


class ProgressLine:
    """A line to draw on; use it as a context manager, which clears it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._started_s = time.monotonic()
        self._next_s = self._started_s + (_PATIENCE_S if self._is_terminal else _PLAIN_S)
        self._is_drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_drawn:
            self._write("\r\x1b[K")

    def due_s(self) -> float | None:
        """Seconds since the start where it is time for a notice, else None."""
        now = time.monotonic()
        return None if now < self._next_s else now - self._started_s

    def draw(self, line: str) -> None:
        """Show a line in place of the last one."""
        if self._is_terminal:
            self._next_s = time.monotonic() + 0.1
            self._is_drawn = True
            encoding = self._stream.encoding or "utf-8"
            shown = line[:_LONGEST].encode(encoding, "replace").decode(encoding)
            self._write(f"\r\x1b[K{shown}")
        else:
            self._next_s = time.monotonic() + _PLAIN_S
            self._write(line + "\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._is_drawn = False


def time_left(done: int, total: int, rate: float) -> str:
    """What the rest takes at this rate, behind a comma; empty while no rate is known."""
    return f", {(total - done) / rate:,.0f} s left" if rate > 0 else ""
