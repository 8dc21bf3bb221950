"""Functions under `torch.no_grad` whose decorator goes away give the gradients of torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

pytest.importorskip("torch")
pytest.importorskip("mindspore")

_NET = """
import torch
from torch import nn

class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.bn = nn.Linear(3, 2), nn.BatchNorm1d(2)
        with torch.no_grad():
            self.c.weight.copy_(torch.arange(6.).reshape(2, 3) / 6)
            self.c.bias.copy_(torch.tensor([0.5, -0.5]))

    def forward(self, x):
        return self.bn(self.c(x))

    @torch.no_grad()
    def fuse(self):
        c, bn = self._modules.values()
        w = bn.weight / (bn.running_var + bn.eps) ** 0.5
        b = bn.bias + (c.bias - bn.running_mean) * w
        m = nn.Linear(c.weight.size(1), c.weight.size(0))
        m.weight.data.copy_(c.weight * w[:, None])
        m.bias.data.copy_(b)
        return m

    @torch.no_grad
    def scaled(self):
        w = self.c.weight * 2
        return w

    @torch.no_grad()
    def halve(self):
        self.c.weight.copy_(self.c.weight / 2)

class Cached(Fused):
    def __init__(self):
        super().__init__()
        self.cache = {}

    @torch.no_grad()
    def train(self, mode=True):
        super().train(mode)
        if mode and self.cache:
            self.cache = {}
        return self

    def forward(self, x):
        if not self.cache:
            self.cache = {"w": self.c.weight * 3}
        return super().forward(x) @ self.cache["w"]

OTHER

def grads():
    x = torch.arange(12.).reshape(4, 3) / 7
    found = []
    net = Cached()
    for step in range(2):
        net.train(step == 0)
        fused = net.fuse()
        net.zero_grad()
        loss = (fused(x) ** 2).sum() + (net(x) ** 2).mean() + (net.scaled() * net.c.weight).sum()
        loss.backward()
        for one in (*fused.parameters(), *net.parameters()):
            found.append([round(v, 3) for v in one.grad.flatten().tolist()])
        net.halve()
        net.cache = {}
    return found
"""
_COMPUTES = """
class Doubled(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    @torch.no_grad()
    def train(self, mode=True):
        super().train(mode)
        self.doubled = self.net.c.weight * 2
        return self
"""


@pytest.mark.parametrize(("other", "kept"), [("", 2), (_COMPUTES, 4)])
def test_gradients_are_torchs(tmp_path: Path, other: str, kept: int) -> None:
    port, report = converted(tmp_path, {"net.py": _NET.replace("OTHER", other)})
    assert {one.code for one in report.findings} <= {"eager-training"}
    text = (port / "net.py").read_text()
    assert text.count("@compat.no_grad") == kept
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.grads()))")
    assert found == expected
