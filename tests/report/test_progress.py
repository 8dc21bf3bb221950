"""Progress where there is no terminal."""

from __future__ import annotations

from io import StringIO

from isograd.model import Stage
from isograd.progress import Progress, SilentProgress
from isograd.report.progress import ReportingProgress


def _run(progress: Progress) -> None:
    progress.stage(Stage.FORWARD)
    progress.advance(1, 3, "conv1")
    progress.note("careful with [red] \x1b names")


def test_one_line_per_stage_without_a_terminal() -> None:
    stream = StringIO()
    with ReportingProgress(stream) as progress:
        _run(progress)
    assert stream.getvalue() == "forward …\ncareful with [red] \\x1b names\n"


def test_the_live_line_shows_stage_position_and_time() -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with ReportingProgress(stream) as progress:
        _run(progress)
    shown = stream.getvalue()
    assert "forward" in shown
    assert "1 / 3  conv1" in shown


def test_silence() -> None:
    _run(SilentProgress())
