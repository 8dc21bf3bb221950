"""The torch adapter keeps the guarantees that isograd relies on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isograd.frameworks.base import Framework, ReplayRequest, SideSpec
from isograd.frameworks.registry import open_framework
from isograd.tensors import TensorValue
from isograd.testing import FrameworkConformance, side_of

DATA = Path(__file__).resolve().parent.parent / "data"


class TestTorch(FrameworkConformance):
    """All guarantees."""

    def open(self) -> Framework:
        pytest.importorskip("torch")
        return open_framework("torch")

    def side(self) -> SideSpec:
        return side_of("torch", DATA / "conformance_torch.py")


IN_PLACE = """
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))

    def forward(self, x):
        y = x * 2
        return y + self.block(y)


def build():
    return Residual()
"""


def test_an_input_that_a_pinned_call_changes_is_changed_in_a_replay(tmp_path: Path) -> None:
    """Else the sum would be of the unchanged y, and a faithful port would differ from it."""
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(IN_PLACE)
    framework = open_framework("torch")
    framework.build(SideSpec("torch", "net.py:build", str(tmp_path)), 0)
    x = TensorValue(np.array([[-1.0, 2.0, -3.0, 4.0]], np.float32), "float32")
    framework.forward("eval", {"0": x}, [], record=True)
    calls = framework.calls()
    (block,) = [i for i, call in enumerate(calls) if call.module == "block"]
    again = framework.replay(ReplayRequest(0, (block,), (), ((),)))
    recorded = framework.recorded(0)["output.0"]
    np.testing.assert_array_equal(again["output.0"].values, recorded.values)
    np.testing.assert_array_equal(again["input_of.0.0"].values, 2 * x.values)
