"""Penalties on a network's weights, in functions that a compiled step calls."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

LOOP = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in zip(X, Y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y) + {penalty}
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("defined", "penalty"),
    [
        pytest.param(
            """
def penalty(model, weight=0.1):
    return weight * sum((p ** 2).sum() for p in model.parameters())
net = make(1)
""",
            "penalty(net)",
            id="a sum in a function",
        ),
        pytest.param(
            """
def penalty(model):
    total = 0
    for name, p in model.named_parameters():
        if "bias" not in name:
            total = total + p.abs().sum()
    return total
net = make(1)
""",
            "0.1 * penalty(net)",
            id="names",
        ),
        pytest.param(
            """
class Penalty:
    def __init__(self, model):
        self.start = {n: p.detach().clone() for n, p in model.named_parameters()}
    def __call__(self, model):
        total = 0
        for n, p in model.named_parameters():
            total += ((p - 0.5 * self.start[n]) ** 2).sum()
        return total
net = make(1)
penalty = Penalty(net)
""",
            "penalty(net)",
            id="an object with the first weights",
        ),
        pytest.param(
            """
class Penalty(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def forward(self):
        return sum([p.norm() for p in self.model.parameters()])
net = make(1)
penalty = Penalty(net)
""",
            "penalty()",
            id="a module that holds the network",
        ),
        pytest.param(
            """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = make(1)
    def forward(self, x):
        return self.layer(x)
    def penalty(self):
        return sum(p.pow(2).sum() for p in self.parameters())
net = Net()
""",
            "0.1 * net.penalty()",
            id="a method of the network",
        ),
        pytest.param(
            """
def distance(a, b):
    return sum(((p - q.detach()) ** 2).sum() for p, q in zip(a.parameters(), b.parameters()))
def penalty(model, old, weight):
    return weight * distance(model, old)
net, old = make(1), make(2)
""",
            "penalty(net, old, 0.1)",
            id="another network that is handed on",
        ),
    ],
)
def test_they_are_part_of_the_step(defined: str, penalty: str, tmp_path: Path) -> None:
    converted = assert_follows(LAYERS + defined + LOOP.format(penalty=penalty), tmp_path)
    assert "ms.jit" in converted.text
