"""What a network or a loss reads and the program changes between two steps keeps the loop eager."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

import mindspore as ms
from tests.convert.support import converted, run_both

from isograd.runtime import state_dicts, training_scaling

PROGRAM = """
import torch
from torch import nn

beta, args = 1.0, type("Args", (), dict(rate=1.0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
        self.act = nn.LeakyReLU(0.1)
        self.tau, self.steps = 1.0, 0
        self.register_buffer("mask", torch.ones(2))

    def forward(self, x):
        return self.act(self.fc(x * self.mask) - 1.5) / self.tau

    def anneal(self):
        self.tau = self.tau * 2


def loss_of(out):
    return out.pow(2).mean() * beta * args.rate


net = Net()
nn.init.ones_(net.fc.weight)
nn.init.zeros_(net.fc.bias)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
losses = []
for k in range(3):
    for x in [torch.ones(4, 2), torch.ones(4, 2) * 0.5]:
        optimizer.zero_grad()
        loss = loss_of(net(x))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    LATE
"""


@pytest.mark.parametrize(
    ("late", "name"),
    [
        pytest.param("net.tau = net.tau * 2", "net.tau", id="an attribute from outside"),
        pytest.param("net.anneal()", "self.tau", id="a method of the network"),
        pytest.param("beta = beta * 0.5", "beta", id="a name of the module"),
        pytest.param("args.rate *= 0.5", "args.rate", id="a setting that a function reads"),
        pytest.param("net.mask = torch.tensor([1.0, 0.0])", "net.mask", id="a buffer"),
        pytest.param("net.mask.mul_(0.5)", "net.mask", id="a buffer in place"),
        pytest.param("net.mask.data = torch.tensor([1.0, 0.0])", "net.mask", id="its data"),
        pytest.param("net.mask.data[0] = 0.0", "net.mask", id="an element of its data"),
        pytest.param(
            "for b in net.buffers():\n        b.mul_(0.5)", "a buffer of net", id="all buffers"
        ),
        pytest.param(
            "net.act.negative_slope = 0.5", "net.act.negative_slope", id="a setting of a layer"
        ),
        pytest.param("setattr(net, 'tau', 3.0)", "net.tau", id="by its name in a text"),
    ],
)
def test_a_loop_whose_network_changes_stays_eager(late: str, name: str, tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"late.py": PROGRAM.replace("LATE", late)})
    said = "".join(f.message for f in report.findings if f.code == "eager-training")
    assert re.search(rf"{name} changes between steps", said), said
    code = "import json, late; print(json.dumps(late.losses))"
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "late",
    [
        pytest.param("net.steps += 1", id="an attribute that no forward reads"),
        pytest.param("net.fc.weight.data.clamp_(-1, 1)", id="a Parameter"),
        pytest.param("losses = losses + [k]", id="a name that no function reads"),
        pytest.param("net.best = losses[-1]", id="a new attribute"),
    ],
)
def test_other_changes_leave_the_step_compiled(late: str, tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"late.py": PROGRAM.replace("LATE", late)})
    assert "ms.jit" in (port / "late.py").read_text()


def test_functions_of_torchs_modules_change_no_module(tmp_path: Path) -> None:
    """`nn.utils.clip_grad_norm_(…)` in a loop, and in a function that has a layer's name."""
    clipping = "        nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n        optimizer.step()\n"
    script = PROGRAM.replace("    LATE\n", "").replace("        optimizer.step()\n", clipping)
    other = "from torch import nn\n\n\ndef act(net):\n    nn.utils.clip_grad_norm_(net, 1.0)\n"
    port, report = converted(tmp_path, {"late.py": script, "other.py": other})
    assert [f.message for f in report.findings if f.code == "eager-training"] == []
    code = "import json, late; print(json.dumps(late.losses))"
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_state_with_other_buffers_is_refused_by_a_compiled_step(tmp_path: Path) -> None:
    """The compiler leaves out a product with ones; the same values may be loaded."""
    late = "    net.load_state_dict({**net.state_dict(), 'mask': torch.ones(2) * factor})\n"
    script = PROGRAM.replace("losses = []", "losses, factor = [], 1.0").replace("    LATE\n", late)
    port, _ = converted(tmp_path, {"late.py": script})
    assert "ms.jit" in (port / "late.py").read_text()
    code = "import json, late; print(json.dumps(late.losses))"
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    changed = (port / "late.py").read_text().replace("factor = [], 1.0", "factor = [], 0.5")
    (port / "late.py").write_text(changed)
    with pytest.raises(AssertionError, match="mask changes, and a compiled step has its first"):
        run_both(tmp_path, port, code)


SCRIPT = """
import torch
from torch import nn

net, size = nn.Linear(2, 1), SIZE
for p in net.parameters():
    p.data.fill_(0.5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
losses = []


def train(x, scale):
    optimizer.zero_grad()
    loss = (net(x) * scale).pow(2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())


for k in range(3):
    train(torch.ones(4, 2), size)
"""


def test_scripts_that_have_functions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """What the one gives its `train` is not what the other's is given: there a network's output."""
    other = SCRIPT.replace("SIZE", "3").replace(
        "train(torch.ones(4, 2), size)", "y = net(torch.ones(4, 2))\n    train(y.detach(), y)"
    )
    files = {"late.py": SCRIPT.replace("SIZE", "2.0"), "train.py": "from late import losses\n"}
    port, report = converted(tmp_path / "alone", files)
    assert [f for f in report.findings if f.code == "eager-training"] == []
    report = converted(tmp_path / "both", {**files, "other.py": other})[1]
    said = {f.file for f in report.findings if f.code == "eager-training"}
    assert said == {"other.py"}
    code = "import json, train; print(json.dumps(train.losses))"
    expected, found = run_both(tmp_path / "alone", port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_copy_of_a_compiled_network_takes_any_state() -> None:
    """No step has the copy in it: an average of a network loads what the network may not."""
    net = ms.nn.Dense(2, 1)
    net.register_buffer("mask", ms.Tensor([1.0, 1.0]))
    training_scaling.kept_for_each(lambda net: lambda: net)(net)
    state = {"weight": net.weight, "bias": net.bias, "mask": ms.Tensor([0.5, 0.5])}
    with pytest.raises(RuntimeError, match="mask changes"):
        state_dicts.load_values(net, state)
    twin = copy.deepcopy(net)
    state_dicts.load_values(twin, state)
    assert twin.mask.asnumpy().tolist() == [0.5, 0.5]
