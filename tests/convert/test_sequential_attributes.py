"""A Sequential whose children are set as attributes runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.convert.support import converted, run_both

NETS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head.fc = nn.Linear(4, 2)
        self.head.fc = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), self.head.fc)

    def forward(self, x):
        return self.head(x)


def filled(net):
    for number, parameter in enumerate(net.parameters()):
        values = torch.arange(parameter.numel()).reshape(parameter.shape)
        parameter.data.copy_(0.3 * torch.sin(values + number))
    return net


def made():
    by_name = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    by_name.depth = 3
    by_name.fc = nn.Linear(4, 2)
    x = torch.arange(6.0).reshape(2, 3)
    names = [name for net in (Net(), by_name) for name, _ in net.named_parameters()]
    outs = [filled(net)(x).tolist() for net in (Net(), by_name)]
    return names, outs, by_name.depth
"""


def test_children_that_are_attributes_run(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"nets.py": NETS})
    expected, found = run_both(tmp_path, port, "import json, nets; print(json.dumps(nets.made()))")
    assert (found[0], found[2]) == (expected[0], expected[2])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-6)
