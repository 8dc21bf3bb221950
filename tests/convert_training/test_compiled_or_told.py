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


TAUGHT = """
with torch.no_grad():
    soft = teacher(x).softmax(1)
loss = nn.functional.cross_entropy(model(x), soft)
"""
COMPILED = [
    pytest.param(
        "teacher = made(1)\nfor p in teacher.parameters():\n    p.requires_grad_(False)",
        TAUGHT,
        id="parameters are frozen by a method",
    ),
    pytest.param(
        "teacher = copy.deepcopy(model).eval().requires_grad_(requires_grad=False)",
        TAUGHT,
        id="a copy is frozen whole",
    ),
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
]


@pytest.mark.parametrize(("body", "forward"), COMPILED)
def test_loop_is_compiled(body: str, forward: str, tmp_path: Path) -> None:
    assert "ms.jit" in assert_follows(_program(body, forward), tmp_path).text


TOLD = [
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
]


@pytest.mark.parametrize(("body", "forward", "line", "reason"), TOLD)
def test_loop_is_eager_and_says_why(
    body: str, forward: str, line: str, reason: str, tmp_path: Path
) -> None:
    text = _program(body, forward)
    at = next(i for i, one in enumerate(text.splitlines(), 1) if line in one)
    assert _reasons(text, tmp_path) == [(at, reason)]
