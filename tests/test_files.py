"""Output files appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isograd.errors import UsageError
from isograd.files import prepare_folder, require_writable, write_bytes, write_text


def test_text_is_written_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "× \ud800")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "× \\ud800"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UsageError, match=r"cannot be written: no space left on device\. Give"):
        write_bytes(path, b"new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_mode_and_link_are_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "x")
    finally:
        os.umask(umask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_the_check_leaves_nothing_behind(tmp_path: Path) -> None:
    require_writable(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_made_or_must_be_empty(tmp_path: Path) -> None:
    prepare_folder(tmp_path / "a" / "b")
    prepare_folder(tmp_path / "a" / "b")
    with pytest.raises(UsageError, match="is not empty"):
        prepare_folder(tmp_path)
