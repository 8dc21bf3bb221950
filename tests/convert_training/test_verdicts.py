"""What the static graph was seen not to take keeps a loop eager; what it takes beside is right."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

PROGRAM = """
import torch
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        v = self.fc(x)
        return FORWARD


def distance(out):
    return F.ctc_loss(
        F.log_softmax(out.reshape(4, 2, 5), -1), torch.tensor([[1, 2], [3, 4]]),
        torch.tensor([4, 4]), torch.tensor([2, 2]),
    )


net = Net()
with torch.no_grad():
    for k, p in enumerate(net.parameters()):
        p.copy_(0.3 * torch.sin(torch.arange(float(p.numel())).reshape(p.shape) + k))
criterion = nn.CTCLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for k in range(3):
    x = torch.cos(torch.arange(32.0).reshape(8, 4) * 1.3 + k)
    optimizer.zero_grad()
    out = net(x)
    loss = LOSS
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""


def program(forward: str, loss: str) -> str:
    text = PROGRAM.replace("FORWARD", forward).replace("LOSS", loss)
    return text if "criterion(" in loss else text.replace("criterion = nn.CTCLoss()\n", "")


def said_of(tmp_path: Path, text: str) -> tuple[Path, str]:
    """The port, and why its loop stays eager; empty where it compiles."""
    port, report = converted(tmp_path, {"net.py": text})
    return port, "".join(f.message for f in report.findings if f.code == "eager-training")


def assert_trained_alike(tmp_path: Path, port: Path) -> None:
    code = "import json, net; print(json.dumps(net.losses))"
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("forward", "loss", "api"),
    [
        pytest.param("torch.linalg.eigh(v @ v.T)[0]", "out.pow(2).mean()", "eigh", id="network"),
        pytest.param("v", "distance(out)", "ctc_loss", id="a function that the loop calls"),
        pytest.param(
            "v",
            "F.multilabel_margin_loss(out, torch.tensor([[1, 0, -1, 2, 3]] * 8))",
            "multilabel_margin_loss",
            id="the loop itself",
        ),
        pytest.param(
            "F.log_softmax(v.reshape(4, 2, 5), -1)",
            "criterion(out, torch.tensor([[1, 2], [3, 4]]), torch.tensor([4, 4]), "
            "torch.tensor([2, 2]))",
            "CTCLoss",
            id="a layer, made elsewhere",
        ),
        pytest.param(
            "v + (torch.unique((v * 3).round().detach())).sum()", "out.pow(2).mean()", "unique",
            id="values that differ",
        ),
    ],
)  # fmt: skip
def test_a_loop_that_the_graph_does_not_take_stays_eager(
    forward: str, loss: str, api: str, tmp_path: Path
) -> None:
    port, said = said_of(tmp_path, program(forward, loss))
    assert re.search(rf"{api} (is refused|has other values)", said), said
    if api == "ctc_loss":
        assert_trained_alike(tmp_path, port)


def test_what_is_counted_beside_the_loss_takes_no_gradient_from_it(tmp_path: Path) -> None:
    edges = "torch.tensor([-0.1, 0.0, 0.1])"
    beside = (
        "torch.histc(v.detach(), 4)",
        f"torch.searchsorted({edges}, v)",
        f"torch.bucketize(v, {edges})",
        "torch.isin(v.round(), torch.tensor([0.0, 1.0]))",
    )
    loss = "out[0].pow(2).mean() + sum(more.float().mean() for more in out[1:]) * 0.1"
    port, said = said_of(tmp_path, program(", ".join(("v", *beside)), loss))
    assert not said
    assert_trained_alike(tmp_path, port)
