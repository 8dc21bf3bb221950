"""Networks that hold their optimizer, which is no module of torch's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

AGENT = """
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self, lr):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.optimizer = optim.Adam(self.parameters(), lr=lr)
        self.loss = nn.MSELoss()

    def forward(self, x):
        return self.fc(x)


class Agent:
    def __init__(self):
        self.net, self.target = Net(0.1), Net(0.1)
        for net in (self.net, self.target):
            for i, p in enumerate(net.parameters()):
                p.data.copy_(0.3 * torch.sin(torch.arange(p.numel()).reshape(p.shape) + i))

    def learn(self, x):
        self.net.optimizer.zero_grad()
        q = self.net(x)
        with torch.no_grad():
            t = self.target(x) + 1
        loss = self.net.loss(q, t)
        loss.backward()
        self.net.optimizer.step()
        for p, t in zip(self.net.parameters(), self.target.parameters()):
            t.data.copy_(0.9 * t.data + 0.1 * p.data)
        return loss.item()


agent = Agent()
x = torch.sin(torch.arange(12.0)).reshape(4, 3)
losses = []
for k in range(4):
    losses.append(agent.learn(x))
net = agent.net
names = [name for name, _ in net.named_parameters()]
sizes = [p.numel() for p in net.parameters()]
counts = [sum(sizes), len(list(net.modules())), len(list(net.children()))]
agent.target.load_state_dict(net.state_dict())
losses.append(sum(p.sum().item() for p in agent.target.parameters()))
"""

NETS = """
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR


class Own(optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-group["lr"])


class Net(nn.Module):
    def __init__(self, lr, optimizer=None):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.optimizer = Own(self.parameters(), lr=lr)
        self.sched = StepLR(self.optimizer, 1)
        self.other = optimizer

    def forward(self, x):
        return self.fc(x)



def made():
    first = Net(0.1)
    given = Net(0.1, first.optimizer)
    layer = nn.Linear(3, 2)
    layer.optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    found = []
    for net in (first, given, layer):
        names = [name for name, _ in net.named_parameters()]
        found.append([names, sorted(net.state_dict()), len(list(net.modules()))])
    return found
"""


def test_a_network_learns_by_its_own_optimizer(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"agent.py": AGENT})
    assert "ms.jit" in (port / "agent.py").read_text()
    code = "import json, agent; print(json.dumps([agent.names, agent.counts, agent.losses]))"
    expected, found = run_both(tmp_path, port, code)
    assert found[:2] == expected[:2]
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-4)


def test_optimizers_are_no_modules(tmp_path: Path) -> None:
    """Of a class of the project, given as an argument, set from outside."""
    port, _ = converted(tmp_path, {"nets.py": NETS})
    expected, found = run_both(tmp_path, port, "import json, nets; print(json.dumps(nets.made()))")
    assert found == expected
