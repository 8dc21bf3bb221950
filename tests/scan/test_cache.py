"""An unchanged project is not read again; anything else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isograd.scan import cache
from isograd.scan.model import ScanReport
from isograd.scan.run import scan_path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text(
        "import torch\nx = torch.ones(2)\nif x.sum() > 0:\n    x.add_(1)\nprint(x)\n"
    )
    (folder / "bad.py").write_text("def\n")
    return folder


def _same(first: ScanReport, second: ScanReport) -> bool:
    return (first.files, first.problems, first.mindspore) == (
        second.files, second.problems, second.mindspore,
    )  # fmt: skip


def test_the_second_scan_is_the_first(project: Path) -> None:
    first, second = scan_path(project), scan_path(project)
    assert not first.is_cached
    assert second.is_cached
    assert first.files[0].uses
    assert first.files[0].hazards
    assert _same(first, second)


@pytest.mark.parametrize("change", ["edit", "add", "remove", "touch"])
def test_a_change_is_seen(project: Path, change: str) -> None:
    scan_path(project)
    path = project / "a.py"
    if change == "edit":
        path.write_text(path.read_text() + "torch.cat([])\n")
    elif change == "add":
        (project / "b.py").write_text("import torch\n")
    elif change == "remove":
        (project / "bad.py").unlink()
    else:
        os.utime(path, (1, 1))
    report = scan_path(project)
    assert not report.is_cached
    assert _same(report, scan_path(project, use_cache=False))


@pytest.mark.parametrize("content", ["", "{", "null", "[]", '{"key": 1}', "\x00\xff"])
def test_a_broken_cache_is_no_cache(project: Path, content: str) -> None:
    first = scan_path(project)
    (kept,) = cache.folder().glob("*.json")
    kept.write_text(content)
    second = scan_path(project)
    assert not second.is_cached
    assert _same(first, second)


def test_a_cache_with_the_key_but_other_contents(project: Path) -> None:
    scan_path(project)
    (kept,) = cache.folder().glob("*.json")
    kept.write_text(kept.read_text().replace('"files":[[', '"files":[[0,'))
    assert not scan_path(project).is_cached


def test_another_version_scans_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan_path(project)
    monkeypatch.setattr(cache, "__version__", "another")
    assert not scan_path(project).is_cached


def test_a_folder_that_cannot_be_written_is_no_error(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert not scan_path(project).is_cached
    assert not scan_path(project).is_cached


def test_old_scans_are_forgotten(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_PATHS", 2)
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_text("")
        scan_path(tmp_path / name)
    assert len(list(cache.folder().glob("*.json"))) == 2
