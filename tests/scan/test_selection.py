"""Which files a scan reads, and which findings it reports."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.scan.support import Scanner

from isograd.cli import main
from isograd.scan.run import scan_path
from isograd.scan.selection import Selection, git_ignored, ignored_lines

CODE = "import torch\nimport torch.nn as nn\nnn.Conv2d(3, 30, 3)\ntorch.igamma(1, 2)\n"


def _codes(scanner: Scanner, selection: Selection) -> set[str]:
    report = scan_path(scanner.folder, knowledge=scanner.knowledge, selection=selection)
    found = {hazard.code for scan in report.files for hazard in scan.hazards}
    return found | {
        use.answer.api
        for scan in report.files
        for use in scan.uses
        if use.answer.status != "supported"
    }


ALL = {"torch.nn.Conv2d", "torch.igamma", "ascend-channels", "ascend-float16"}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        pytest.param(Selection(), ALL, id="everything"),
        pytest.param(Selection(ignore=("api-differs",)), ALL - {"torch.nn.Conv2d"}, id="a code"),
        pytest.param(Selection(ignore=("torch.nn.*",)), ALL - {"torch.nn.Conv2d"}, id="an API"),
        pytest.param(Selection(select=("ascend-c*",)), {"ascend-channels"}, id="only hazards"),
        pytest.param(
            Selection(select=("api-*",), ignore=("torch.igamma",)), {"torch.nn.Conv2d"}, id="both"
        ),
    ],
)
def test_options_choose_findings(
    scanner: Scanner, selection: Selection, expected: set[str]
) -> None:
    scanner.write(main=CODE)
    assert _codes(scanner, selection) == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        pytest.param("# isograd: ignore", {"torch.igamma"}, id="everything of the line"),
        pytest.param("# isograd: ignore[api-differs]", ALL - {"torch.nn.Conv2d"}, id="one code"),
        pytest.param("# isograd: ignore[api-*, ascend-*]", {"torch.igamma"}, id="two globs"),
        pytest.param("# isograd: ignore[hook]", ALL, id="another code"),
        pytest.param("# isograd ignores this", ALL, id="no such comment"),
    ],
)
def test_a_comment_ignores_the_findings_of_its_line(
    scanner: Scanner, comment: str, expected: set[str]
) -> None:
    scanner.write(main=CODE.replace("30, 3)", f"30, 3)  {comment}"))
    assert _codes(scanner, Selection()) == expected


def test_ignored_findings_are_counted_and_do_not_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "net.py"
    file.write_text("import torch.nn as nn\nnet = nn.DataParallel(n)  # isograd: ignore\n")
    assert main(["scan", str(file)]) == 0
    assert "2 findings ignored by comments or options" in capsys.readouterr().out
    assert main(["scan", str(file)]) == 0, "the scan that is remembered ignores them, too"


@pytest.mark.parametrize(
    "options",
    [["--select", "torch.nn.Dropout"], ["--ignore", "api-*"], ["--ignore", "*"]],
    ids=["select", "ignore an API", "ignore all"],
)
def test_options_choose_what_is_shown_and_no_shares(
    scanner: Scanner, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    scanner.write(main=CODE + "nn.DataParallel(nn.Linear(1, 1))\n")
    main(["scan", str(scanner.folder), "--quiet"])
    whole = capsys.readouterr().out.strip()
    assert not whole.startswith("100.0%")
    main(["scan", str(scanner.folder), "--quiet", *options])
    chosen = capsys.readouterr().out.strip()
    assert chosen.startswith(whole.rstrip("."))
    assert "findings ignored by comments or options." in chosen


def test_comments_of_a_notebook_count_by_cell() -> None:
    assert ignored_lines("x\ny  # isograd: ignore[a, b]\n") == {2: ("a", "b")}


@pytest.mark.parametrize(
    ("pattern", "left_out"),
    [
        pytest.param("tests", {"tests/deep/x.py"}, id="a folder by name"),
        pytest.param("tests/", {"tests/deep/x.py"}, id="with a slash"),
        pytest.param("x.py", {"tests/deep/x.py"}, id="a file by name"),
        pytest.param("tests/*/x.py", {"tests/deep/x.py"}, id="a path"),
        pytest.param("*.py", {"tests/deep/x.py", "main.py"}, id="all"),
    ],
)
def test_exclude_leaves_files_out(scanner: Scanner, pattern: str, left_out: set[str]) -> None:
    scanner.write(main=CODE, tests__deep__x=CODE)
    scanner.write(kept=CODE) if pattern != "*.py" else (scanner.folder / "a.ipynb").write_text(
        '{"cells": []}'
    )
    selection = Selection(exclude=(pattern,))
    report = scan_path(scanner.folder, knowledge=scanner.knowledge, selection=selection)
    read = {scan.file for scan in report.files}
    assert {"tests/deep/x.py", "main.py"} - read == left_out
    assert report.skipped


@pytest.fixture
def repository(scanner: Scanner) -> Path:
    """A git repository with a tracked file, an ignored one, and a tracked one that is ignored."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    scanner.write(main=CODE, data__big=CODE, data__tracked=CODE, build__generated=CODE)
    (scanner.folder / ".gitignore").write_text("build/\ndata/*\n")
    for command in (["init", "-q"], ["add", "main.py"], ["add", "-f", "data/tracked.py"]):
        subprocess.run(["git", "-C", str(scanner.folder), *command], check=True)
    return scanner.folder


def test_what_git_ignores_is_skipped_but_for_what_it_tracks(
    repository: Path, scanner: Scanner
) -> None:
    report = scanner.scan()
    assert {scan.file for scan in report.files} == {"main.py", "data/tracked.py"}
    assert set(report.skipped) == {"build", "data/big.py"}


def test_with_ignored_reads_everything(repository: Path, scanner: Scanner) -> None:
    selection = Selection(with_ignored=True)
    report = scan_path(repository, knowledge=scanner.knowledge, selection=selection)
    assert len(report.files) == 4


def test_a_folder_that_is_named_is_read_though_git_ignores_it(
    repository: Path, scanner: Scanner
) -> None:
    report = scan_path(repository / "build", knowledge=scanner.knowledge)
    assert [scan.file for scan in report.files] == ["generated.py"]


def test_a_repository_runs_no_program_of_its_own(repository: Path, tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    (repository / ".git" / "config").write_text(
        (repository / ".git" / "config").read_text() + f'[core]\n\tfsmonitor = "touch {proof}"\n'
    )
    assert "build" in git_ignored(repository)
    assert not proof.exists()
