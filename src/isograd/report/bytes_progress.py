"""How far a pass over bytes is, its rate and the time left."""

from __future__ import annotations

from typing import TextIO

from isograd.report.progress_line import ProgressLine, time_left


class BytesLine(ProgressLine):
    """A listener to a pass over bytes."""

    def __init__(self, stream: TextIO, verb: str) -> None:
        super().__init__(stream)
        self._verb = verb

    def advance(self, done_bytes: int, total_bytes: int) -> None:
        """So many bytes of all are done."""
        elapsed_s = self.due_s()
        if elapsed_s is not None:
            self.draw(bytes_text(self._verb, done_bytes, total_bytes, elapsed_s))


def bytes_text(verb: str, done_bytes: int, total_bytes: int, elapsed_s: float) -> str:
    """How much is done, at which rate, and the time that is left at this rate."""
    rate = done_bytes / elapsed_s if elapsed_s > 0 else 0.0
    left = time_left(done_bytes, total_bytes, rate)
    return (
        f"{verb}  {done_bytes / 1e9:.2f} / {total_bytes / 1e9:.2f} GB, {rate / 1e9:.2f} GB/s{left}"
    )
