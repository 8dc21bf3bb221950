"""Progress on standard error: one live line on a terminal, one plain line per stage elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from isograd.model import Stage
from isograd.report.wording import printable, seconds_text


class ReportingProgress:
    """A listener that draws what it hears; use it as a context manager."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, markup=False, highlight=False, emoji=False)
        self._live: Live | None = None
        self._started = time.monotonic()
        self._stage: Stage | None = None
        self._position = ""

    def __enter__(self) -> ReportingProgress:
        self._started = time.monotonic()
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._line,
                console=self._console,
                transient=True,
                refresh_per_second=8,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def stage(self, stage: Stage) -> None:
        """Show the stage; where there is no terminal, print it."""
        self._stage = stage
        self._position = ""
        if self._live is None:
            self._print(f"{stage.value} …")

    def advance(self, done: int, total: int, what: str) -> None:
        """Show the position within the stage; where there is no terminal, say nothing."""
        self._position = f"{done:,} / {total:,}  {printable(what)}"

    def note(self, text: str) -> None:
        """Print the note above the live line."""
        self._print(printable(text))

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _line(self) -> Text:
        stage = "starting" if self._stage is None else self._stage.value
        elapsed = seconds_text(time.monotonic() - self._started)
        line = Text(f"{stage:<10} {elapsed:>7} s  {self._position}", no_wrap=True)
        line.overflow = "ellipsis"
        return line
