"""Names of a program's modules that MindSpore's Cell keeps for itself are reported."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.convert.support import port_of

_NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        LINE
        self.layer = nn.Linear(2, 2)

    def METHOD(self, x):
        return x

    def forward(self, x):
        return self.layer(x)
"""
#: What a constructor binds, and whether it collides.
LINES = {
    "self.cells = nn.ModuleList([nn.GRUCell(2, 2)])": True,
    "self.phase = None": True,
    "self.compiled = False": True,
    "self._cells = [1, 2]": True,
    "self._params = {'a': 1}": True,
    "self.param_prefix = 'p'": True,
    "self.pipeline_stage: int = 2": True,
    "self.recompute = nn.Linear(2, 2)": True,
    "self.recompute = True": False,
    "self.phases, self.cell = 3, nn.GRUCell(2, 2)": False,
}


@pytest.mark.parametrize("line", LINES)
def test_an_attribute_of_a_cells_name(line: str) -> None:
    _, findings = port_of(_NET.replace("LINE", line).replace("METHOD", "other"))
    told = [one for one in findings if "nn.Cell" in one.message]
    assert bool(told) == LINES[line]
    assert all(one.line == 8 for one in told)


@pytest.mark.parametrize(("method", "is_told"), [("construct", True), ("cell", False)])
def test_a_method_of_a_cells_name(method: str, is_told: bool) -> None:
    _, findings = port_of(_NET.replace("LINE", "pass").replace("METHOD", method))
    assert any("nn.Cell" in one.message for one in findings) == is_told
