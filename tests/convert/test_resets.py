"""Layers that draw their first weights anew: by their class, or where they have the method."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

_NETWORK = """
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.constant_(self.weight, 3.0)


def reset(m):
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        m.reset_parameters()


def layers():
    return [
        nn.Linear(64, 400), nn.Conv2d(8, 200, 2, groups=2), nn.ConvTranspose2d(16, 200, 2),
        nn.LayerNorm(3), nn.BatchNorm1d(2), nn.GRU(3, 64), Scale(), nn.ReLU(),
    ]


def found():
    told = []
    for layer in layers():
        with torch.no_grad():
            for p in layer.parameters():
                p.fill_(50.0)
        can = hasattr(layer, "reset_parameters")
        if can:
            layer.reset_parameters()
        greatest = [p.detach().abs().max().item() for p in layer.parameters()]
        told.append([can, greatest])
    net = nn.Sequential(nn.Linear(400, 9), nn.ReLU())
    nn.init.constant_(net[0].weight, 50.0)
    net.apply(reset)
    told.append([True, [net[0].weight.detach().max().item()]])
    return told
"""


def test_first_weights_are_drawn_as_torch_draws_them(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NETWORK})
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.found()))")
    assert not report.findings
    assert [can for can, _ in found] == [can for can, _ in expected]
    for (_, ours), (_, theirs) in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, rel=0.1)  # of hundreds of draws the greatest is near
