"""What a network's pass says that no static graph has, and the port writes otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_both

SCRIPT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        nn.init.constant_(self.fc.weight, 0.5)
        nn.init.constant_(self.fc.bias, 0.5)

    def forward(self, x):
        y = self.fc(x)
        z = y * 2
        del y
        row, col = [], []
        for i in range(3):
            row.append(i), col.append(i * 2)
        if (len(row) > 2) ^ (x.shape[0] > 5):
            z = z + row[1] + col[2]
        if (len(row) > 2) ^ (x.shape[0] > 0):
            del z
            z = x
        return z


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
x = torch.tensor([[1.0, 2.0, 3.0]])
losses = []
for _ in range(3):
    optimizer.zero_grad()
    loss = (net(x) - 3).pow(2).sum()
    loss.backward()
    optimizer.step()
    losses.append(round(loss.item(), 3))
"""


def test_a_pass_with_what_no_graph_has_compiles(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"net.py": SCRIPT})
    assert report.findings == ()
    text = (port / "net.py").read_text()
    assert "@ms.jit" in text
    run = "import json, net; print(json.dumps(net.losses))"
    of_torch, of_port = run_both(tmp_path, port, run)
    assert of_port == pytest.approx(of_torch, rel=1e-4)


@pytest.mark.parametrize(
    "line",
    [
        "x = [x]; del x[0]",
        "del self.seen",
        "global shared; del shared",
    ],
)
def test_what_changes_values_stays_eager(line: str, tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": SCRIPT.replace("del y", line)})
    assert "@ms.jit" not in (port / "net.py").read_text()
    assert [one.code for one in report.findings] == ["eager-training"]
