"""Networks that compiled steps train are compiled where a loop evaluates them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

import mindspore as ms
from mindspore import nn
from tests.convert_training.running import assert_follows

from isograd.runtime import training_evaluation, training_scaling

_PROGRAM = """
import copy
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.bn = nn.BatchNorm2d(2)
        self.fc = nn.Linear(32, 3)
        self.scale = 1.0

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        return self.fc(x.flatten(1)) * self.scale


def evaluate(model, batches):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in batches:
            out = model(x)
            total += nn.functional.cross_entropy(out, y).item()
    model.train()
    return total


net = Net()
for i, p in enumerate(net.parameters()):
    p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) + i) * 0.5)
batches = [
    (torch.cos(torch.arange(16.0 * n).view(n, 1, 4, 4) * k), torch.arange(n) % 3)
    for k, n in ((1, 4), (2, 4), (3, 4), (4, 2))
]
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
print(evaluate(net, batches))
for epoch in range(3):
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(evaluate(net, batches))
    if epoch == 0:
        best = copy.deepcopy(net.state_dict())
net.load_state_dict(best)
print(evaluate(net, batches))
with torch.no_grad():
    for p in net.parameters():
        p.mul_(0.5)
print(evaluate(net, batches))
net.fc.weight.data = net.fc.weight.data * 2
print(evaluate(net, batches))
print(evaluate(copy.deepcopy(net), batches))
LAST
"""


def test_an_evaluation_sees_what_the_weights_are(tmp_path: Path) -> None:
    """After steps, a `state_dict`, changes in place and other data; of a copy that is not known."""
    converted = assert_follows(_PROGRAM.replace("LAST", ""), tmp_path, tolerance=1e-4)
    assert "out = compat.evaluated(model)(x)" in converted.text


def test_what_the_program_changes_later_keeps_evaluations_eager(tmp_path: Path) -> None:
    """The graph would keep the first value of an attribute; the steps are made before."""
    last = "for k in (1, 2):\n    net.scale = 0.5 * k\n    print(evaluate(net, batches))"
    converted = assert_follows(_PROGRAM.replace("LAST", last), tmp_path, tolerance=1e-4)
    assert "@ms.jit" in converted.text
    assert "evaluated" not in converted.text


class _Twice(nn.Cell):  # type: ignore[misc]
    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return x * 2


def _eager_calls(sizes: list[int], kind: Callable[[ms.Tensor], object]) -> int:
    """How many batches of these sizes are not computed by a graph."""
    evaluation, calls = training_evaluation.Evaluation(_Twice()), 0

    def network(x: ms.Tensor) -> object:
        nonlocal calls
        calls += 1
        return kind(x * 2)

    evaluation.network = network
    for size in sizes:
        found = evaluation(ms.Tensor(np.ones(size, np.float32)))
        np.testing.assert_array_equal(np.asarray(found).ravel(), [2.0] * size)
    return calls


@pytest.mark.parametrize(
    ("sizes", "calls"),
    [
        pytest.param([4, 4, 4, 4], 1, id="one shape"),
        pytest.param([4, 4, 4, 2, 4, 4, 2], 3, id="a short last batch"),
        pytest.param([1, 2, 3, 4, 1, 2], 6, id="inputs that grow"),
    ],
)
def test_a_shape_that_follows_on_the_same_is_compiled(sizes: list[int], calls: int) -> None:
    assert _eager_calls(sizes, lambda x: x) == calls


def test_what_no_graph_returns_stays_as_it_is() -> None:
    assert _eager_calls([4, 4, 4], lambda x: x.asnumpy()) == 3


def test_only_what_a_step_trains_is_compiled_and_only_for_inference() -> None:
    network = _Twice().set_train(False)
    assert training_evaluation.evaluated(network) is network
    training_scaling.STEPPED.add(id(network))
    assert isinstance(training_evaluation.evaluated(network), training_evaluation.Evaluation)
    assert training_evaluation.evaluated(network.set_train()) is network
    training_scaling.STEPPED.discard(id(network))
