"""Edits of source files."""

from __future__ import annotations

from pathlib import Path

import pytest

from isograd.edits import SourceEdit, apply, diff, edited
from isograd.errors import UsageError

TEXT = "# größer\nx = ops.softmax(s, axis=-2)\ny = ops.stop_gradient(x)\n"


def softmax(path: Path) -> SourceEdit:
    return SourceEdit(str(path), 2, 4, "ops.softmax(s, axis=-2)", "ops.softmax(s, axis=-1)")


def stop(path: Path) -> SourceEdit:
    return SourceEdit(str(path), 3, 4, "ops.stop_gradient(x)", "x")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with two faults."""
    file = tmp_path / "net.py"
    file.write_bytes(TEXT.encode())
    return file


def test_edits_are_made_together_and_written(path: Path) -> None:
    assert apply([stop(path), softmax(path), stop(path)]) == (path,)
    assert path.read_text("utf-8") == "# größer\nx = ops.softmax(s, axis=-1)\ny = x\n"


def test_a_diff_shows_the_lines_and_writes_nothing(path: Path) -> None:
    shown = diff([softmax(path)])
    assert "-x = ops.softmax(s, axis=-2)\n+x = ops.softmax(s, axis=-1)\n" in shown
    assert path.read_text("utf-8") == TEXT


def test_columns_count_bytes() -> None:
    edit = SourceEdit("net.py", 1, len("größer = ".encode()), "f(x)", "x")
    assert edited("größer = f(x)\n", [edit]) == "größer = x\n"


def test_a_file_that_changed_is_left_alone(path: Path) -> None:
    path.write_text("# other\n\n\n", "utf-8")
    with pytest.raises(UsageError, match="no longer holds"):
        apply([softmax(path)])
    assert path.read_text("utf-8") == "# other\n\n\n"


def test_two_edits_of_one_place_are_refused(path: Path) -> None:
    other = SourceEdit(str(path), 2, 4, "ops.softmax(s, axis=-2)", "s")
    with pytest.raises(UsageError, match="two fixes change"):
        apply([softmax(path), other])


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        apply([softmax(tmp_path / "gone.py")])
