"""Writes through `.data`, and where nothing is recorded: the values change, the gradient stays."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows, convert

UNSEEN = """def unseen(e):
    e.data[0] = 1.0
"""
SCRIPT = """
import numpy as np
import torch
from torch import nn

MASK = torch.tensor([[True, False, False]] * 2)


def helper(e, mask):
    e.data[mask] = -3.0
    e.data += 1
    return e


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 3, bias=False)
        nn.init.constant_(self.l.weight, 1.0)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x, mask):
        __BODY__


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.arange(4.0).reshape(2, 2) / 4
for _ in range(3):
    optimizer.zero_grad()
    loss = (net(x, MASK) * torch.tensor([1.0, 2.0, 4.0])).sum()
    loss.backward()
    optimizer.step()
    __PRINTED__
for row in net.l.weight.tolist():
    for number in row:
        print(number)
"""
BODIES = {
    "a mask of scores, which are a view": """
e = self.l(x.unsqueeze(0)).squeeze(0)
e.data.masked_fill_(mask, -float("inf"))
return torch.softmax(e, 1)
""",
    "elements": """
y = self.l(x)
y.data[:, 0] = 0.0
y.data[:, 1] += 2.0
y.data[0].mul_(3)
y.data[mask] = 5.0
return y * y
""",
    "all values": """
y = self.l(x)
y.data.copy_(y.data * 2)
z = helper(y * 1, mask)
z.data = z.data * 2
return y * z
""",
    "elements of a list and of a tuple": """
outputs = [self.l(x), self.l(x) * 2]
outputs[0].data.masked_fill_(mask, 0.0)
pair = (self.l(x), 2)
pair[0].data.add_(1)
return outputs[0] ** 2 + outputs[1] + pair[0] ** 2
""",
    "what a view sees": """
y = self.l(x)
z = y.view(-1)
y.data.mul_(2)
return z.view(2, 3) ** 2
""",
    "a buffer and a Parameter": """
self.mean.data[1] += 1
self.mean.data.add_(1)
self.mean.data += 1
self.scale.data[0] = 5.0
y = self.l(x)
return y * y * self.scale + self.mean
""",
    "positions of numpy's": """
z = self.l(x)
z[np.array([1])] = z[0] * 2
return z * z
""",
}
UNRECORDED = """
y = self.l(x)
with torch.no_grad():
    y.mul_(2)
z = self.l(x).view(2, 3)
with torch.no_grad():
    z.masked_fill_(mask, 3.0)
    z[mask] = 5.0
    s = z * 2
    s.add_(1)
    z += 1
    z.copy_(z * 2)
v = z.view(-1)
with torch.no_grad():
    z[z > 2] *= 2
return y * s + z * z + v.view(2, 3)
"""


def script(body: str, printed: str) -> str:
    lines = body.strip().replace("\n", "\n        ")
    return SCRIPT.replace("__BODY__", lines).replace("__PRINTED__", printed)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_write_through_data_keeps_the_gradient_where_it_is_recorded(
    body: str, tmp_path: Path
) -> None:
    """Held gradients keep the step eager."""
    printed = "held = net.l.weight.grad\n    print(held.sum().item())"
    done = assert_follows(script(body, printed), tmp_path)
    assert "make_training_step" not in done.text


@pytest.mark.parametrize("body", [body for name, body in BODIES.items() if "view sees" not in name])
def test_a_write_through_data_counts_in_a_compiled_step(body: str, tmp_path: Path) -> None:
    done = assert_follows(script(body, "print(loss.item())"), tmp_path)
    assert "make_training_step" in done.text


def test_a_change_where_nothing_is_recorded_keeps_the_gradient(tmp_path: Path) -> None:
    """A new tensor would have none ("nothing was recorded")."""
    assert_follows(script(UNRECORDED, "print(loss.item())"), tmp_path)


def test_what_a_compiled_step_does_not_reach_is_told(tmp_path: Path) -> None:
    body = BODIES["what a view sees"]
    text = script(body, "print(loss.item())").replace("class Net", f"{UNSEEN}\n\nclass Net")
    done = convert(text, tmp_path)
    assert done.left == [
        "e is an argument: within a compiled step its caller does not see this change",
        "y and z share memory in torch; within a compiled step this change does not reach z",
    ]
