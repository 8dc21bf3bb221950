"""Statements outside of functions write what they write in torch, or the line is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

from isograd.convert import ConvertReport

#: Statements of a module about a tensor `x` of three rows; all names are compared behind them.
SAME = {
    "bound value": "r = x.add_(1)",
    "value that is not bound": "r = x.sqrt_().sum()",
    "out=": "torch.acos(x * 0.1, out=x)",
    "out= of another name": "torch.abs(-x, out=y)",
    "another name": "y = x\nr = y.mul_(2)",
    "another name, out=": "y = x\ntorch.sqrt(x, out=x)",
    "row": "y = x[0]\ny.add_(1)",
    "rows of a loop": "for row in x:\n    row += 1",
    "loop": "for _ in range(3):\n    r = x.mul_(2)",
    "loop over a list": "y = x\nfor t in [x, w]:\n    t.add_(1)",
    "augmented": "y = x\nx += 1",
    "element": "y = x\nx[0] *= 3",
    "element of a list": "held = [x, w]\nheld[0].add_(1)",
    "out= of an element of a list": "held = [x, w]\ntorch.neg(held[0], out=held[0])",
    "value of a dictionary": "held = {'a': x}\nr = held['a'].neg_()",
    "class body": "class Kept:\n    r = x.add_(1)",
    "comprehension": "r = [x.add_(1) for _ in range(2)]",
    "lambda": "f = lambda: x.add_(1)\nf()\nr = f()",
    "condition": "if x.sum() > 0:\n    r = x.sub_(1)",
    "rebound": "y = x\nx = x * 1\nx.add_(1)",
    "inner function reads it": "y = x\ndef f():\n    return y\nx.add_(1)\nr = f()",
    "default of a function": "def f(held=x):\n    return held * 1\nx.add_(1)\nr = f()",
    "function writes into it": "y = x\ndef f():\n    x.add_(1)\nf()",
    "functional in place": "y = x\nr = F.elu(x, inplace=True)",
    "function in place": "y = x\nr = torch.square_(y)",
    "function in place, a row": "y = x[0]\nr = torch.neg_(y)\ntorch.zero_(x[1])",
    "function in place, not bound": "r = torch.sqrt_(x).sum()",
    "functions in place, a chain": "y = x\nr = torch.neg_(torch.sqrt_(x)).add_(w)",
    "functional of torch in place": "y = x\nr = F.threshold_(x, 2, 7)",
    "function in place of a list's element": "held = [x, w]\nr = torch.square_(held[1])",
    "data of it": "y = x.view(-1)\nx.data = x.data * 2",
}
#: A port cannot write these where torch does; each is reported.
REPORTED = {
    "view": "y = x.view(-1)\ny.add_(1)",
    "tensor of a view": "y = x.view(-1)\nr = x.add_(1)",
    "view, function in place": "y = x.view(-1)\nr = torch.neg_(y)",
    "slice taken before": "y = x[1:]\nx.mul_(2)",
    "slice with steps": "y = x[:, ::2]\nx[0] = 5",
    "view of a list's element": "y = x.t()\nheld = [x, w]\nheld[0].add_(1)",
    "view of a loop's tensor": "y = x.t()\nfor t, u in zip([x], [w]):\n    t.add_(1)",
    "view in a class body": "y = x.t()\nclass Kept:\n    r = x.add_(1)",
    "view in an inner function": "y = x.view(-1)\ndef f():\n    x.add_(1)\nf()",
    "mask": "y = x.view(-1)\nx[x > 0] = 0",
    "starting values": "y = x.t()\ntorch.nn.init.ones_(y)",
}
_HEAD = """
import torch
import torch.nn.functional as F

x = torch.arange(1, 13, dtype=torch.float32).reshape(3, 4)
w = torch.ones(3, 4)
y = x * 0
"""
_RUN = """
import importlib, json
def shown(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [shown(part) for part in value]
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    return shown(value.r) if isinstance(value, type) and hasattr(value, "r") else None
found = []
for number in range(COUNT):
    try:
        names = vars(importlib.import_module(f"scripts.case_{number}"))
        values = {name: shown(value) for name, value in names.items() if name[0] != "_"}
        found.append({name: value for name, value in values.items() if value is not None})
    except Exception as error:
        found.append(f"{type(error).__name__}: {str(error)[:200]}")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], list[object], list[bool]]:
    """The names that each script leaves in torch and in its port, and whether it is reported."""
    cases = [*SAME.values(), *REPORTED.values()]
    files = {"scripts/__init__.py": ""}
    for number, statements in enumerate(cases):
        files[f"scripts/case_{number}.py"] = f"{_HEAD}{statements}\n"
    folder = tmp_path_factory.mktemp("module_level")
    port, report = converted(folder, files)
    expected, found = run_both(folder, port, _RUN.replace("COUNT", str(len(cases))))
    return expected, found, [_is_reported(report, number) for number in range(len(cases))]


def _is_reported(report: ConvertReport, number: int) -> bool:
    files = {finding.file for finding in report.findings if finding.code != "internal-error"}
    return f"scripts/case_{number}.py" in files


@pytest.mark.parametrize("number", range(len(SAME)), ids=list(SAME))
def test_a_module_keeps_in_its_names_what_torch_leaves_there(
    number: int, both: tuple[list[object], list[object], list[bool]]
) -> None:
    expected, found, reported = (answer[number] for answer in both)
    assert not reported
    assert _rounded(found) == _rounded(expected)


def _rounded(names: object) -> object:
    return json.loads(json.dumps(names), parse_float=lambda text: float(f"{float(text):.5g}"))


@pytest.mark.parametrize("number", range(len(REPORTED)), ids=list(REPORTED))
def test_what_a_module_writes_and_a_port_cannot_is_reported(
    number: int, both: tuple[list[object], list[object], list[bool]]
) -> None:
    assert both[2][len(SAME) + number]


def test_a_name_that_other_files_import_is_written(tmp_path: Path) -> None:
    files = {
        "a.py": "import torch\nx = torch.ones(2)\ny = x\nx.add_(1)\n",
        "b.py": "import a\nprint(a.y.tolist())\n",
    }
    port, _ = converted(tmp_path, files)
    assert "x[...] = x + 1" in (port / "a.py").read_text()
