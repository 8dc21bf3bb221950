"""`m.weight += 1` and `m.weight.data *= 2` of layers that name their weights otherwise, and of
objects that hold leaves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows

_SCRIPT = """
import torch
from torch import nn

norm, plain = nn.BatchNorm1d(2), nn.Linear(2, 2)
net = nn.Sequential(nn.Embedding(4, 2), norm, plain)


def init(m):
    if isinstance(m, (nn.Embedding, nn.BatchNorm1d)):
        m.weight.data = torch.ones_like(m.weight)
        m.weight.data *= 2.0
        m.weight.data += m.weight.data
        with torch.no_grad():
            m.weight += 1
            m.weight *= m.weight


@torch.no_grad()
def double(m):
    if hasattr(m, "weight"):
        m.weight *= 2


net.apply(init)
double(norm)
with torch.no_grad():
    plain.weight.fill_(1.0)
    plain.weight += 1
    norm.weight -= 3
norm.bias.data -= 2
norm.running_mean += 2
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
net[1](net[0](torch.tensor([0, 1]))).sum().backward()
optimizer.step()
for values in (net[0].weight, norm.weight, norm.bias, norm.running_mean, plain.weight):
    print(values.sum().item())
"""


def test_weights_change_in_place_by_their_own_names(tmp_path: Path) -> None:
    """A weight stays the Parameter that learns, of a known layer as of an unknown one."""
    assert_follows(_SCRIPT, tmp_path)


_LEAVES = """
import torch


class Layer:
    def __init__(self):
        self.w = torch.ones(2, requires_grad=True)
        self.count = 0


class Stack:
    def __init__(self, layers):
        self.layers = layers

    def parameters(self):
        return [layer.w for layer in self.layers]


def shrink(layer):
    with torch.no_grad():
        layer.w -= 0.25
        layer.w.mul_(0.5)
        layer.count += 1


stack = Stack([Layer(), Layer()])
with torch.no_grad():
    stack.layers[-1].w *= 0.5
optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
for _ in range(2):
    loss = (stack.layers[0].w * stack.layers[1].w).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shrink(stack.layers[0])
for layer in stack.layers:
    print(layer.w.sum().item())
    print(layer.count)
"""


def test_a_leaf_of_an_object_that_is_not_followed_stays_the_leaf(tmp_path: Path) -> None:
    """`stack.layers[-1].w *= 0.5` where nothing is recorded made a new tensor, which learns not."""
    assert_follows(_LEAVES, tmp_path)
