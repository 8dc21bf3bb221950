"""The mindspore adapter keeps the guarantees that isograd relies on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd.frameworks.base import Framework, SideSpec
from isograd.frameworks.registry import open_framework
from isograd.tensors import tensor_value
from isograd.testing import FrameworkConformance, side_of

DATA = Path(__file__).resolve().parent.parent / "data"


class TestMindSpore(FrameworkConformance):
    """All guarantees of a framework that only plays the port."""

    has_arithmetics = False
    bookkeeping = frozenset(
        """_lazy_forward_pre_hook _lazy_forward_hook _lazy_backward_pre_hook _lazy_backward_hook
        _func_graph_flags _is_check_and_refresh _init_flag""".split()
    )

    def open(self) -> Framework:
        pytest.importorskip("mindspore")
        return open_framework("mindspore")

    def side(self) -> SideSpec:
        return side_of("mindspore", DATA / "conformance_mindspore.py")

    def modules(self, framework: Any) -> dict[str, Any]:
        return dict(framework._cells)


COUNTING = """
import mindspore as ms
from mindspore import nn, ops
from isograd.runtime import Module


class Counting(Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", ms.Tensor(0.0))
        self.scale = ms.Parameter(ms.Tensor([1.0]), name="scale")

    def construct(self, x):
        if self.training:
            self.steps += 1
        return x * self.scale * self.steps


def build():
    return Counting()


def loss(output, target):
    return (output - target).sum()


def optimizer(model):
    return nn.SGD(model.trainable_params(), 0.0)
"""


def test_a_buffer_that_forward_binds_anew_is_loaded_and_read(tmp_path: Path) -> None:
    """`self.steps += 1` makes another tensor in MindSpore, and the same one in torch."""
    pytest.importorskip("mindspore")
    (tmp_path / "net.py").write_text(COUNTING)
    framework = open_framework("mindspore")
    places = {"loss": "net.py:loss", "optimizer": "net.py:optimizer"}
    side = SideSpec("mindspore", "net.py:build", str(tmp_path), **places)
    framework.build(side, 0)
    before = framework.state()
    framework.start_training("one")
    given, target = {"0": tensor_value(np.ones(1, "f4"))}, [tensor_value(np.zeros(1, "f4"))]
    for steps in (1.0, 2.0):
        found = framework.train_step("one", None, given, target)
        assert [float(found[name].values) for name in ("loss", "state.steps")] == [steps, steps]
    for _ in range(2):
        found = framework.train_step("one", before, given, target)
        assert [float(found[name].values) for name in ("loss", "state.steps")] == [1.0, 1.0]
    framework.end_training()
    assert float(framework.state()["steps"].values) == 0.0
