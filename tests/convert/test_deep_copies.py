"""`copy.deepcopy` gives tensors memory of their own, wherever they are held."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

pytest.importorskip("torch")
pytest.importorskip("mindspore")

NET = """
import copy
from copy import deepcopy

import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bank", torch.zeros(2, 3))
        self.register_buffer("steps", torch.tensor(0))
        self.plain = torch.zeros(3)

    def forward(self, x):
        self.bank.mul_(0.5).add_(x)
        self.bank[:, 0] = 7
        self.steps += 1
        self.plain += 1
        return self.bank.sum()


def found_of():
    net = Memory()
    net(torch.ones(2, 3))
    best, teacher = copy.deepcopy(net.state_dict()), deepcopy(net)
    held = {"t": torch.zeros(2), "l": [torch.ones(2)]}
    kept = list(map(copy.deepcopy, [held]))[0]
    held["t"].add_(1)
    held["l"][0].mul_(4)
    for _ in range(2):
        net(torch.ones(2, 3))
    found = [part.tolist() for one in (net, teacher) for part in (one.bank, one.steps, one.plain)]
    net.load_state_dict(best)
    found += [net.bank.tolist(), net.steps.tolist(), kept["t"].tolist(), kept["l"][0].tolist()]
    return found
"""


def test_copies_do_not_follow_what_they_were_made_of(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": NET})
    theirs, ours = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.found_of()))")
    assert ours == theirs


def test_a_comment_copies_nothing() -> None:
    code = "import copy\nimport torch\n\n\ndef f(x: torch.Tensor):  # no deepcopy\n"
    assert "copies_own" not in port_of(f"{code}    return torch.relu(copy.copy([x])[0])\n")[0]
