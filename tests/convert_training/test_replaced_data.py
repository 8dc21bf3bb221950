"""`p.data = values` reaches a step that is compiled, and what was read of `p.data` stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

import mindspore as ms
from tests.convert_training.running import assert_follows

from isograd.runtime.replaced_data import data_read, replace_data

_HEAD = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
for i, p in enumerate(net.parameters()):
    p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) + i) * 0.5)
xs = [torch.cos(torch.arange(12.0).view(4, 3) * k) for k in range(1, 4)]
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
_TRAINING = """
for epoch in range(3):
    for x in xs:
        optimizer.zero_grad()
        loss = (net(x) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        EACH
        print(loss.item())
    BETWEEN
"""
#: The average of weights in the form that many public repositories copy.
_AVERAGE = """
class EMA:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {}
        self.backup = {}

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                new_average = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                self.shadow[name] = new_average.clone()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.backup
                param.data = self.backup[name]
        self.backup = {}
"""
_CLAMPED = """
net[0].weight.data = net[0].weight.data * 0.5
    for p in net[2].parameters():
        p.data = p.data.clamp(-0.3, 0.3)
"""
_SWAPPED = """
ema.apply_shadow()
    with torch.no_grad():
        print((net(xs[0]) - 1).pow(2).mean().item())
    ema.restore()
"""


@pytest.mark.parametrize(
    ("head", "each", "between"),
    [
        pytest.param("", "pass", _CLAMPED, id="weights that are clamped between epochs"),
        pytest.param(
            f"{_AVERAGE}\nema = EMA(net, 0.5)\nema.register()\n", "ema.update()", _SWAPPED,
            id="an average that takes the weights' place for an evaluation",
        ),
    ],
)  # fmt: skip
def test_a_compiled_step_sees_the_data(head: str, each: str, between: str, tmp_path: Path) -> None:
    training = _TRAINING.replace("EACH", each).replace("BETWEEN", between.strip())
    converted = assert_follows(_HEAD + head + training, tmp_path)
    assert "@ms.jit" in converted.text


def test_data_that_was_read_follows_until_it_is_replaced() -> None:
    """As in torch: a step changes it, other data of the Parameter does not."""
    parameter = ms.Parameter(ms.Tensor([1.0, 2.0]), name="p")
    first, second = data_read(parameter), data_read(parameter)
    ms.ops.assign_add(parameter, ms.Tensor([1.0, 1.0]))
    assert first.asnumpy().tolist() == [2.0, 3.0]
    assert replace_data(parameter, ms.Tensor([7.0, 8.0])) is parameter
    third = data_read(parameter)
    ms.ops.assign_add(parameter, ms.Tensor([1.0, 1.0]))
    assert [one.asnumpy().tolist() for one in (first, second)] == [[2.0, 3.0]] * 2
    assert third.asnumpy().tolist() == parameter.asnumpy().tolist() == [8.0, 9.0]
    replace_data(parameter, first)
    np.testing.assert_array_equal(parameter.asnumpy(), [2.0, 3.0])
    replace_data(parameter, np.ones(3, np.float32))
    assert parameter.shape == (3,)
