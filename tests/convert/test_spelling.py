"""A comment, a local name or a function's name that is no API changes a port in nothing else."""

from __future__ import annotations

import re

import pytest
from tests.convert.support import port_of

NETWORK = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, bias=False)

    def forward(self, x):
        size = x.shape[0]
        return self.conv(x).view(size, -1)


def clip_all(tensors, limit):
    for tensor in tensors:
        kept = tensor.data
        kept.clamp_(-limit, limit)


def total(table, values):
    width = table["width"]
    width *= values
    return width


def moved(values, speed):
    for value in values:
        value -= speed * value.grad


def distance(one, other):
    return torch.abs(one - other).mean()
"""
COMMENT = "# see .weight in the paper: fft, amplitude, train(), loss.backward(), Dropout"


def _renamed(code: str, old: str, new: str) -> str:
    return re.sub(rf"\b{old}\b", new, code)


@pytest.mark.parametrize("line", range(1, 16))
def test_a_comment_changes_nothing(line: int) -> None:
    lines = NETWORK.split("\n")
    port, _ = port_of("\n".join([*lines[:line], COMMENT, *lines[line:]]))
    assert port.replace(f"{COMMENT}\n", "") == port_of(NETWORK)[0]


def test_a_comment_behind_an_import_stays_where_it_was() -> None:
    port, findings = port_of(f"import torch  {COMMENT}\nx = torch.ones(2)\n")
    assert COMMENT in port
    assert "pass" not in port
    assert not findings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("clip_all", "timestep_clip", id="function"),
        pytest.param("clip_all", "train_step", id="function-that-says-train"),
        pytest.param("moved", "init", id="function-that-said-move"),
        pytest.param("tensor", "weight", id="loop-variable"),
        pytest.param("tensors", "params", id="argument"),
        pytest.param("kept", "w", id="name-of-data"),
        pytest.param("values", "stride", id="argument-that-multiplies"),
        pytest.param("value", "param", id="changed-by-its-gradient"),
        pytest.param("one", "spectrum", id="operand"),
        pytest.param("distance", "amplitude_loss", id="function-of-words"),
    ],
)
def test_a_name_changes_that_name_alone(old: str, new: str) -> None:
    port, findings = port_of(_renamed(NETWORK, old, new))
    expected, before = port_of(NETWORK)
    assert port == _renamed(expected, old, new)
    assert [finding.code for finding in findings] == [finding.code for finding in before]
