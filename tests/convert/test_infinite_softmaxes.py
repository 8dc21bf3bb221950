"""Softmaxes of scores with rows of -inf: MindSpore's own spoils valid rows beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both, run_original, run_port

#: Of scores x, a mask m with a row that forbids all, and what it is taken of.
WAYS = {
    "function": "F.softmax(x.masked_fill(m, float('-inf')), dim=-1)",
    "of another axis": "torch.softmax(x.T.masked_fill(m.T, -math.inf), 0).T",
    "method": "x.masked_fill(m, -torch.inf).softmax(-1)",
    "in another dtype": "F.softmax(x.masked_fill(m, -torch.inf), -1, dtype=torch.float64).float()",
    "layer": "self.attend(x.masked_fill(m, float('-inf')))",
    "added": "(x + torch.zeros(4, 3).masked_fill_(m, float('-inf'))).softmax(1)",
    "fused": "F.scaled_dot_product_attention(x, x, x, attn_mask=~m[:, [0, 0, 0, 2]])",
    "fused and added": "F.scaled_dot_product_attention(x, x, x, "
    "torch.zeros(4, 4).masked_fill(m[:, [0, 0, 0, 2]], float('-inf')))",
    "layer of attention": "self.all(x[None], x[None], x[None], need_weights=False, "
    "attn_mask=m[:, [0, 0, 0, 2]])[0][0]",
    "weights of attention": "self.all(x[None], x[None], x[None], "
    "attn_mask=m[:, [0, 0, 0, 2]])[0][0]",
    "layer of a transformer": "self.block(x[None].expand(2, 4, 3) + 0, src_key_padding_mask="
    "torch.tensor([[True] * 4, [False] * 4]))[0]",
}
_NET = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.Softmax(dim=-1)
        self.all = nn.MultiheadAttention(3, 1, batch_first=True)
        self.block = nn.TransformerEncoderLayer(3, 1, 4, 0.0, batch_first=True)
        for p in self.parameters():
            nn.init.constant_(p, 0.3)

    def forward(self, x: torch.Tensor, m: torch.Tensor):
        return WAY


def told():
    x = torch.tensor([[0.0, 0.5, 1.0], [2.0, 1.5, 0.1], [1.0, 2.5, 2.0], [0.3, 0.2, 0.1]])
    x.requires_grad_()
    m = torch.tensor([[False, True, False], [True] * 3, [False, False, True], [False] * 3])
    net = Net()
    y = net(x, m)
    (y * torch.arange(12.0).reshape(4, 3)).sum().backward()
    return [y.tolist(), x.grad.tolist()]
"""
_COMPILED = """
import json
import mindspore as ms
import net
one = net.Net()
one.construct = ms.jit(one.construct)
x = ms.Tensor([[0.0, 0.5, 1.0], [2.0, 1.5, 0.1], [1.0, 2.5, 2.0], [0.3, 0.2, 0.1]])
m = ms.Tensor([[False, True, False], [True] * 3, [False, False, True], [False] * 3])
print(json.dumps(one(x, m).tolist()))
"""


@pytest.mark.parametrize("name", WAYS)
def test_a_row_of_infinities_is_torchs(name: str, tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _NET.replace("WAY", WAYS[name])})
    run = "import json, net; print(json.dumps(net.told()))"
    (expected, slopes), (found, own_slopes) = run_both(tmp_path, port, run)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    np.testing.assert_allclose(own_slopes, slopes, atol=2e-4)


@pytest.mark.parametrize("name", WAYS)
def test_and_in_a_static_graph(name: str, tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _NET.replace("WAY", WAYS[name])})
    plain = "import json, net, torch\nprint(json.dumps(net.told()[0]))"
    expected = json.loads(run_original(tmp_path, plain))
    np.testing.assert_allclose(json.loads(run_port(port, _COMPILED)), expected, atol=2e-5)


def test_finite_scores_keep_the_plain_softmax(tmp_path: Path) -> None:
    code = _NET.replace("WAY", "self.attend(x.masked_fill(m, -1e9)).clamp(max=float('inf'))")
    port, _ = converted(tmp_path, {"net.py": code})
    written = (port / "net.py").read_text(encoding="utf-8")
    assert "infinities" not in written.lower()
