"""Numbers that numpy or Python draws in a function that a compiled step calls."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

PROGRAM = f"""{LAYERS}
import random
import numpy as np

Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor


HELPER


net = make(1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
np.random.seed(0)
random.seed(0)
for x in X:
    z = Tensor(np.random.normal(0, 1, (x.shape[0], 4)))
    optimizer.zero_grad()
    loss = net(x).pow(2).mean() + CALL
    loss.backward()
    optimizer.step()
    print(loss.item())
print(np.random.random())
print(random.random())
"""
PENALTY = """def penalty(net, real, fake):
    alpha = Tensor(np.random.random((real.size(0), 1)))
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    score = net(mixed)
    ones = Tensor(real.shape[0], 4).fill_(1.0)
    gradients = torch.autograd.grad(score, mixed, grad_outputs=ones, create_graph=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()"""
SHARE = """def share(net, real):
    k = random.random()
    return net(real * k).mean()"""


def _reasons(folder: Path, helper: str, call: str) -> list[str]:
    text = PROGRAM.replace("HELPER", helper).replace("CALL", call)
    converted = assert_follows(text, folder)
    found = [f for f in converted.report.findings if f.code == "eager-training"]
    assert bool(found) != ("@ms.jit" in converted.text)
    return [f.message.partition(": ")[2] for f in found]


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        pytest.param(PENALTY, "10 * penalty(net, x.data, z)", id="a gradient penalty"),
        pytest.param(SHARE, "share(net, x)", id="a number of Python's"),
    ],
)
def test_what_a_function_draws_at_its_start(helper: str, call: str, tmp_path: Path) -> None:
    assert _reasons(tmp_path, helper, call) == []


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        pytest.param(
            SHARE.replace("    return", "    if k > 0.5:\n        k = random.random()\n    return"),
            "share(net, x)",
            id="drawn again under a condition",
        ),
        pytest.param(
            SHARE.replace("random.random()", "random.random() * len(real)"),
            "share(net, net(x).detach())",
            id="by a value of the step",
        ),
        pytest.param(
            f"{SHARE}\n\n\nheld = share", "share(net, x)", id="a function under another name"
        ),
    ],
)
def test_any_other_draw_stays_eager(helper: str, call: str, tmp_path: Path) -> None:
    (reason,) = _reasons(tmp_path, helper, call)
    assert "random" in reason
