"""An unchanged script runs as `python script.py` would run it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isograd.errors import UsageError
from isograd.runs import script as module
from isograd.runs.script import run_script


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("pass", 0, id="ends"),
        pytest.param("import sys; sys.exit(3)", 3, id="exit status"),
        pytest.param("raise SystemExit('no data')", 1, id="exit with a text"),
        pytest.param("import sys; assert sys.argv[1:] == ['--lr', '1']", 0, id="arguments"),
        pytest.param("assert __name__ == '__main__'; import helper", 0, id="beside the script"),
    ],
)
def test_a_script_runs_as_main(tmp_path: Path, code: str, status: int) -> None:
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "helper.py").write_text("")
    argv, path = sys.argv, sys.path
    assert run_script(tmp_path / "train.py", ["--lr", "1"], lambda name: None).status == status
    assert (sys.argv, sys.path) == (argv, path)


def test_the_traceback_begins_in_the_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def f():\n    raise ValueError('bad')\nf()\n")
    end = run_script(tmp_path / "train.py", [], lambda name: None)
    assert end.status == 1
    assert end.trace.splitlines()[1].strip().startswith(f'File "{tmp_path}/train.py", line 3')
    assert end.trace.endswith("ValueError: bad\n")


def test_a_framework_is_reported_after_its_import_and_before_the_next_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FRAMEWORKS", ("isograd_fake_framework",))
    (tmp_path / "isograd_fake_framework.py").write_text("watched = False\n")
    (tmp_path / "train.py").write_text(
        "import isograd_fake_framework as f\nassert f.watched\nimport isograd_fake_framework\n"
    )
    seen = []

    def watch(name: str) -> None:
        seen.append(name)
        sys.modules[name].watched = True  # type: ignore[attr-defined]

    try:
        end = run_script(tmp_path / "train.py", [], watch)
    finally:
        sys.modules.pop("isograd_fake_framework", None)
    assert end.status == 0, end.trace
    assert seen == ["isograd_fake_framework"]


def test_a_missing_script_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the script .*none.py does not exist"):
        run_script(tmp_path / "none.py", [], lambda name: None)
