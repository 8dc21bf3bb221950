"""Methods of torch's modules and tensors that are asked for by their names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

ASKED = """
import torch
from torch import nn


def named(parts):
    for part in parts:
        found = getattr(part, "named_parameters", None)
        if found:
            yield from found()


def count(part):
    return len(list(part.parameters())) if hasattr(part, "parameters") else 0


def plain(part):
    if hasattr(part, "detach"):
        part = part.detach()
    return part.cpu().tolist() if hasattr(part, "cpu") else part


def start(layer):
    reset = getattr(layer, "reset_parameters", None)
    if callable(reset):
        reset()
    return callable(reset)


class Own:
    def parameters(self):
        return [1, 2, 3]

    def train(self, mode=True):
        return "trained"

    def is_one(self):
        return hasattr(self, "modules")


class Net(nn.Module):
    def forward(self, x):
        return x


def results():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    one = torch.ones(2)
    kinds = [hasattr(part, "requires_grad") for part in (one, net[0].weight, 3)]
    mode = getattr(net, "train")(False)
    return [[name for name, _ in named([net, 3, one])], count(net), count(Own()), count(one),
            [plain(part) for part in (one, 2.0)], [start(part) for part in (*net, 3, Own())],
            kinds, mode.training, getattr(Own(), "train")(), Own().is_one(),
            len(list(getattr(net, "modules")())), getattr(3, "children", lambda: "none")(),
            [hasattr(kind, "children") for kind in (Net, Own)]]
"""


def test_each_has_what_it_has_in_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"asked.py": ASKED})
    assert not report.findings
    asked = "import asked, json; print(json.dumps(asked.results()))"
    of_torch, of_port = run_both(tmp_path, port, asked)
    assert of_port == of_torch
    assert of_torch[0] == ["0.weight", "0.bias"]
