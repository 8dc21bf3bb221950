"""Modules that tensors and numbers of numpy's pick from lists of modules."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

NETWORK = """
import numpy as np
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        self.stages = nn.Sequential(*[nn.Linear(2, 2) for _ in range(3)])
        for number, parameter in enumerate(self.parameters()):
            parameter.data.fill_(float(number))

    def forward(self, x, ids: torch.Tensor):
        y = self.experts[ids[0, 0]](x)
        for i in torch.unique(ids):
            y = y + self.experts[i](x) + self.stages[i](x)
        for k in range(3):
            y = y * 2 + self.experts[k](x)
        for j in np.argsort([2, 1]):
            y = y * 2 + self.experts[j](x)
        return y


def run():
    net = Experts()
    layers = nn.ModuleList([nn.Linear(1, n) for n in (1, 2, 3)])
    plain = [1, 2, 3]
    sizes = [[layers[i].out_features, plain[i]] for i in torch.tensor([2, 0])]
    return net(torch.ones(1, 2), torch.tensor([[2, 0]])).tolist(), sizes
"""


def test_a_tensor_picks_a_module(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": NETWORK})
    assert not report.needs_action
    text = (port / "net.py").read_text()
    assert "self.experts[int(ids[0, 0])](x)" in text
    assert "self.experts[k](x)" in text
    assert "plain[i]" in text
    run = "import json, net; print(json.dumps(net.run()))"
    of_torch, of_port = run_both(tmp_path, port, run)
    assert of_port == of_torch
