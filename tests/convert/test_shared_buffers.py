"""A buffer of one module that another one has as an attribute is registered once, as in torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

NETWORK = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([1.0, 2.0]))

    def forward(self, x):
        return x * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.factor = self.part.scale
        self.own = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return (self.part(x) + self.factor) * self.own


class Drawn(nn.Linear):
    def __init__(self):
        super().__init__(2, 2)
        self.part = Part()
        self.factor = self.part.scale


def seen():
    net = Net()
    names = [list(net.state_dict()), [name for name, _ in net.named_buffers()]]
    kept = list(Drawn().state_dict())
    net.load_state_dict({"part.scale": torch.tensor([3.0, 4.0]), "own": torch.ones(2)})
    return names, kept, net(torch.ones(2)).tolist()
"""


def test_names_of_buffers_and_loading_are_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": NETWORK})
    run = "import json, net; print(json.dumps(net.seen()))"
    of_torch, of_port = run_both(tmp_path, port, run)
    assert of_torch == of_port
    assert of_torch[0][1] == ["part.scale"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("self.factor = self.part.scale * 2", id="a new tensor"),
        pytest.param("self.factor = self.part.width", id="no buffer"),
        pytest.param("factor = self.part.scale", id="no attribute"),
    ],
)
def test_what_is_no_buffer_is_bound_as_ever(line: str) -> None:
    text, _ = port_of(NETWORK.replace("self.factor = self.part.scale", line))
    assert line in text
