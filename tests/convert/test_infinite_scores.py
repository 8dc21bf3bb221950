"""Losses of scores masked with infinity: torch's is finite, MindSpore's own is NaN."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

_HEAD = """
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

NEVER = float("-inf")


class Masking(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.zeros(3, 3).masked_fill(torch.eye(3) > 0, NEVER))

    def forward(self, x):
        return x + self.mask


def sigmoid(x):
    return x.masked_fill(torch.eye(3).bool(), NEVER)


def loss_of(scores, target):
    return F.nll_loss(F.log_softmax(scores, -1), target, reduction="none")


"""
#: Of scores x and classes y, none of them masked; what the port calls.
LOSSES = {
    "an element that is written": (
        "x = x.clone()\n    x[0, 2] = -math.inf\n    return F.cross_entropy(x, y)",
        "compat.cross_entropy(",
    ),
    "a mask that is added": (
        "return F.cross_entropy(x + torch.full((3, 3), -np.inf).triu(1), y * 0)",
        "compat.cross_entropy(",
    ),
    "a network that masks": (
        "net = Masking()\n    return F.cross_entropy(net(x), (y + 1) % 3)",
        "compat.cross_entropy(",
    ),
    "a function that is given masked scores": (
        "s = x.clone()\n    s.masked_fill_(torch.eye(3).bool(), NEVER)\n"
        "    return loss_of(s, (y + 1) % 3)",
        "compat.nll_loss(",
    ),
    "a function of the program's by the name of one of torch's": (
        "return F.cross_entropy(sigmoid(x), (y + 1) % 3)",
        "compat.cross_entropy(",
    ),
    "a softmax behind the mask": (
        "s = x.masked_fill(x > 2, float('-inf'))\n    s = F.softmax(s, dim=-1)\n"
        "    return F.cross_entropy(s, y)",
        "ops.cross_entropy(",
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_masked_scores_is_torchs(name: str, tmp_path: Path) -> None:
    body, called = LOSSES[name]
    code = f"{_HEAD}def f(x: Tensor, y: Tensor):\n    {body}\n"
    port, _ = converted(tmp_path, {"net.py": code})
    run = "import json, net\nx = TENSOR([[0.0, 0.5, 1.0], [2.0, 1.5, 0.1], [1.0, 2.5, 2.0]])\n"
    expected, found = run_both(
        tmp_path, port, run + "print(json.dumps(net.f(x, TENSOR([0, 1, 2])).tolist()))"
    )
    assert called in (port / "net.py").read_text(encoding="utf-8")
    assert found == pytest.approx(expected, abs=1e-5)


_POLICY = """
import torch
import torch.nn.functional as F
from torch import nn


class Policy(nn.Module):
    def forward(self, x, mask):
        scores = x * 1
        scores[mask] = -torch.inf
        return RETURNED
"""
_STEP = """
import torch
import torch.nn.functional as F
from torch import nn
from policy import Policy

criterion = nn.NLLLoss()


def losses(net, x, mask, y):
    scores = net(x, mask)["scores"]
    return F.cross_entropy(scores, y), criterion(F.log_softmax(scores, -1), y)


def told():
    x, mask = torch.ones(2, 3), torch.tensor([[True, False, False], [False, True, False]])
    return [round(loss.item(), 4) for loss in losses(Policy(), x, mask, torch.tensor([1, 2]))]
"""


@pytest.mark.parametrize(
    ("returned", "is_runtime"),
    [
        pytest.param('{"scores": scores}', True, id="masked scores"),
        pytest.param('{"scores": F.softmax(scores, -1)}', False, id="shares of them"),
    ],
)
def test_a_network_of_another_file_masks(returned: str, is_runtime: bool, tmp_path: Path) -> None:
    files = {"policy.py": _POLICY.replace("RETURNED", returned), "step.py": _STEP}
    port, _ = converted(tmp_path, files)
    written = (port / "step.py").read_text()
    assert ("compat.cross_entropy(" in written) == is_runtime
    assert ("compat.NLLLoss" in written) == is_runtime
    of_torch, of_port = run_both(
        tmp_path, port, "import json, step; print(json.dumps(step.told()))"
    )
    assert of_port == of_torch
