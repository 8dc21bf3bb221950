"""`[tool.isograd]` in pyproject.toml: what it chooses, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from isograd.cli import main

HAZARD = "import torch.nn as nn\nnet = nn.DataParallel(n)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a hazard in src/net.py and another in src/old/net.py."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("src/net.py", "src/old/net.py"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HAZARD)
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("settings", "options", "status", "files"),
    [
        pytest.param("", [], 1, 2, id="none"),
        pytest.param('[tool.isograd]\nexclude = ["old"]', [], 1, 1, id="exclude"),
        pytest.param('[tool.isograd]\nignore = ["data-parallel", "api-*"]', [], 0, 2, id="ignore"),
        pytest.param('[tool.isograd]\nignore = ["*"]', ["--ignore", "x"], 1, 2, id="option wins"),
        pytest.param('[tool.isograd.scan]\nselect = ["hook"]', [], 0, 2, id="of the verb"),
        pytest.param('[tool.isograd.convert]\nexclude = ["old"]', [], 1, 2, id="of another verb"),
        pytest.param("[tool.ruff]\nx = [", [], 1, 2, id="no section of isograd's"),
    ],
)
def test_settings_are_defaults_of_options(
    project: Path,
    settings: str,
    options: list[str],
    status: int,
    files: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (project / "pyproject.toml").write_text(settings)
    assert main(["scan", str(project / "src"), *options]) == status
    assert f"  {files} file" in capsys.readouterr().out


def test_convert_reads_its_own(project: Path, tmp_path: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.isograd.convert]\nexclude = ["old"]')
    assert main(["convert", str(project / "src"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert not (tmp_path / "out" / "old").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            "[tool.isograd]\nexcluded = []", "Did you mean exclude? Known are:", id="misspelt"
        ),
        pytest.param('[tool.isograd.scan]\njson = "x"', "knows no json", id="a file to write"),
        pytest.param('[tool.isograd.convert]\nout = "x"', "knows no out", id="a folder to write"),
        pytest.param("[tool.isograd]\nexclude = [", "cannot be read", id="no TOML"),
        pytest.param("[tool]\nisograd = 3  # tool.isograd", "is no table", id="no table"),
        pytest.param('[tool.isograd.scan]\nfail-on = ["all"]', "'--fail-on'", id="no choice"),
    ],
)
def test_what_is_no_setting_is_one_message(
    project: Path, settings: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text(settings)
    verb = "convert" if "convert" in settings else "scan"
    assert main([verb, str(project / "src")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
