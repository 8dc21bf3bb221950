"""Progress on standard error: a live line on a terminal, a plain line per stage elsewhere."""

from __future__ import annotations

from io import StringIO

import pytest

from isograd.model import Stage
from isograd.progress import Progress, SilentProgress
from isograd.report.screen_progress import ScreenProgress, position_text


class Terminal(StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def _run(progress: Progress) -> None:
    progress.stage(Stage.FORWARD)
    progress.advance(1, 3, "conv1")
    progress.note("careful with [red] \x1b names")


def test_without_a_terminal_each_stage_and_note_has_one_line() -> None:
    stream = StringIO()
    with ScreenProgress(stream, "verify") as progress:
        _run(progress)
    assert stream.getvalue() == "forward …\ncareful with [red] \\x1b names\n"


def test_the_live_line_shows_verb_stage_position_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isograd.report.screen_progress._PATIENCE_S", 0.0)
    stream = Terminal()
    with ScreenProgress(stream, "verify") as progress:
        _run(progress)
    shown = stream.getvalue()
    assert "verify forward" in shown
    assert "33 %  1 / 3" in shown
    assert "conv1" in shown


def test_a_silent_listener_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    _run(SilentProgress())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        pytest.param((1, 4, "a.py", "files", 2.0), "25 %  1 / 4 files, 6 s left  a.py", id="count"),
        pytest.param(
            (500_000_000, 1_000_000_000, "", "bytes", 1.0),
            "50 %  0.50 / 1.00 GB, 0.50 GB/s, 1 s left",
            id="bytes",
        ),
        pytest.param((4, 4, "", "", 2.0), "100 %  4 / 4", id="finished"),
        pytest.param((0, 0, "starting", "", 2.0), "starting", id="nothing known"),
    ],
)
def test_the_position_says_share_and_time_left(
    position: tuple[int, int, str, str, float], expected: str
) -> None:
    assert position_text(*position) == expected
