"""Masks of what learns have no gradient in torch, however often they are computed with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_both

#: Lines of a loss of x, which learns.
LOSSES = {
    "multiplied and counted": "m = x <= 0.5\nreturn ((0.5 - x) * m).sum() / m.sum()",
    "cast twice": "m = x.gt(0.5)\nreturn (x * m.float()).sum() / m.float().sum()",
    "negated": "n = ~(x > 0)\nreturn (x * n).sum() / n.float().sum()",
    "joined": "m = (x > -2) & (x < 2)\nreturn (x * m).sum() / m.sum()",
    "either": "m = torch.logical_xor(x > 0, x < -1)\nreturn (x * m).sum()",
    "an element": "m = x > 0\nreturn (x[0] * m[0]).sum()",
    "an element at once": "return (x[0] * (x > 0)[0]).sum()",
    "in a loop": "m = x > 0\ne = 0\nfor s in (1.0, 2.0):\n    e = e + (x * s * m).sum()\nreturn e",
    "a function that is given it": "return masked_mean(x, x > 0)",
    "a function that makes it": "m = positive(x)\nreturn (x * m).sum() / m.sum()",
    "several": "return sum((x * m).sum() / m.sum() for m in [x > t for t in (0.0, 1.0)])",
    "stacked": "m = x > 0\nreturn torch.stack([m, m]).float().sum() + x.sum()",
    "seen otherwise": "m = (x > 0).view(-1)\nreturn (x.view(-1) * m).sum() / m.sum()",
    "finite": "m = torch.isfinite(x)\nreturn (x * m).sum() / m.sum()",
    "of the greatest": "m = x == x.max(dim=1, keepdim=True)[0]\nreturn (x * m).sum() / m.sum()",
    "beside conditions": "m = x > 0\nreturn torch.where(m, x, -x).sum() + (x * ~m).sum()",
}
_START = """
import torch
from torch import nn

def masked_mean(x, mask):
    return (x * mask).sum() / mask.sum()

def positive(x):
    return x > 0
"""
_RUN = """
import json
import net
rows = [[1.0, 2.0, 0.5], [-3.0, -4.0, -1.0]]
print(json.dumps([net.slopes(TENSOR(rows), one) for one in net.LOSSES]))
"""


def test_masks_of_what_learns(tmp_path: Path) -> None:
    lines = [_START]
    for number, body in enumerate(LOSSES.values()):
        lines += [f"def loss{number}(x):", *(f"    {line}" for line in body.split("\n")), ""]
    names = ", ".join(f"loss{number}" for number in range(len(LOSSES)))
    lines += [
        f"LOSSES = ({names})",
        "def slopes(rows, loss):",
        "    w = rows.clone().requires_grad_(True)",
        "    loss(w * 1.5).backward()",
        "    return w.grad.tolist()",
    ]
    port, _ = converted(tmp_path, {"net.py": "\n".join(lines)})
    expected, found = run_both(tmp_path, port, _RUN)
    for name, one, other in zip(LOSSES, expected, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("m = x > 0\n    return torch.where(m, x, 0).sum() + (x * m).sum()", id="once"),
        pytest.param("m = ids != 1\n    return (x * m).sum() / m.sum()", id="integers"),
        pytest.param("m = x > 0\n    return x[m].sum() + x[~m].sum()", id="selected"),
    ],
)
def test_a_mask_that_has_one_gradient_stays(body: str) -> None:
    code = f"import torch\ndef f(x):\n    ids = torch.zeros(3, dtype=torch.long)\n    {body}\n"
    assert "stop_gradient" not in port_of(code)[0]
