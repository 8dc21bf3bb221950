"""Loops that become compiled steps though they look unusual; and what the others are told."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows, convert

HEAD = """
import copy
import torch
from torch import nn


def made(k):
    net = nn.Linear(4, 4)
    for i, p in enumerate(net.parameters()):
        p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + i + k) * 0.5)
    return net


data = torch.cos(torch.arange(48.0)).view(3, 4, 4)
model = made(0)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
"""
LOOP = """
for x in data:
    FORWARD
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""


def _program(body: str, forward: str = "") -> str:
    inner = textwrap.indent(textwrap.dedent(forward).strip(), "    ").strip()
    return HEAD + textwrap.dedent(body) + (LOOP.replace("FORWARD", inner) if inner else "")


def _reasons(text: str, folder: Path) -> list[tuple[int, str]]:
    found = [f for f in convert(text, folder).report.findings if f.code == "eager-training"]
    return [(f.line, f.message.partition(": ")[2]) for f in found]


_KEPT = """
class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = made(1)
        self.register_buffer("mean", torch.zeros(4))

    @torch.no_grad()
    def update(self, x):
        WRITE

    def forward(self, x):
        y = self.fc(x) - READ
        self.update(y)
        return y

model = Kept()
opt = torch.optim.SGD(model.parameters(), lr=0.5)
"""


def _kept(write: str, read: str = "self.mean") -> str:
    return _KEPT.replace("WRITE", write).replace("READ", read)


COMPILED = [
    pytest.param(
        "mode = 'l2'",
        """
        out = model(x)
        if mode == "l1":
            extra = out.abs().mean()
        elif mode == "l2":
            extra = out.pow(2).mean()
        else:
            raise NotImplementedError(mode)
        loss = out.sum() + extra
        """,
        id="a branch that raises binds nothing",
    ),
    pytest.param(
        _kept("self.mean.copy_(x.mean(0))"), "loss = model(x).sum()", id="a buffer that is added"
    ),
]


@pytest.mark.parametrize(("body", "forward"), COMPILED)
def test_loop_is_compiled(body: str, forward: str, tmp_path: Path) -> None:
    assert "ms.jit" in assert_follows(_program(body, forward), tmp_path).text


_SCALED = """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        KEPT

    def forward(self, x):
        rows = self.rows
        for row in READ:
            x = x * row
        return x

model = Scaled()
opt = torch.optim.SGD(model.parameters(), lr=0.5)
"""
_ROWS = "nn.ParameterList([nn.Parameter(torch.ones(4))] * 2)"

TOLD = [
    *(
        pytest.param(
            _kept(write, read),
            "loss = model(x).sum()",
            write,
            f"what is written to {place} is no part of a static graph",
            id=f"a network keeps {write}",
        )
        for write, read, place in (
            ("self.mean = x.mean(0)", "self.mean", "self.mean"),
            ("self.mean[1:] = x.mean(0)[1:]", "self.mean", "self.mean[1:]"),
            ("self.mean.mul_(0.9).add_(x.mean(0))", "self.mean", "self.mean"),
            ("self.mean.copy_(x.mean(0))", "self.mean * 2", "self.mean"),
            ("self.fc.weight.data = self.fc.weight * 0.9", "0", "self.fc.weight.data"),
            ("self.fc.weight.data *= 0.9", "0", "self.fc.weight.data"),
        )
    ),
    pytest.param(
        _SCALED.replace("KEPT", f"self.rows = {_ROWS}").replace("READ", "rows"),
        "loss = model(x).sum()",
        "rows = self.rows",
        "Parameters in self.rows would be constants of a static graph",
        id="a list of Parameters by another name",
    ),
    pytest.param(
        _SCALED.replace("KEPT", f"self.rows = nn.ModuleList([{_ROWS}])").replace("READ", "rows[0]"),
        "loss = model(x).sum()",
        "self.rows = nn",
        "nn.ParameterList is kept elsewhere than in an attribute",
        id="a list of Parameters in a list of modules",
    ),
    pytest.param(
        "",
        "loss = model(x).pow(2).sum()\nif loss.item() > 1.0:\n    print(0.0)\n    continue",
        "continue",
        "a round may end between the loss and the step",
        id="a round is skipped by its loss",
    ),
    pytest.param(
        "",
        "out = model(x)\nif out.sum() > 1:\n    print(0.0)\n    continue\nloss = out.pow(2).sum()",
        "continue",
        "a round may end between the loss and the step",
        id="a round is skipped by its output",
    ),
    pytest.param(
        "",
        "y = model(x).requires_grad_(False) + model(x)\nloss = y.sum()",
        "y = model(x)",
        "the forward part calls requires_grad_()",
        id="an output is frozen",
    ),
    pytest.param(
        "def frozen(x):\n    return x * 2.0 + x.requires_grad_(False)",
        "loss = model(frozen(x)).sum()",
        "loss = model",
        "frozen calls for an effect beside its value: line 18 (x.requires_grad_(False))",
        id="a function of the loss freezes",
    ),
    pytest.param(
        "more = (torch.ones(4), 1.0)",
        "out = model(x)\nloss = (out + torch.add(*more)).sum()",
        "torch.add(",
        "the forward part holds *more, which the compiler refuses",
        id="a tuple of another place is spread",
    ),
    pytest.param(
        "more = iter(data)",
        "a = model(x).sum()\n_ = a.item()\nz = next(more)\nloss = a + model(z).sum()",
        "z = next",
        "other statements within the forward part change what it reads or binds: z",
        id="a batch is taken between two parts of the loss",
    ),
    pytest.param(
        "",
        "y = model(x)\nfor _ in range(2):\n    print(y.sum())\n    y = y * 2\nloss = y.sum()",
        "print(y",
        "the forward part holds more than assignments: print(y.sum())",
        id="a loop of the loss prints",
    ),
    pytest.param(
        "def kept(x):\n    with open('/dev/null') as file:\n        return x * file.fileno()",
        "loss = model(kept(x)).sum()",
        "loss = model",
        "kept does not compile to the same: line 18 (with: with open('/dev/null') as file:)",
        id="a function of the loss opens a file",
    ),
    pytest.param(
        "bound = nn.utils.spectral_norm\nmodel = bound(model)",
        "loss = model(x).sum()",
        "bound = ",
        "torch.nn.utils.spectral_norm needs recorded gradients",
        id="a function of torch's under another name",
    ),
    pytest.param(
        "rate = torch.zeros(1, requires_grad=True)",
        "y = model(x).detach()\nloss = (rate * y).sum()",
        "rate = ",
        "a tensor learns that is no network's parameter",
        id="a tensor learns alone",
    ),
]


NOTED = """
class Noting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.noted = made(0), {}

    def log(self, name, value):
        self.noted.setdefault(name, []).append(float(value))

    def forward(self, x):
        return self.layer(x)

    def shared(self, x):
        return self(x).pow(2).mean()

    def training_step(self, x):
        found = self.shared(x)
        self.log("loss", found)
        return found


net = Noting()
opt = torch.optim.SGD(net.parameters(), lr=0.5)
for x in data:
    loss = net.training_step(x)
    opt.zero_grad()
    loss.backward()
    opt.step()
for value in net.noted["loss"]:
    print(value)
"""


def test_a_network_notes_in_its_own_dictionary(tmp_path: Path) -> None:
    """What `log` does with a dictionary was said to be refused by the static graph."""
    assert "ms.jit" in assert_follows(HEAD + NOTED, tmp_path).text


@pytest.mark.parametrize(("body", "forward", "line", "reason"), TOLD)
def test_loop_is_eager_and_says_why(
    body: str, forward: str, line: str, reason: str, tmp_path: Path
) -> None:
    text = _program(body, forward)
    at = next(i for i, one in enumerate(text.splitlines(), 1) if line in one)
    assert _reasons(text, tmp_path) == [(at, reason)]


IN_TURN = """
other = made(1)
slope = nn.Linear(1, 1, bias=False)
second = torch.optim.SGD(other.parameters(), lr=0.5)
third = torch.optim.SGD(slope.parameters(), lr=0.5)
nn.init.ones_(slope.weight)
for x in data:
    loss = (model(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    out = other(x)
    loss_b = (out - model(out)).mean()
    second.zero_grad()
    loss_b.backward()
    second.step()
    loss_c = slope((out + 2).detach()[:, :1]).mean()
    third.zero_grad()
    loss_c.backward()
    third.step()
    print(loss.item())
    print(loss_b.item())
    print(loss_c.item())
"""


def test_a_later_loss_reads_a_sum_for_its_value(tmp_path: Path) -> None:
    """`(out + 2).detach()` was said to share the graph of the loss before."""
    assert assert_follows(HEAD + IN_TURN, tmp_path).text.count("ms.jit") == 3
