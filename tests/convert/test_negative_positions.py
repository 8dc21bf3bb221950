"""The gradient of what a tensor of positions takes, negative ones among them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, port_of, run_original, run_port

_CODE = """
import numpy as np
import torch
from torch import nn

WEIGHTS = torch.tensor([1.0, 2.0, 4.0])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("order", torch.tensor([-1, 0, 1]))
        self.w = nn.Parameter(torch.ones(3))
        self.table = nn.Parameter(torch.ones(3, 2))

    def forward(self, x, given):
        changed = x * 1
        changed[given] *= 3
        found = (x[self.order] * WEIGHTS).sum() + (self.w[given] * 3).sum()
        found = found + x[torch.tensor(-1)] * 5 + (changed * WEIGHTS).sum()
        return found + (self.table[self.order.view(3, 1)] * WEIGHTS[:2]).sum()


def others(x: torch.Tensor, given):
    for one in given:
        x = x * x[one]
    count = torch.tensor([1, 3, 2])
    found = (x[count - 2] * WEIGHTS).sum() + (x[torch.arange(-1, 2)] * WEIGHTS).sum()
    found = found + (torch.take(x, torch.tensor([-1, 1])) * WEIGHTS[:2]).sum()
    found = found + (x[np.array([-1, 0])] * WEIGHTS[:2]).sum()
    return found + (x[given.to(torch.int32)] * WEIGHTS[:2]).sum()


"""
_TORCH = """
import torch, net
model, x, given = net.Net(), torch.tensor([1.0, 2.0, 3.0], requires_grad=True), [-1, 0]
(model(x, torch.tensor(given)) + net.others(x, torch.tensor(given))).backward()
print([t.grad.tolist() for t in (x, model.w, model.table)])
"""
_STEPS = """
import mindspore as ms, net
model = net.Net()
def loss(x, given):
    return model(x, given) + net.others(x, given)
graded = ms.value_and_grad(loss, 0, model.trainable_params())
def eager(x, given):
    return graded(x, given)
@ms.jit
def compiled(x, given):
    return graded(x, given)
"""
_MINDSPORE = """
import mindspore as ms, steps
_, (of_x, of_parameters) = steps.STEP(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([-1, 0]))
print([t.asnumpy().tolist() for t in (of_x, *of_parameters)])
"""


@pytest.mark.parametrize("step", ["eager", "compiled"])
def test_negative_positions_have_their_gradient(tmp_path: Path, step: str) -> None:
    """The gradient of MindSpore's `Gather` leaves negative positions out."""
    port, report = converted(tmp_path, {"net.py": _CODE})
    assert {one.code for one in report.findings} <= {"in-place-input"}
    (port / "steps.py").write_text(_STEPS)
    found = run_port(port, _MINDSPORE.replace("STEP", step))
    assert found == run_original(tmp_path, _TORCH)


_FROM_THE_FRONT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("order", torch.arange(3).view(-1))

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        kept, order = y.topk(2)
        first = torch.tensor([0, 2])
        first = first.view(-1) + 1
        drawn = torch.randint(0, 3, (4,))
        found = x[order] + x[kept.max(0)[1]] + x[self.order][:2] + x[y.sort().indices][:2]
        ends = x[-1], x[[-1, 0]], x[:, -1], x[y > 0], x[len(y) - 1]
        with torch.no_grad():
            quiet = x[y.long()]
        return found, ends, quiet, x[first // 2], x[drawn % 2], x[y.long().clamp(min=0)]
"""


def test_positions_from_the_front_are_written_as_they_stand() -> None:
    port, _ = port_of(_FROM_THE_FRONT)
    assert "compat.at(" not in port
    assert "from_front" not in port


@pytest.mark.parametrize(
    "change",
    ["first -= 3", "first[0] = -1", "first.sub_(1)", "first = first - 1", "first = other(first)"],
)
def test_positions_that_are_changed_may_be_negative(change: str) -> None:
    code = f"""
    import torch

    def f(x: torch.Tensor):
        first = torch.tensor([0, 2])
        {change}
        return x[first] * 2
    """
    # What another function gives may be no tensor: `at` asks where the port runs.
    reads = ("x[compat.from_front(first, x)]", "compat.at(x, first)")
    assert any(read in port_of(code)[0] for read in reads)
