"""Functions of tensors without axes, of one axis, of several tensors, and of settings."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

#: Expressions about x, of two axes, and n, whole numbers.
EXPRESSIONS = """
torch.hsplit(n, 2)[1].tolist()
x.sum_to_size([1, 3]).tolist()
torch.cumsum(torch.tensor(3), 0).item()
torch.cumprod(torch.tensor(3), 0).item()
torch.softmax(torch.tensor(3.0), 0).item()
torch.logsumexp(torch.tensor(2.0), 0).item()
torch.aminmax(torch.tensor(2.0), dim=0)[0].item()
torch.tensor(5.0).scatter_reduce(0, torch.tensor(0), torch.tensor(6.0), "sum").item()
torch.linspace(2, 3, 1).tolist()
list(torch.broadcast_shapes((1,), (3, 1), 2))
str(torch.result_type(2, 1.5)).lower().replace("torch.", "")
[list(t.shape) for t in torch.atleast_1d(x[0, 0], x)]
[list(t.shape) for t in torch.atleast_2d(x[0], x)]
[list(t.shape) for t in torch.atleast_3d([x[0], x])]
str(torch.finfo(torch.float16).dtype)
str(torch.iinfo(torch.int8).dtype)
nn.Conv3d(2, 2, 3).padding_mode, nn.Conv2d(2, 2, 3).transposed
list(nn.Conv2d(2, 2, 3).output_padding)
torch.CharTensor([1, 2]).tolist(), torch.ShortTensor([1, 2]).tolist()
nn.Embedding(2, 3, _weight=x)(torch.tensor([1])).tolist()
torch.fill(x, 3.0).tolist()
torch.embedding(x, torch.tensor([1])).tolist()
torch.constant_pad_nd(x, (1, 1), 2.0).tolist()
[t.tolist() for t in torch.split_with_sizes(x, [1, 2], 1)]
torch.logspace(0, 2, 3, dtype=torch.float64).tolist()
round(torch.linalg.vector_norm(x, dtype=torch.float64).item(), 10)
torch.quantile(x, 0.4, interpolation="lower").item()
nn.utils.rnn.pad_sequence([x[0], x[1][:2]], batch_first=True, padding_side="left").tolist()
torch.repeat_interleave(torch.tensor([1, 2, 0])).tolist()
torch.vander(x[0], increasing=True).tolist()
len(TensorDataset(n) + TensorDataset(n)), (TensorDataset(n) + TensorDataset(n))[5][0].item()
"""
_NET = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

x, n = torch.arange(6.0).reshape(2, 3), torch.arange(4)
FOUND = [
"""


def test_each_is_as_in_torch(tmp_path: Path) -> None:
    lines = [f"    ({line},)," for line in EXPRESSIONS.strip().splitlines()]
    port, report = converted(tmp_path, {"net.py": "\n".join([_NET.rstrip(), *lines, "]", ""])})
    assert not report.findings
    code = "import json\nfrom net import FOUND\nprint(json.dumps(FOUND))"
    expected, found = run_both(tmp_path, port, code)
    for line, one, other in zip(EXPRESSIONS.strip().splitlines(), expected, found, strict=True):
        assert other == one, line
