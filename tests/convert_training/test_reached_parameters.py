"""Parameters that loops reach by way of Python's own functions are changed themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

REACHED = """
import itertools

import torch
from torch import nn
from torch.optim import Optimizer


class Decayed(Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self, closure=None):
        for group, k in zip(self.param_groups, range(9)):
            for i, p in enumerate(filter(lambda q: q.requires_grad, group["params"])):
                if p.grad is None:
                    continue
                p.mul_(1 - group["lr"])
                p.add_(p.grad, alpha=-group["lr"])


net, other = nn.Linear(2, 1), nn.Linear(2, 1)
for p in itertools.chain(net.parameters(), other.parameters()):
    nn.init.ones_(p)
for p in list(net.parameters()) + list(other.parameters()):
    p.data.mul_(0.5)
for p, q in zip(net.parameters(), other.parameters()):
    q.data = q.data * 0.9 + p.data * 0.1
with torch.no_grad():
    for p in reversed(list(net.parameters())):
        p.sub_(0.01)
    for p in [w for w in net.parameters() if w.ndim > 1]:
        p.add_(0.02)
    for name, p in filter(lambda pair: "bias" in pair[0], net.named_parameters()):
        p.mul_(2)
    for p in sorted(net.parameters(), key=lambda t: t.numel()):
        p.div_(1.5)
    for p in set(net.parameters()):
        p.add_(0.001)
    for p in map(lambda pair: pair[1], net.named_parameters()):
        p.mul_(1.01)
    for p in (w for m in net.modules() for w in m.parameters(recurse=False)):
        p.mul_(1.1)
    for p in dict(net.named_parameters()).values():
        p.mul_(1.2)
    params = {n: p for n, p in net.named_parameters()}
    params["weight"].mul_(1.3)
    for n in params:
        params[n].add_(0.1)

    [*net.parameters()][1].sub_(0.2)
    tuple(net.parameters())[0].mul_(0.7)
both = itertools.chain(net.parameters(), other.parameters())
opt = Decayed(list(filter(lambda p: p.requires_grad, both)))
losses = []
for k in range(3):
    opt.zero_grad()
    loss = (net(torch.ones(1, 2)) * other(torch.ones(1, 2))).sum()
    loss.backward()
    opt.step()
    losses.append(loss.item())
losses += [p.sum().item() for p in net.parameters()]
"""

LEAVES = """
import torch
import torch.nn.functional as F
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
        self.log_alpha = torch.tensor(-1.0)
        self.log_alpha.requires_grad = True
        self.bound = torch.zeros(1, requires_grad=True)
        self.opt = torch.optim.SGD([self.log_alpha, self.bound], lr=0.1)

    def learn(self, x):
        self.opt.zero_grad()
        loss = (self.log_alpha.exp() * x + self.bound).mean()
        loss.backward()
        self.opt.step()
        return loss.item()


def attacked(model, loader):
    found = []
    for data, target in loader:
        data, target = data * 1.5, target * 1
        data.requires_grad = True
        loss = F.cross_entropy(model(data), target)
        model.zero_grad()
        loss.backward()
        found.append(data.grad.data.abs().sum().item())
    return found


def made():
    agent, net = Agent(), nn.Linear(4, 3)
    for number, parameter in enumerate(net.parameters()):
        values = torch.arange(parameter.numel()).reshape(parameter.shape)
        parameter.data.copy_(0.3 * torch.sin(values + number))
    loader = [(torch.ones(1, 4) * k, torch.tensor([k])) for k in range(3)]
    numbers = [len(list(agent.parameters())), len(agent.state_dict())]
    return numbers + [agent.learn(torch.ones(3)) for _ in range(3)] + attacked(net, loader)
"""


def test_parameters_behind_pythons_functions(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"reached.py": REACHED})
    code = "import json, reached; print(json.dumps(reached.losses))"
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_tensors_that_begin_to_learn(tmp_path: Path) -> None:
    """In an attribute of a network, which is no parameter of it, and in a loop's name."""
    port, _ = converted(tmp_path, {"leaves.py": LEAVES})
    code = "import json, leaves; print(json.dumps(leaves.made()))"
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
