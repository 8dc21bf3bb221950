"""A gradient that the backward of a function with its own gradient takes, as checkpoints do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.convert.support import converted, run_both, run_port

_CODE = """
import gc
import torch


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, way, length, *args):
        ctx.run, ctx.way, ctx.length = run, way, length
        ctx.inputs, ctx.parameters = list(args[:length]), list(args[length:])
        with torch.no_grad():
            return ctx.run(*ctx.inputs)

    @staticmethod
    def backward(ctx, *slopes):
        inputs = [x.detach().requires_grad_(True) for x in ctx.inputs]
        SEEN.append(torch.is_grad_enabled())
        with torch.enable_grad():
            SEEN.append(torch.is_grad_enabled())
            with torch.no_grad():
                SEEN.append(torch.is_grad_enabled())
            out = ctx.run(*inputs)
        if ctx.way == "grad":
            wanted = inputs + ctx.parameters
            found = torch.autograd.grad(out, wanted, slopes, allow_unused=True)
        elif ctx.way == "kept":
            wanted = inputs + ctx.parameters
            with torch.enable_grad():
                found = torch.autograd.grad(out, wanted, slopes, retain_graph=True)
        else:
            torch.autograd.backward(out, slopes[0])
            found = tuple(x.grad for x in inputs) + (None,) * len(ctx.parameters)
        SEEN.append(torch.is_grad_enabled())
        return (None, None, None, *found)


SEEN = []


class Block(torch.nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        self.layer = torch.nn.Linear(3, 3, bias=False)
        self.layer.weight.data.copy_(torch.arange(9.0).reshape(3, 3) / 10)

    def forward(self, x):
        if not self.way:
            return self.run(x)
        return Recomputed.apply(self.run, self.way, 1, x, *self.parameters())

    def run(self, x):
        return torch.tanh(self.layer(x))


def grown(*ways):
    net = torch.nn.Sequential(*[Block(way) for way in ways])
    x = torch.arange(600000.0).reshape(200000, 3) / 6e5
    found = []
    for _ in range(40):
        (net(x) ** 2).sum().backward()
        gc.collect()
        with open("/proc/self/statm") as file:
            found.append(int(file.read().split()[1]) * 4096 >> 20)
    return found[-1] - found[9]


def train(*ways):
    SEEN.clear()
    net = torch.nn.Sequential(*[Block(way) for way in ways])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.arange(6.0).reshape(2, 3) / 5
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (net(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 4))
    sums = [round(p.detach().sum().item(), 4) for p in net.parameters()]
    return losses, sums, SEEN, torch.is_grad_enabled()
"""


def test_a_backward_takes_a_gradient_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, report = converted(tmp_path, {"own.py": _CODE})
    assert not report.needs_action
    code = """
    import json, own
    ways = [("", ""), ("grad", "grad"), ("kept", "grad"), ("back", ""), ("", "back")]
    print(json.dumps([own.train(*given) for given in ways]))
    """
    of_torch, of_port = run_both(tmp_path, port, code)
    assert of_port == of_torch
    assert all(found[:2] == of_port[0][:2] for found in of_port)


def test_its_graph_is_freed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, _ = converted(tmp_path, {"own.py": _CODE})
    code = "import json, own; print(json.dumps(own.grown('kept', 'grad')))"
    assert json.loads(run_port(port, code)) < 50  # MB; what one round records is 10
