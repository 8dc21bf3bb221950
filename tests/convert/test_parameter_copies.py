"""What is written into `layer.weight.data` by MindSpore's own functions."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, port_of, run_both

_CODE = """
import torch
from torch import nn


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)

    @torch.no_grad()
    def fuse(self, w, b):
        layer = nn.Linear(3, 2)
        norm = nn.BatchNorm1d(2)
        scaled = b.double() * 2
        layer.weight.data.copy_(w * 1)
        layer.bias.data.copy_(scaled)
        scaled[:] = 0
        norm.weight.data.copy_(b.double()).mul_(2)
        w[0] = 9
        return layer, norm

    def plain(self, w):
        layer = nn.Linear(3, 2)
        layer.weight.data.copy_(w)
        with torch.no_grad():
            layer.bias.data.mul_(0)
            layer.bias.data.copy_(w[:, 0])
        return layer


def made(w, b):
    layer, norm = Fused().fuse(w.t(), b)
    plain = Fused().plain(w.t())
    found = (layer.weight, layer.bias, norm.weight, plain.weight, plain.bias)
    return [one.tolist() for one in found]
"""

_USE = """
import json
import numpy as np
import net

w = TENSOR(np.arange(6, dtype=np.float32).reshape(3, 2))
print(json.dumps(net.made(w, TENSOR(np.array([1, 2])))))
"""


def test_parameters_that_are_written_unrecorded_are_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _CODE})
    text = (port / "net.py").read_text()
    assert text.count(".copy_(") == 2
    assert "layer.weight.copy_(w * 1)" in text
    assert "layer.bias.copy_(scaled)" in text
    expected, found = run_both(tmp_path, port, _USE)
    assert found == expected


@pytest.mark.parametrize(
    "lines",
    [
        "layer = nn.Linear(3, 2)\n    layer.weight.data.copy_(w * 2)",
        "with torch.no_grad():\n        def later():\n            made = nn.Linear(3, 2)\n"
        "            made.weight.data.copy_(w * 2)",
        "with torch.no_grad():\n        layer.weight.data.copy_(w * 2)",
        "with torch.no_grad():\n        other.weight.data.copy_(w * 2)",
        "made = nn.Linear(3, 2)\n    with torch.no_grad():\n        made.weight.data.copy_(w.t())",
    ],
)
def test_what_may_be_recorded_or_is_not_known_is_not_copied_natively(lines: str) -> None:
    code = f"""
import torch
from torch import nn

layer = nn.Linear(3, 2)

def f(other, w: torch.Tensor):
    {lines}
"""
    text, _ = port_of(code)
    assert ".copy_(" not in text


_WRITTEN = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.BatchNorm1d(2)
        self.c = nn.Linear(2, 2, bias=False)
        self.c.weight.data.fill_(2)
        self.c.weight.data.mul_(torch.tensor(1.5, dtype=torch.float64))
        self.b.weight.data.zero_()
        self.b.weight.data.add_(1)

    def forward(self, x):
        y = self.c(x)
        self.c.weight.data.mul_(0.5)
        z = self.c(y)
        self.c.weight.data.copy_(self.b.weight * x[0])
        return self.c(z) + self.b.weight

    def swap(self, w):
        old = self.a.weight.data
        self.a.weight.data = w.t()
        self.a.bias.data = w[0]
        self.a.weight.data.mul_(1)
        return old


def steps(x, w):
    net = Net()
    old = net.swap(w)
    y = net(x).sum() + net.a(x).sum()
    y.backward()
    grads = [net.a.weight.grad, net.a.bias.grad, net.b.weight.grad, net.c.weight.grad]
    values = [y, net.a.weight, net.a.bias, net.b.weight, net.c.weight, *grads]
    is_kept = bool((old != net.a.weight).all())
    return [is_kept, *(one.tolist() for one in values)]


def drawn():
    net = nn.Linear(100, 100)
    net.weight.data.normal_(3.0, std=0.5)
    net.bias.data.uniform_(-2, 2)
    w, b = net.weight, net.bias
    is_normal = abs(w.mean().item() - 3) < 0.05 and abs(w.std().item() - 0.5) < 0.05
    return [is_normal, 1 < b.max().item() < 2]
"""

_STEPS = """
import json
import numpy as np
import net

x = TENSOR(np.array([[1, 2], [3, -1]], np.float32))
w = TENSOR(np.array([[5, 6], [7, 8]], np.float32))
print(json.dumps([net.steps(x, w), net.drawn()]))
"""


def test_what_is_written_into_the_data_of_known_parameters_is_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _WRITTEN})
    text = (port / "net.py").read_text()
    for name in ("write", "overwrite_data", "set_data", "normal_like", "uniform_like"):
        assert f"compat.{name}(" not in text
    expected, found = run_both(tmp_path, port, _STEPS)
    assert found == expected
