"""Gradients by tensors that were computed, as the inner steps of meta learning take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.convert.support import converted, run_both

STEPS = """
import torch
import torch.nn.functional as F
from torch import nn


def by_computed():
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    a, unused = weight * 3, weight.exp()
    b = a**2
    found = [*torch.autograd.grad(b.sum(), [a, weight], retain_graph=True)]
    found += torch.autograd.grad(b, a, torch.tensor([1.0, 0.5]), retain_graph=True)
    one, none = torch.autograd.grad(b.sum(), [a, unused], allow_unused=True, retain_graph=True)
    found.append(one)
    first, second = torch.split(weight * 2, 1)
    found += torch.autograd.grad((first * 3 + second * 5).sum(), [first, second])
    try:
        torch.autograd.grad(b.sum(), [a, unused], retain_graph=True)
    except RuntimeError:
        b.sum().backward()
    return [*(value.tolist() for value in found), none, weight.grad.tolist()]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Linear(3, 1)
        for number, parameter in enumerate(self.parameters()):
            values = torch.linspace(-1, 1, parameter.numel()) + 0.1 * number
            parameter.data.copy_(values.reshape(parameter.shape))

    def forward(self, x, weights):
        hidden = torch.tanh(F.linear(x, weights[0], weights[1]))
        return F.linear(hidden, weights[2], weights[3])


def inner_steps():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.tensor([[1.0, 2.0], [0.5, -1.0]]), torch.tensor([[1.0], [0.0]])
    losses = []
    for _ in range(2):
        fast = list(net.parameters())
        for _ in range(3):
            loss = F.mse_loss(net(x, fast), y)
            gradients = torch.autograd.grad(loss, fast)
            fast = [w - 0.2 * g for w, g in zip(fast, gradients)]
        loss = F.mse_loss(net(x, fast), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.sum().item() for parameter in net.parameters()]
"""


def test_gradients_by_computed_tensors(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"steps.py": STEPS})
    code = "import json, steps; print(json.dumps([steps.by_computed(), steps.inner_steps()]))"
    expected, found = run_both(tmp_path, port, code)
    assert found[0] == expected[0]
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
