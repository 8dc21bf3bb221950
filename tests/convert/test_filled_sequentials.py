"""A Sequential that a constructor fills by names has torch's names, order, modes and results."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

pytest.importorskip("torch")
pytest.importorskip("mindspore")

_NET = """
from collections import OrderedDict
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, norm, blocks):
        super().__init__()
        if norm:
            self.net = nn.Sequential()
            for i in range(2):
                self.net.add_module(f"fc{i}", nn.Linear(2, 2))  # one each
                if i == 0:
                    continue
                act = nn.ReLU()
                self.net.add_module(
                    "norm",
                    nn.LayerNorm(2))
                self.net.add_module("act", act)
                self.net.add_module("fc0", nn.Linear(2, 2, bias=False))
        else:
            self.net = nn.Sequential()
            self.net.add_module("fc", nn.Linear(2, 2))
        self.scale = 2
        self.blocks = nn.Sequential()
        self.depth = 0
        for i in range(blocks):
            # a comment
            self.blocks.add_module(str(i), nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)))
        self.features = nn.Sequential(
            OrderedDict([("conv0", nn.Linear(2, 2)), ("relu0", nn.ReLU())])
        )
        width = 2
        for i in range(2):
            self.features.add_module("block%d" % (i + 1), nn.Linear(width, width + 1))
            width += 1
        self.features.add_module("last", nn.Linear(width, 2))
        self.tail = nn.Sequential()
        self.head = nn.Linear(2, 2)
        self.tail.add_module("fc", nn.Linear(2, 2))
        self.grown = nn.Sequential()
        self.grown.add_module("fc", self.layer())
        self.seen = nn.Sequential()
        self.seen.add_module("fc", nn.Linear(2, 2))
        self.first = self.seen
        self.seen.add_module("act", nn.ReLU())

    def layer(self):
        return nn.Linear(2, 2 + len(self.grown))

    def forward(self, x):
        x = self.grown(self.tail(self.blocks(self.features(self.net(x))))) * self.scale
        return self.head(x) + len(self.blocks) + self.first(x)

def found():
    said = []
    for norm, blocks in ((True, 2), (False, 0)):
        net = Net(norm, blocks)
        said.append([name for name, _ in net.named_parameters()])
        if blocks:  # MindSpore passes over empty containers
            said.append([name for name, _ in net.named_modules()])
            said.append([int(part.training) for part in net.modules()])
        with torch.no_grad():
            for i, p in enumerate(net.parameters()):
                p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 9 + i / 20)
        said.append([round(v, 3) for v in net(torch.ones(1, 2)).flatten().tolist()])
        net.net.add_module("last", nn.ReLU())
        said.append(len(net.net))
    return said
"""


def test_filled_sequentials(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not [one for one in report.findings if one.code != "look"]
    text = (port / "net.py").read_text()
    for own in (
        "self.net = nn.SequentialCell(net)",
        "self.blocks = nn.SequentialCell(blocks_layers)",
    ):
        assert own in text
    assert text.count("collections.OrderedDict()") == 3
    assert "self.features = nn.SequentialCell(features)" in text
    assert "# one each" in text
    assert "# a comment" in text
    code = "import json, net\nprint(json.dumps(net.found()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
