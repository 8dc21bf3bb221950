"""Classes with a `train` of their own are in the port in the modes that they have in torch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.convert.support import converted, run_both
from tests.warm_python import run_python

from isograd.convert.run import convert_path

pytest.importorskip("torch")
pytest.importorskip("mindspore")

NETWORKS = """
import torch
from torch import nn


class Frozen(nn.BatchNorm2d):
    def train(self, mode=True):
        super().train(False)
        return self


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.norm, self.frozen = nn.Dropout(0.1), nn.BatchNorm2d(3), Frozen(3)

    def train(self, mode=True):
        super(Base, self).train(mode)
        self.norm.eval()
        return self


class Derived(Base):
    def train(self, mode: bool = True):
        super().train(mode)
        self.drop.eval()
        return self


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.norm = nn.Dropout(0.1), nn.BatchNorm2d(3)


class Child(Plain):
    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = Base(), Derived(), Plain(), Child()


def modes(net):
    return {name: module.training for name, module in net.named_modules()}


net = Net()
found = [modes(net.train())]
found.append(modes(net.eval()))
found.append(modes(net.b.train()))
"""
PRINTED = "import json\nfrom {module} import found\nprint(json.dumps(found))\n"


def test_networks_are_in_torchs_modes(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NETWORKS, encoding="utf-8")
    convert_path(tmp_path / "net.py", tmp_path / "port")
    answers = []
    for folder, framework in ((tmp_path, "torch"), (tmp_path / "port", "mindspore")):
        code = PRINTED.format(module="net")
        done = run_python(code, cwd=folder, imported=[framework])
        assert done.returncode == 0, done.stderr[-2000:]
        answers.append(json.loads(done.stdout.strip().splitlines()[-1]))
    assert answers[0] == answers[1]


PLAIN = """
import torch


def applied(function, x):
    return function(x)


class Model:
    def __init__(self):
        self.weight = torch.full((2, 3), 0.1)

    def forward(self, x):
        return torch.mm(x, self.weight.T)

    def total(self, x):
        own = self.forward
        return applied(self.forward, x).sum().item() + own(x).sum().item()
"""


def test_the_forward_of_a_class_that_is_no_module_keeps_its_name(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"plain.py": PLAIN})
    code = "import json, plain; print(json.dumps(plain.Model().total(TENSOR([[1.0, 1.0, 1.0]]))))"
    expected, found = run_both(tmp_path, port, code)
    assert found == pytest.approx(expected, rel=1e-6)
