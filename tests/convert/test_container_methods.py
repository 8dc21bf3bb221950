"""Containers of layers that change after they are made."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

_NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 2), nn.ReLU()])
        self.layers.pop(-1)
        self.head = nn.Sequential()
        self.head.extend([nn.Linear(2, 5), nn.Tanh()])
        self.head.insert(-1, nn.Linear(5, 3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def shapes():
    net, x = Net(), torch.ones(1, 1)
    net.head.insert(0, nn.Identity())
    net.head.pop(3)
    names = [name for name, _ in net.named_parameters()]
    made = [list(net(x).shape), len(net.head), len(net.layers)]
    return made, names, [name for name, _ in net.head.named_children()], sorted(net.state_dict())
"""


def test_layers_are_put_in_and_taken_out(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not report.findings
    code = "import json, net\nprint(json.dumps(net.shapes()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected[0] == [[1, 3], 3, 2]
