"""Dictionaries and lists that a forward part makes and fills, and what it unpacks."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows, convert

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 8)
        self.heads = nn.ModuleList([nn.Linear(8, 3) for _ in range(2)])
        for number, p in enumerate(self.parameters()):
            p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + number) * 0.5)

    def forward(self, x):
        h = torch.relu(self.layer(x))
        return [head(h) for head in self.heads], h


data = torch.cos(torch.arange(96.0) * 1.7).view(2, 8, 6)
y = torch.arange(8) % 3
"""
LOOP = """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step, x in enumerate(data):
    outs, h = net(x)
    FORWARD
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""
#: Forward parts that become one step, and print what they hold behind it.
COMPILED = {
    "a dictionary": """
        losses = {}
        losses["a"] = F.cross_entropy(outs[0], y)
        losses["b"] = losses["a"] + 0.5 * F.cross_entropy(outs[1], y)
        loss = sum(losses.values())
        for name in losses:
            print(losses[name].item())
    """,
    "keys of a loop": """
        losses = dict()
        for i, out in enumerate(outs):
            losses[f"head{i}"] = F.cross_entropy(out, y)
        loss = torch.stack(list(losses.values())).mean()
        print(losses["head1"].item())
    """,
    "an element that adds up": """
        log = {"total": 0.0}
        log["total"] += F.cross_entropy(outs[0], y)
        log["total"] += h.pow(2).mean()
        loss = log["total"]
        log["total"] = 5.0
        print(log["total"])
    """,
    "a list": """
        losses = []
        for out in outs:
            losses.append(F.cross_entropy(out, y))
        losses.append(h.mean())
        loss = sum(losses)
        print(losses[2].item())
    """,
    "elements of a list": """
        parts = [0, 0]
        for k in range(2):
            parts[k] = F.cross_entropy(outs[k], y)
        loss = parts[0] * parts[1]
    """,
    "the rest of what is returned": """
        (first, *others), _ = net(x)
        loss = F.cross_entropy(first, y) + F.cross_entropy(others[0], y)
        print(len(others))
    """,
    "unpacked arguments": """
        pair = (h.mean(),)
        loss = F.mse_loss(*outs) + torch.add(*pair, 1.0)
    """,
}
#: Forward parts that stay as they are, with what is said.
EAGER = {
    "another name of it": (
        """
        losses = {}
        logs = losses
        losses["a"] = F.cross_entropy(outs[0], y)
        loss = sum(losses.values())
        """,
        "the forward part writes to an attribute or an element",
    ),
    "kept while it is filled": (
        """
        losses = []
        print(losses)
        losses.append(F.cross_entropy(outs[0], y))
        loss = sum(losses)
        """,
        "the forward part holds more than assignments: losses.append(F.cross_entropy(outs[0], y))",
    ),
    "filled in some rounds": (
        """
        losses = {}
        losses["a"] = F.cross_entropy(outs[0], y)
        if step > 0:
            losses["b"] = F.cross_entropy(outs[1], y)
        loss = sum(losses.values())
        """,
        "the forward part fills a container where step > 0",
    ),
    "read between": (
        """
        losses = {}
        losses["a"] = F.cross_entropy(outs[0], y)
        print(losses["a"].item())
        losses["b"] = F.cross_entropy(outs[1], y)
        loss = sum(losses.values())
        """,
        "losses is read here and bound again behind it",
    ),
    "unpacked from outside": (
        """
        given = [outs[0].shape[0], 2]
        batch = [x]
        outs, h = net(*batch)
        loss = F.cross_entropy(outs[0], y)
        """,
        "the forward part holds *batch, which the compiler refuses",
    ),
    "an element of a name that adds up": (
        """
        m = h.mean()
        parts = [m]
        parts[0] += F.cross_entropy(outs[0], y)
        loss = m * 2 + parts[0]
        """,
        "the forward part writes to an attribute or an element",
    ),
    "a name of an element that adds up": (
        """
        parts = {"a": h.mean() * 1}
        m = parts["a"]
        parts["a"] += F.cross_entropy(outs[0], y)
        loss = m * 2 + parts["a"]
        """,
        "the forward part writes to an attribute or an element",
    ),
    "a name that adds up behind": (
        """
        m = h.mean()
        parts = {}
        parts["a"] = m
        m += F.cross_entropy(outs[0], y)
        loss = m * 2 + parts["a"]
        """,
        "the forward part writes to an attribute or an element",
    ),
    "a name that a function changes behind": (
        """
        m = h.mean() - 1
        parts = {}
        parts["a"] = m
        n = F.relu(m, inplace=True)
        loss = n + parts["a"] + F.cross_entropy(outs[0], y)
        """,
        "the forward part writes to an attribute or an element",
    ),
    "an element changed by a method": (
        """
        parts = {}
        parts["a"] = F.cross_entropy(outs[0], y)
        loss = parts["a"].mul_(0.5) + parts["a"]
        """,
        "the forward part writes to an attribute or an element",
    ),
    "made before the loop": (
        """
        if step == 0:
            history = {}
        history["a"] = F.cross_entropy(outs[0], y)
        loss = history["a"]
        """,
        "the forward part writes to an attribute or an element",
    ),
}


def _loop(forward: str) -> str:
    inner = textwrap.indent(textwrap.dedent(forward).strip(), "    ").strip()
    return LOOP.replace("FORWARD", inner)


def test_what_a_forward_part_makes_and_fills_is_compiled(tmp_path: Path) -> None:
    port = assert_follows(HEAD + "".join(map(_loop, COMPILED.values())), tmp_path, tolerance=1e-4)
    assert port.text.count("@ms.jit") == len(COMPILED)


@pytest.mark.parametrize("name", EAGER)
def test_what_may_be_seen_otherwise_stays_eager(name: str, tmp_path: Path) -> None:
    forward, reason = EAGER[name]
    report = convert(HEAD + _loop(forward), tmp_path).report
    assert [f.message for f in report.findings if f.code == "eager-training"] == [
        f"this training stays eager: {reason}"
    ]


def test_a_name_of_an_outer_loop_that_is_bound_anew_is_a_result(tmp_path: Path) -> None:
    """Other loops over `x` bind it for themselves; what is read behind the step is the step's."""
    text = (
        HEAD
        + """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in data:
    for _ in range(2):
        for scale in (1.0, 2.0):
            x = x * 1.01
        outs, h = net(x)
        loss = F.cross_entropy(outs[0] * scale, y) + h.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item())
    print(x.sum().item())
for x in data:
    print(x.sum().item())
for scale in (3.0,):
    print(scale)
"""
    )
    assert "@ms.jit" in assert_follows(text, tmp_path, tolerance=1e-4).text
