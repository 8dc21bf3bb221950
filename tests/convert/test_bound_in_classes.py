"""Layers and functions of torch's that are bound in a class are not given its object."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

_NETWORK = """
import torch
from dataclasses import dataclass
from torch import nn


@dataclass
class Settings:
    norm: type = nn.LayerNorm
    width: int = 4


class Block(nn.Module):
    norm = nn.LayerNorm
    pool: type = nn.AvgPool1d
    gelu = nn.GELU
    tanh = torch.tanh

    def __init__(self, settings=Settings()):
        super().__init__()
        self.norms = nn.Sequential(self.norm(settings.width), settings.norm(settings.width))
        self.rest = nn.Sequential(self.pool(2), self.gelu())

    def forward(self, x):
        return self.tanh(self.rest(self.norms(x)))


class Other(Block):
    norm = nn.Identity
"""
_RUN = """
import json, network
x = TENSOR([[[0.5, -1.0, 2.0, 0.1], [3.0, 0.2, -0.4, 1.5]]])
nets = network.Block(), network.Other()
print(json.dumps([net(x).tolist() for net in nets]))
"""


def test_layers_and_functions_bound_in_a_class(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"network.py": _NETWORK})
    expected, found = run_both(tmp_path, port, _RUN)
    assert not report.findings
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[0][0] == pytest.approx(theirs[0][0], abs=1e-5)
        assert ours[0][1] == pytest.approx(theirs[0][1], abs=1e-5)
