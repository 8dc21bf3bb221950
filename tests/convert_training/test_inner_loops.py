"""Names that a loop within a step binds, and what stands behind it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

HEAD = f"""{LAYERS}
import torch.nn.functional as F


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.state, self.out = make(1), make(2)

    def forward(self, x, h):
        h = torch.tanh(self.state(x) + h)
        return self.out(h), h


net = Cell()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
sequences = torch.sin(torch.arange(96.0)).view(2, 3, 4, 4)


def last_of(net, x):
    h = torch.zeros(4, 4)
    for t in range(x.shape[0]):
        out, h = net(x[t], h)
    return out


def train(x, y):
    FORWARD
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return out, loss.item()


for x, y in zip(sequences, Y):
    out, loss = train(x, y)
    print(loss, out.sum().item(), sep="\\n")
"""
OWN = "h = torch.zeros(4, 4)\n    for t in range(x.size(0)):\n        out, h = net(x[t], h)"
LOOP = HEAD[: HEAD.index("def train")] + (
    """
for x, y in zip(sequences, Y):
    FORWARD
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), out.sum().item(), sep="\\n")
"""
)


@pytest.mark.parametrize(
    ("program", "forward"),
    [
        pytest.param(HEAD, OWN, id="in a function that is a step"),
        pytest.param(HEAD, "out = last_of(net, x)", id="in a function that a step calls"),
        pytest.param(LOOP, OWN, id="in a loop"),
    ],
)
def test_the_last_value_of_a_loop(program: str, forward: str, tmp_path: Path) -> None:
    converted = assert_follows(program.replace("FORWARD", forward), tmp_path)
    assert "@ms.jit" in converted.text
    assert "out = None" in converted.text


def test_a_value_of_the_round_before_is_not_found(tmp_path: Path) -> None:
    early = "gain = net(x[0] * out.detach(), x[0])[0].mean() if number else 1.0\n    "
    early += OWN.replace("x[t]", "x[t] * gain")
    start = "for number, (x, y) in enumerate(zip(sequences, Y)):"
    program = LOOP.replace("for x, y in zip(sequences, Y):", start)
    converted = assert_follows(program.replace("FORWARD", early), tmp_path)
    (finding,) = (f for f in converted.report.findings if f.code == "eager-training")
    assert "stays eager" in finding.message
