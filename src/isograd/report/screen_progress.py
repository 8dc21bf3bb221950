"""Progress on standard error: one live line on a terminal, now and then a plain line elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from isograd.report.words import printable

#: Seconds before the live line appears, and between two lines where there is no terminal.
_PATIENCE_S = 0.5
_PLAIN_S = 10.0


class ScreenProgress:
    """A listener that draws what it hears; use it as a context manager, which clears its line."""

    def __init__(self, stream: TextIO, verb: str) -> None:
        self._console = Console(file=stream, markup=False, highlight=False, emoji=False)
        self._verb = verb
        self._live: Live | None = None
        self._began_s = self._stage_began_s = time.monotonic()
        self._next_s = self._began_s + _PLAIN_S
        self._stage = ""
        self._done = (0, 0, "", "")

    def __enter__(self) -> ScreenProgress:
        self._began_s = self._stage_began_s = time.monotonic()
        self._next_s = self._began_s + _PLAIN_S
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._drawn,
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

    def stage(self, stage: str) -> None:
        """A stage begins; where there is no terminal, print it."""
        self._stage = printable(str(getattr(stage, "value", stage)))
        self._stage_began_s = time.monotonic()
        self._done = (0, 0, "", "")
        if self._live is None:
            self._print(f"{self._stage} …")

    def advance(self, done: int, total: int, what: str = "", unit: str = "") -> None:
        """`done` of `total` are finished; unit "bytes" is drawn in GB, any other as it is."""
        self._done = (done, total, what, unit)
        if self._live is None and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _PLAIN_S
            self._print(self._text())

    def note(self, text: str) -> None:
        """Print something that a person should know above the live line."""
        self._print(printable(text))

    def _print(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _drawn(self) -> Text:
        is_early = time.monotonic() - self._began_s < _PATIENCE_S
        line = Text("" if is_early else self._text(), no_wrap=True)
        line.overflow = "ellipsis"
        return line

    def _text(self) -> str:
        now_s = time.monotonic()
        head = f"{self._verb} {self._stage}".strip()
        position = position_text(*self._done, now_s - self._stage_began_s)
        return f"{head:<18} {now_s - self._began_s:>6.1f} s  {position}".rstrip()


def position_text(done: int, total: int, what: str, unit: str, elapsed_s: float) -> str:
    """How much is done, its share, the rate of bytes, and the time left at this pace."""
    if not total:
        return printable(what)
    left = ""
    if 0 < done < total and elapsed_s > 0:
        left = f", {elapsed_s * (total - done) / done:,.0f} s left"
    share = f"{min(1.0, done / total):.0%}".replace("%", " %")
    if unit == "bytes":
        rate = f", {done / elapsed_s / 1e9:.2f} GB/s" if elapsed_s > 0 else ""
        counted = f"{done / 1e9:.2f} / {total / 1e9:.2f} GB{rate}"
    else:
        counted = f"{done:,} / {total:,}{' ' + unit if unit else ''}"
    return f"{share}  {counted}{left}  {printable(what)}".rstrip()
