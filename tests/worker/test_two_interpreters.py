"""torch with NumPy 2 in one interpreter, MindSpore with NumPy 1 in another.

Needs an environment that has torch and NumPy 2 and no isograd:
python -m venv E && E/bin/pip install torch 'numpy>=2'; ISOGRAD_TORCH_PYTHON=E/bin/python pytest …
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from isograd.cli import main

DATA = Path(__file__).resolve().parent.parent / "data"
PYTHON = os.environ.get("ISOGRAD_TORCH_PYTHON")


def side(framework: str) -> str:
    place = DATA / f"conformance_{framework}.py"
    keys = "".join(f'{key} = "{place}:{key}"\n' for key in ("loss", "optimizer"))
    return f'framework = "{framework}"\nmodel = "{place}:build"\n{keys}'


@pytest.mark.skipif(PYTHON is None, reason="ISOGRAD_TORCH_PYTHON names no interpreter")
def test_two_numpy_versions_meet(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    assert PYTHON is not None
    program = "import numpy, torch; print(numpy.__version__.split('.')[0])"
    done = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"
    case = tmp_path / "case.toml"
    case.write_text(
        f'[reference]\n{side("torch")}python = "{PYTHON}"\n[port]\n{side("mindspore")}'
        '[[inputs]]\nshape = [6, 4]\n[[inputs]]\nshape = [6]\ndtype = "int64"\nhigh = 7\n'
        '[[inputs]]\nshape = [4]\nfill = "uniform"\nname = "scale"\n'
        "[[targets]]\nshape = [6, 4]\n[verify]\nsteps = 2\ncompiled = 'off'\n"
    )
    report = tmp_path / "report.json"
    assert main(["verify", str(case), "--quiet", "--json", str(report)]) == 0
    assert json.loads(report.read_text())["verdict"] == "equivalent"
