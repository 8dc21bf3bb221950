"""How far a walk over files is, with the file at hand."""

from __future__ import annotations

from typing import TextIO

from isograd.report.progress_line import ProgressLine
from isograd.report.wording import printable


class ScanLine(ProgressLine):
    """A listener to a scan or a conversion."""

    def __init__(self, stream: TextIO, verb: str = "scan") -> None:
        super().__init__(stream)
        self._verb = verb

    def advance(self, done: int, total: int, what: str) -> None:
        """`done` of `total` files are done."""
        if self.due_s() is not None:
            self.draw(f"{self._verb}  {done:,} / {total:,}  {printable(what)}")
