"""Several statements on one line: each of a step gets a line of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows

HEAD = """
import torch; from torch import nn

net = nn.Linear(3, 1)
for p in net.parameters(): p.data.fill_(0.5); p.data.mul_(2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.cos(torch.arange(24.0)).view(2, 4, 3)
"""
LOOPS = {
    "three on one line": """
for x in data:
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
""",
    "the loss beside them": """
for x in data:
    loss = net(x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step();
    print(loss.item())
""",
    "behind the colon": """
for x in data: loss = net(x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step(); print(loss.item())
""",  # noqa: E501  # a line of several statements
    "in a function": """
def train(data):
    for x in data:
        text = "a; b"; loss = net(x).pow(2).mean()  # one; two
        opt.zero_grad(); loss.backward() ; opt.step() ;  # three
        print(loss.item())


train(data)
""",
    "under a condition": """
for x in data:
    loss = net(x).pow(2).mean()
    if True: opt.zero_grad(); loss.backward(); opt.step()
    print(loss.item())
""",
}


@pytest.mark.parametrize("name", LOOPS)
def test_statements_of_one_line_become_a_step(name: str, tmp_path: Path) -> None:
    port = assert_follows(HEAD + LOOPS[name], tmp_path)
    assert port.text.count("@ms.jit") == 1
    (other,) = (line for line in port.text.splitlines() if line.startswith("for p in "))
    assert "; " in other  # it is no part of a step
