"""Modules that have the attributes of what they hold, and what modules say of themselves."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

_NET = """
import torch
from torch import nn

class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return x + self.fn(x)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["fn"], name)

class Parallel(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.register_buffer("scale", torch.ones(1))

    def forward(self, *args):
        return self.model(*args)

    def __getattr__(self, name):
        try:
            return super(Parallel, self).__getattr__(name)
        except AttributeError:
            return getattr(self.model, name)

class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.fc = nn.Linear(size, size)
        nn.init.constant_(self.fc.weight, 0.5)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        return self.fc(x)

    def score(self, x):
        return self(x).sum()

    def extra_repr(self):
        return f"size={self.size}"

class Named(Net):
    def extra_repr(self):
        return super().extra_repr() + ", named"

def said(x):
    net, alone = Parallel(Net(2)), Residual(nn.Linear(2, 3))
    texts = [str(Net(2)).split()[0], str(Named(2)).split()[1], Named(2).extra_repr()]
    return [
        net(x).tolist(), net.score(x).item(), net.size, hasattr(net, "nothing"),
        alone.in_features, texts, Residual(Net(2))(x).tolist(),
    ]
"""
_RUN = "import json, net\nprint(json.dumps(net.said(TENSOR([[1.0, 1.0]]))))"


def test_what_a_module_answers_for_another(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not report.findings
    expected, found = run_both(tmp_path, port, _RUN)
    assert found == expected
