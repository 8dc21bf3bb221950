"""`isograd_equivalent("case.toml")` in a test of the user's."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
EXAMPLES = Path(__file__).parents[2] / "examples" / "fake"


def _arguments() -> list[str]:
    """Nothing where the installed entry point loads the plugin, else its name."""
    found = importlib.metadata.entry_points(group="pytest11", name="isograd")
    return [] if found else ["-p", "isograd.pytest_plugin"]


@pytest.mark.parametrize(
    ("case", "failed", "lines"),
    [
        pytest.param("faithful.toml", 0, [], id="equivalent"),
        pytest.param(
            "divergent.toml",
            1,
            ["*2.body.1 (forward, train mode, step 0)*", "Divergent: *"],
            id="divergent",
        ),
        pytest.param(
            "missing.toml",
            1,
            ["*isograd could not verify missing.toml: there is no case file*"],
            id="no-case",
        ),
    ],
)
def test_a_test_fails_unless_the_port_is_equivalent(
    case: str, failed: int, lines: list[str], pytester: pytest.Pytester
) -> None:
    """A first user: pytest cannot use a case without a subprocess."""
    folder = pytester.mkdir("ports")
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    (folder / "test_port.py").write_text(
        "def test_the_port(isograd_equivalent):\n"
        f"    assert not any(f.diverges for f in isograd_equivalent({case!r}).findings)\n"
    )
    result = pytester.runpytest_subprocess(*_arguments(), "ports")
    result.assert_outcomes(passed=1 - failed, failed=failed)
    result.stdout.fnmatch_lines(lines)
    assert "Traceback" not in result.stdout.str()


def test_the_plugin_imports_nothing_before_it_is_used() -> None:
    program = (
        "import sys, isograd.pytest_plugin\n"
        "print([n for n in ('numpy', 'torch', 'mindspore', 'isograd.verify') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_entry_point_is_declared() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nisograd = "isograd.pytest_plugin"\n' in text
