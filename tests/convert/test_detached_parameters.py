"""`p.detach_()` of Parameters, which learn no more."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

_CODE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 1, bias=False)

    def fuse(self):
        for name, p in self.named_parameters():
            if "second" in name:
                continue
            p.detach_()

    def forward(self, x):
        return self.second(self.first(x))


def learning(net):
    return [p.requires_grad for p in net.parameters()]


def trained():
    net = Net()
    for p in net.parameters():
        nn.init.constant_(p, 0.5)
    net.fuse()
    found = [learning(net)]
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    net(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    found += [p.flatten().tolist() for p in net.parameters()]
    for p in net.second.parameters():
        p.detach_()
    return found + [learning(net)]
"""


def test_detached_parameters_keep_their_values_and_learn_no_more(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _CODE})
    text = (port / "net.py").read_text()
    assert text.count("p.requires_grad = False") == 2
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.trained()))")
    assert found[0] == expected[0] == [False, False, True]
    assert found[-1] == expected[-1] == [False] * 3
    assert [pytest.approx(row) for row in expected[1:-1]] == found[1:-1]
