"""A change in place, and `out=`, keep the target's dtype."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

_NET = """
import torch

MODULES = torch.zeros(2)
MODULES += torch.ones(2, dtype=torch.float64)


def changed():
    x = torch.zeros(2)
    x += torch.ones(2, dtype=torch.float64)
    n = torch.arange(3, dtype=torch.int32)
    n.mul_(torch.arange(3))
    b = torch.tensor([250, 5], dtype=torch.uint8)
    b.add_(torch.tensor([10, 1]))
    a = torch.ones(2).half()
    y = torch.ones(2)
    a += y
    z = torch.zeros(2, dtype=torch.float64)
    z += a
    u = torch.tensor([250, 5], dtype=torch.uint8)
    u.clamp_(max=torch.tensor([9, 9]))
    c = torch.zeros_like(y)
    c.add_(z).mul_(2)
    o = torch.zeros(2)
    torch.add(z, z, out=o)
    p = torch.zeros(2, dtype=torch.float64)
    torch.mul(y, y, out=p)
    q = torch.zeros(2).to(torch.float64)
    for _ in range(2):
        y += q * 2 + 1
        c.sub_(q)
    return [MODULES, x, n, b, a, y, z, u, c, o, p, q]
"""


def test_the_dtypes_and_values_are_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _NET})
    code = """
    import json, net
    found = [(str(t.dtype).lower().rpartition(".")[2], t.tolist()) for t in net.changed()]
    print(json.dumps(found))
    """
    expected, found = run_both(tmp_path, port, code)
    assert found == expected


@pytest.mark.parametrize(
    "statements",
    [
        "y = torch.zeros(2); y += torch.ones(2)",
        "y = torch.zeros(2, dtype=torch.float64); y += torch.ones(2)",
        "y = torch.zeros(2); y.mul_(x)",
        "y = torch.zeros(2); y.mul_(torch.arange(2))",
        "y = torch.zeros(2) if x.sum() > 0 else x; y += torch.ones(2, dtype=torch.float64)",
    ],
)
def test_nothing_is_cast_without_need(statements: str) -> None:
    port, _ = port_of(f"import torch\n\ndef f(x: torch.Tensor):\n    {statements}\n    return y\n")
    assert "astype" not in port


_HELD = """
import math
import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, shape):
        super().__init__()
        total = 0.5 * np.prod(shape) * np.log(2 * np.pi)
        self.register_buffer("of_numpy", torch.tensor(total, dtype=torch.float64))
        self.register_buffer("whole", tensor=torch.tensor(3))
        self.held = torch.tensor(0.5, dtype=torch.float64)
        self.learnt = nn.Parameter(torch.tensor(math.log(3), dtype=torch.float64))
        self.wide = torch.zeros(2, dtype=torch.float64)

    def forward(self, x):
        n = x.int()
        return [
            x - self.of_numpy, n + self.whole, self.held - x, x + self.learnt,
            x + self.wide, self.held + self.wide, x.half() - self.held,
        ]
"""


def test_a_number_that_a_network_holds_does_not_raise_the_dtype(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _HELD})
    code = """
    import json, net
    made = net.Net([4])(TENSOR([1.0, 2.0]))
    print(json.dumps([(str(t.dtype).lower().rpartition(".")[2], t.tolist()) for t in made]))
    """
    expected, found = run_both(tmp_path, port, code)
    assert [kind for kind, _ in found] == [kind for kind, _ in expected]
    for (_, one), (_, other) in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-6)
