"""Tensors that a gradient is asked of learn, wherever they are made, held and asked."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows

#: Bind `w` and `b`, tensors of two elements of which both learn.
MAKING = {
    "under a condition": "w = torch.ones(2, requires_grad=True) if READY else None",
    "or": "w = None or torch.ones(2, requires_grad=True)",
    "a function of one expression": "w = (lambda n: torch.ones(n, requires_grad=True))(2)",
    "a name in an expression": "print(len(w := torch.ones(2, requires_grad=True)))",
    "a default": "def made(x=torch.ones(2, requires_grad=True)):\n    return x\nw = made()",
    "by a value of the run": (
        "def made(learns):\n    return torch.ones(2, requires_grad=learns)\nw = made(READY)"
    ),
    "by named arguments": "options = dict(requires_grad=True)\nw = torch.ones(2, **options)",
    "of another's memory": "w = torch.autograd.Variable(torch.ones(2), requires_grad=True)",
    "a loop that sets it": "w = torch.ones(2)\nfor t in [w]:\n    t.requires_grad = True",
    "a loop that asks for it": "w = torch.ones(2)\nfor t in [w]:\n    t.requires_grad_()",
    "a list that asks for it": "w = torch.ones(2)\n[t.requires_grad_() for t in (w, w)]",
    "a dictionary": (
        "held = {'w': torch.ones(2)}\nfor t in held.values():\n"
        "    t.requires_grad = True\nw = held['w']"
    ),
    "another name": "w = torch.ones(2)\nother = w\nother.requires_grad_()",
}
SCRIPT = """
import torch

READY = True
b = torch.zeros(2, requires_grad=True)
__MAKING__
for _ in range(2):
    loss = (w * 2 + b).pow(2).sum()
    loss.backward()
    for p in [w, b]:
        if p.grad is not None:
            p.data -= 0.1 * p.grad
            p.grad = None
print(w.sum().item())
print(b.sum().item())
"""


@pytest.mark.parametrize("making", MAKING)
def test_it_learns_as_in_torch(making: str, tmp_path: Path) -> None:
    assert_follows(SCRIPT.replace("__MAKING__", MAKING[making]), tmp_path)


MODULE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.b = torch.zeros(2, requires_grad=True) if bias else None

    def forward(self, x):
        return self.w * x + self.b


net = Net(True)
print(len(list(net.parameters())))
optimizer = torch.optim.SGD([*net.parameters(), net.b], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.ones(2)).pow(2).sum().backward()
    optimizer.step()
print(net.b.sum().item())
"""


def test_a_modules_plain_tensor_is_no_parameter_of_it(tmp_path: Path) -> None:
    assert_follows(MODULE, tmp_path)


APART = """
import torch

x = torch.ones(2)
y = torch.autograd.Variable(x, requires_grad=True)
z = x.detach().requires_grad_()
(x * y * z).sum().backward()
print(float(x.requires_grad))
print(y.grad.sum().item())
z.data = z.data + 5
print(x.sum().item())
"""


def test_what_it_is_made_of_does_not_learn(tmp_path: Path) -> None:
    assert_follows(APART, tmp_path)
