"""Tensors that an optimizer is given by themselves, in compiled steps."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

TEMPERATURE = """
net = make(1)
log_alpha = torch.zeros(1, requires_grad=True)
alpha = log_alpha.exp().item()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
a_optimizer = torch.optim.Adam([log_alpha], lr=0.01)
for x in X:
    entropy = net(x).softmax(-1).log().mean(-1)
    loss = (alpha * entropy).mean() + net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        entropy = net(x).softmax(-1).log().mean(-1)
    alpha_loss = (-log_alpha.exp() * (entropy + 2.0)).mean()
    a_optimizer.zero_grad()
    alpha_loss.backward()
    a_optimizer.step()
    alpha = log_alpha.exp().item()
    print(loss.item(), alpha_loss.item(), alpha, sep="\\n")
"""
IMAGE = """
net = make(1)
for p in net.parameters():
    p.requires_grad_(False)
target = torch.sin(torch.arange(16.0)).view(4, 4)


def gram(x):
    f = x.view(4, -1)
    return f @ f.t() / 16


image = X[0].clone().requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=0.05)
for step in range(3):
    optimizer.zero_grad()
    loss = 0
    for f, t in zip([net(image), image * 2], [target, X[1]]):
        loss += nn.functional.mse_loss(gram(f), t)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(-0.5, 0.5)
    print(loss.item(), image.sum().item(), sep="\\n")
"""
AGENT = """
class Agent:
    def __init__(self):
        self.net = make(1)
        self.scale = torch.ones(4, requires_grad=True)
        self.optimizer = torch.optim.SGD([*self.net.parameters(), self.scale], lr=0.1)

    def update(self, x, y):
        loss = nn.functional.cross_entropy(self.net(x) * self.scale, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


agent = Agent()
for x, y in zip(X, Y):
    print(agent.update(x, y), agent.scale.sum().item(), sep="\\n")
"""
GLOBAL = """
shift = torch.zeros(4, requires_grad=True)
net = make(1)
optimizer = torch.optim.SGD([{"params": net.parameters()}, {"params": [shift], "lr": 0.2}], lr=0.1)


def moved(x):
    return x + shift


for x, y in zip(X, Y):
    loss = nn.functional.cross_entropy(net(moved(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), shift.sum().item(), sep="\\n")
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            GLOBAL.replace("(4, requires_grad=True)", "(requires_grad=True, size=(4,))"),
            id="a mark before another argument",
        ),
        pytest.param(TEMPERATURE, id="a temperature beside a network"),
        pytest.param(IMAGE, id="an image, which is clamped after each step"),
        pytest.param(AGENT, id="an attribute of an object"),
        pytest.param(GLOBAL, id="what a function of the step reads"),
    ],
)
def test_they_learn_in_a_compiled_step(program: str, tmp_path: Path) -> None:
    converted = assert_follows(LAYERS + program, tmp_path)
    assert "@ms.jit" in converted.text
    assert "record_gradients" not in converted.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "shift = torch.zeros(4, requires_grad=True)",
            "shift = torch.zeros(4, requires_grad=True)\nif len(X) > 5:\n    shift = torch.ones(4)",
            id="a name that is bound again",
        ),
        pytest.param(
            "    print(loss.item()",
            "    with torch.no_grad():\n        print(shift.grad.sum().item())\n"
            "    print(loss.item()",
            id="a gradient that is read",
        ),
    ],
)
def test_others_stay_eager(old: str, new: str, tmp_path: Path) -> None:
    converted = assert_follows(LAYERS + GLOBAL.replace(old, new), tmp_path)
    assert "record_gradients" in converted.text


def test_a_tensor_of_a_network_is_no_parameter_of_it(tmp_path: Path) -> None:
    network = AGENT.replace("class Agent:", "class Agent(nn.Module):").replace(
        "self.net = make", "super().__init__()\n        self.net = make"
    )
    converted = assert_follows(LAYERS + network + "print(len(list(agent.parameters())))", tmp_path)
    assert "record_gradients" in converted.text
