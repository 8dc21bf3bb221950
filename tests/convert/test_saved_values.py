"""A gradient reads the values that a tensor had before it was changed in place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import (
    converted,
    port_of,
    run_both,
    run_original,
    run_port,
    with_cases,
    write_all,
)

#: What changes h, of which k is another name, and which has a gradient.
STATEMENTS = """
h *= torch.sin(x)
h **= 2
h %= torch.sin(x) + 2
h.mul_(torch.sin(x))
h.pow_(3)
h.square_()
h.sin_()
h.cos_()
h.abs_().log1p_()
h.erf_()
h.atan_()
h.clamp_(-1, 1)
h.clamp_max_(1)
h.mul_(2).sin_()
h.sin_().mul_(torch.cos(x))
torch.sin_(h)
F.silu(h, inplace=True)
F.relu(h, inplace=True)
F.leaky_relu(h, 0.1, inplace=True)
h = nn.SiLU(inplace=True)(h)
h = nn.Mish(inplace=True)(h)
h = nn.Hardswish(inplace=True)(h)
for f in [h]: f *= torch.sin(x)
for f in [h]: f.sin_()
kept = [h]; kept[0] *= torch.sin(x)
kept = [h]; kept[0].cos_()
kept = {"h": h}; kept["h"].mul_(torch.sin(x))
kept = [h]; Layers()(kept)
scale(h, torch.sin(x))
wave(h)
h.view(-1)[1:] *= torch.sin(x[1:])
h.view(3, 1)[0].sin_()
h[1:] *= torch.sin(x[1:])
r = h[1:]; r.sin_()
"""
_START = """
import torch
import torch.nn.functional as F
from torch import nn


def scale(t, g):
    t *= g


def wave(t):
    t.sin_()


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.SiLU(inplace=True), nn.Hardswish(inplace=True)])

    def forward(self, found):
        x = found[0]
        for layer in self.layers:
            x = layer(x)
            found.append(x)
        return found


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.SiLU(inplace=True)

    def forward(self, x: torch.Tensor):
        h = x * 3
        k = h
        h *= torch.sigmoid(x)
        h.sin_()
        y = x * 2
        z = y
        y = self.act(y)
        return (h + y + k * 0 + z * 0).sum()
"""


def _case(statement: str) -> list[str]:
    several = [statement] if statement.startswith("for ") else statement.split("; ")
    return [
        "x = torch.tensor([0.7, -1.2, 0.4], requires_grad=True)",
        "h = x * 3; k = h",
        *several,
        "(h.sum() + 2 * k.sum()).backward()",
        "return x.grad.tolist()",
    ]


def _written() -> str:
    return with_cases(_START, map(_case, STATEMENTS.strip().splitlines()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("saved")
    converted(root, {"net.py": _written()})
    return root


def test_the_gradient_is_torchs(folder: Path) -> None:
    code = "import json, net; print(json.dumps([case() for case in net.CASES]))"
    expected, found = run_both(folder, folder / "port", code)
    for statement, wanted, got in zip(STATEMENTS.split("\n")[1:], expected, found, strict=False):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, err_msg=statement)


def test_the_gradient_of_compiled_functions_is_torchs(folder: Path) -> None:
    expected = run_original(
        folder,
        """
        import torch
        from net import Kept
        x = torch.tensor([0.7, -1.2, 0.4], requires_grad=True)
        Kept()(x).backward()
        print(x.grad.tolist())
        """,
    )
    compiled = """
        import mindspore as ms
        from net import Kept
        net = Kept()
        def function(x):
            return net(x)
        for one in (function, ms.jit(function)):
            print(ms.grad(one)(ms.Tensor([0.7, -1.2, 0.4])).tolist())
        """
    write_all(folder / "port", {"compiled.py": compiled})  # a file, which the compiler reads
    found = run_port(folder / "port", "import compiled")
    for line in found.strip().splitlines():
        np.testing.assert_allclose(json.loads(line), json.loads(expected), rtol=1e-4)


@pytest.mark.parametrize(
    "statement",
    ["h *= 2", "h += x", "h /= x", "h.relu_()", "h.add_(x)", "h.div_(2)", "h.exp_()", "h.neg_()"],
)
def test_nothing_is_copied_where_the_gradient_reads_the_result(statement: str) -> None:
    port, _ = port_of(
        f"""
        import torch

        def f(x: torch.Tensor):
            h = torch.sin(x)
            k = h
            {statement}
            return h, k
        """
    )
    assert "[...] = " in port
    assert "deepcopy" not in port


def test_nothing_is_copied_where_no_gradient_is_recorded() -> None:
    port, _ = port_of(
        """
        import torch

        @torch.no_grad()
        def f(x: torch.Tensor):
            x.sin_()
            return x
        """
    )
    assert "deepcopy" not in port
