"""`isograd scan`: outputs, exit statuses and wrong calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isograd.cli import main

CLEAN = "x = 1\n"
HAZARD = "import torch.nn as nn\nnet = nn.DataParallel(n)\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "net.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [
        (CLEAN, (), 0),
        (HAZARD, (), 1),
        (HAZARD, ("--fail-on", "hazard"), 1),
        (HAZARD, ("--fail-on", "missing", "--fail-on", "hazard"), 1),
        ("import torch.nn as nn\nnn.Conv2d(16, 16, 3)\n", ("--fail-on", "hazard"), 0),
        ("def\n", ("--fail-on", "missing"), 1),
    ],
)
def test_exit_status(tmp_path: Path, text: str, options: tuple[str, ...], status: int) -> None:
    assert main(["scan", str(_file(tmp_path, text)), *options]) == status


def test_all_outputs_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path, HAZARD)
    files = {kind: tmp_path / f"out.{kind}" for kind in ("csv", "sarif", "html")}
    options = [part for kind, file in files.items() for part in (f"--{kind}", str(file))]
    main(["scan", str(path), "--json", "-", *options])
    captured = capsys.readouterr()
    assert json.loads(captured.out)["schema"] == "isograd/scan/1"
    assert "supported" in captured.err
    assert all(file.stat().st_size > 100 for file in files.values())


def test_quiet_says_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["scan", str(_file(tmp_path, HAZARD)), "--quiet"])
    captured = capsys.readouterr()
    assert (captured.out.count("\n"), captured.err) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.py"], "nothing.py does not exist. Give a Python file, a notebook or a folder."),
        (["empty"], "there is no Python file and no notebook in empty."),
        (["net.py", "--html", "-"], "--html cannot write to standard output. Give a file's name."),
        (["net.py", "--json", "-", "--csv", "-"], "two reports go to standard output."),
        (["net.py", "--json", "net.py"], "net.py would be overwritten: it is named twice."),
        (["net.py", "--json", "no/such/x.json"], "no/such/x.json cannot be written"),
        (["net.py", "--fail-on", "all"], "Invalid value for '--fail-on'"),
    ],
)
def test_wrong_calls(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, CLEAN)
    (tmp_path / "empty").mkdir()
    assert main(["scan", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize("name", ["wheel.whl", "notes.txt"])
def test_a_file_that_is_no_python_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04 torch.nn.Conv2d")
    assert main(["scan", str(path)]) == 2
    assert "is no Python file and no notebook" in capsys.readouterr().err
