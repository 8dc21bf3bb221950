"""A `train` of the project's: called as torch calls it, and not while a module is made."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

_LAYERS = """
class Frozen(nn.BatchNorm1d):
    def train(self, mode=True):
        return super().train(False)


class Always(nn.Dropout):
    def train(self, mode=True):
        self.training = True
        return self


class Body(nn.Sequential):
    def train(self, mode=True):
        return super().train(False)


net = nn.ModuleList([Frozen(2), Always(0.5), Body(nn.Linear(2, 2), nn.Dropout(0.5))])
"""
_MIXIN = """
class Freezing:
    def train(self, mode=True):
        super().train(mode)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.eval()
        return self


class Net(Freezing, nn.Module):
    def __init__(self):
        super().__init__()
        self.bn, self.fc = nn.BatchNorm1d(2), nn.Linear(2, 2)


net = nn.ModuleList([Net(), Net()])
"""
_PARTS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn, self.calls = nn.BatchNorm1d(2), []

    def train(self, mode=True):
        self.calls.append(mode)
        super().train(mode)
        self.bn.eval()
        return self


class Deep(Net):
    def __init__(self):
        super().__init__()
        self.late = nn.Dropout(0.5)

    def train(self, mode=True):
        super().train(mode)
        self.late.eval()
        return self


net = nn.Sequential(Net(), Deep())
"""
_ASKED = """
found = [[m.training for m in net.modules()]]
for mode in (True, False, True):
    net.train(mode)
    found.append([m.training for m in net.modules()])
found += [getattr(m, "calls", 0) for m in net]
"""


@pytest.mark.parametrize(
    "classes",
    [
        pytest.param(_LAYERS, id="layers and containers"),
        pytest.param(_MIXIN, id="a class that is mixed into modules"),
        pytest.param(_PARTS, id="parts that stay in inference from the first call on"),
    ],
)
def test_modes_are_torchs(classes: str, tmp_path: Path) -> None:
    text = f"from torch import nn\n\n{classes}\n{_ASKED}"
    port, report = converted(tmp_path, {"modes.py": text})
    assert [one.message for one in report.findings] == []
    code = "import json, modes; print(json.dumps(modes.found))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
