"""`backward(retain_graph=True)`, and networks that are asked before their step."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

LOOP = """
import torch.nn.functional as F

net = make(1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
h = torch.zeros(4, 4)
for x, y in zip(X, Y):
    BEFORE
    loss = F.cross_entropy(net(x + ADDED), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    BEHIND
    optimizer.step()
    print(loss.item())
"""


def _program(before: str = "pass", added: str = "0", behind: str = "pass") -> str:
    text = LOOP.replace("BEFORE", before.replace("\n", "\n    "))
    return LAYERS + text.replace("ADDED", added).replace("BEHIND", behind)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(_program(), id="nothing else goes back"),
        pytest.param(
            _program(
                "out = net(x)\nwith torch.no_grad():\n    best = net(-x).argmax(1)",
                "out * (best == y).float().view(-1, 1)",
            ),
            id="the network is asked between the forward part's lines",
        ),
    ],
)
def test_these_are_compiled(program: str, tmp_path: Path) -> None:
    assert "@ms.jit" in assert_follows(program, tmp_path).text


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        pytest.param(
            _program("h = torch.tanh(net(x).detach() + 0.5 * h)", "h").replace(
                "h = torch.zeros(4, 4)", "h = torch.zeros(4, 4, requires_grad=False)"
            ),
            "earlier rounds",
            id="a state that goes on",
        ),
        pytest.param(
            _program(behind="print(net(x).sum().item())"),
            "what the step changes is read",
            id="the network is asked before it is stepped",
        ),
    ],
)
def test_these_stay_eager(program: str, reason: str, tmp_path: Path) -> None:
    converted = assert_follows(program, tmp_path)
    (finding,) = (f for f in converted.report.findings if f.code == "eager-training")
    assert reason in finding.message
