"""The wheel alone: installed where nothing is but what it asks for, and no framework."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import isograd

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, as `make dist` writes them."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a new environment that holds the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    _unpack(wheel, packages)
    for name in _required(_requirements(wheel)):
        _link(name, packages)
    script = folder / "bin" / "isograd"
    python = folder / "bin" / "python"
    script.write_text(f"#!{python}\nimport sys\nfrom isograd.cli import main\nsys.exit(main())\n")
    script.chmod(0o755)
    return folder / "bin"


def _unpack(wheel: Path, packages: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)


def _requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]


def _required(requirements: list[str]) -> set[str]:
    """The names of everything that is required, also by what is required, without extras."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name = re.match(r"[\w.-]+", requirement)
        assert name is not None
        if "extra ==" in requirement or name[0] in found:
            continue
        try:
            waiting += metadata.requires(name[0]) or []
        except metadata.PackageNotFoundError:
            continue  # for another version of Python or another system
        found.add(name[0])
    return found


def _link(name: str, packages: Path) -> None:
    """Links to the top-level files and folders of an installed distribution."""
    distribution = metadata.distribution(name)
    tops = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
    for top in tops - {"__pycache__"}:
        target = packages / top
        if not target.exists():
            target.symlink_to(Path(str(distribution.locate_file(top))))


def _run(installed: Path, *arguments: str, status: int = 0) -> str:
    command = [str(installed / "isograd"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=installed)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_the_version_stands_in_one_place(built: Path) -> None:
    names = sorted(path.name for path in built.iterdir())
    version = isograd.__version__
    assert names == [f"isograd-{version}-py3-none-any.whl", f"isograd-{version}.tar.gz"]


def test_the_wheel_holds_what_the_code_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for path in (
        "isograd/py.typed",
        "isograd/report/templates/page.html.jinja",
        "isograd/report/templates/vendor/uplot.min.js",
        "isograd/report/templates/vendor/uplot.LICENSE",
        "isograd/knowledge/entries.json",
        "isograd/knowledge/examples.json",
    ):
        assert path in names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_source_distribution_holds_tests_and_documents(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "docs/architecture.md", "tests/test_release.py"} <= names


def test_no_framework_is_there(installed: Path) -> None:
    code = "import importlib.util as u; print([u.find_spec(n) for n in ('torch', 'mindspore')])"
    command = [str(installed / "python"), "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[None, None]\n"


def test_the_version_says_that_frameworks_are_missing(installed: Path) -> None:
    shown = _run(installed, "--version")
    assert f"version {isograd.__version__}" in shown
    assert "torch not found; install it: pip install 'isograd[torch]'" in shown


def test_every_verb_answers_help(installed: Path) -> None:
    verbs = re.findall(r"^  (\w+)  ", _run(installed, "--help").partition("Verbs:")[2], re.M)
    assert {"scan", "convert", "verify", "compare", "params"} <= set(verbs)
    for verb in verbs:
        assert f"Usage: isograd {verb}" in _run(installed, verb, "--help")


def test_scan_runs(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\n\n\ndef f(x):\n    return torch.exp(x)\n")
    page = tmp_path / "page.html"
    assert "100.0%" in _run(installed, "scan", str(tmp_path), "--html", str(page), "--no-cache")
    assert page.stat().st_size > 1000


def test_compare_and_params_run(installed: Path, tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        np.savez(tmp_path / f"{name}.npz", weight=np.array([[value, 2.0]], np.float32))
    files = [str(tmp_path / f"{name}.npz") for name in "ab"]
    report = tmp_path / "r.json"
    _run(installed, "compare", *files, "--json", str(report), status=1)
    assert json.loads(report.read_text())["verdict"] == "divergent"
    assert "1 tensor, 2 numbers: sound." in _run(installed, "params", files[0])


def test_verify_says_which_extra_it_needs(installed: Path, tmp_path: Path) -> None:
    example = ROOT / "examples" / "resnet50" / "faithful.toml"
    command = [str(installed / "isograd"), "verify", str(example)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "isograd[torch]" in done.stderr or "isograd[mindspore]" in done.stderr
