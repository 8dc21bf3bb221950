"""Networks that nobody wrote for isograd convert without a fault, and their ports run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.warm_python import run_python

from isograd.convert.conversion import Options
from isograd.convert.run import convert_path
from isograd.convert.verifying import parse_input

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytest.importorskip("mindspore")

FOLDER = Path(__file__).parents[2] / "benchmarks" / "convert"
#: Builds each network of a port and runs it in training; prints what was raised.
RUN = """
import importlib, json, sys
sys.modules["torch"] = None
sys.path.insert(0, "port")
import mindspore as ms
import numpy as np

failed = {}
for builder, inputs in json.load(open("builders.json")):
    module, _, rest = builder.partition(":")
    name, _, arguments = rest.partition("(")
    try:
        make = getattr(importlib.import_module(module), name)
        network = eval("make(" + arguments if arguments else "make()")
        given = []
        for number, (shape, dtype, most) in enumerate(inputs):
            draw = np.random.RandomState(number)
            values = draw.randint(0, most, shape) if most else draw.randn(*shape)
            given.append(ms.Tensor(values.astype(dtype)))
        network(*given)
    except Exception as error:
        failed[builder] = f"{type(error).__name__}: {error}"[:300]
print(json.dumps(failed))
"""


def _networks() -> list[Any]:
    table = tomllib.loads((FOLDER / "builders.toml").read_text(encoding="utf-8"))
    found = []
    for one in table["strangers"]["special"]:
        given = [parse_input(text) for text in one["inputs"]]
        inputs = [[list(part.shape), part.dtype, part.high or 0] for part in given]
        found.append([one["builder"], inputs])
    return found


@pytest.mark.parametrize("folder", ["strangers", "styles"])
def test_whole_folders_convert_without_a_fault(folder: str, tmp_path: Path) -> None:
    report = convert_path(FOLDER / folder, tmp_path / "port", Options())
    assert [f for f in report.findings if f.code in ("internal-error", "unreadable")] == []
    assert len(report.files) >= 10


def test_ports_of_networks_run(tmp_path: Path) -> None:
    convert_path(FOLDER / "strangers", tmp_path / "port" / "strangers", Options())
    (tmp_path / "builders.json").write_text(json.dumps(_networks()), encoding="utf-8")
    done = run_python(RUN, cwd=tmp_path, imported=["mindspore"])
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == {}
