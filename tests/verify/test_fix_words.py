"""The line and the words of a fix: of the code that differs, not of what builds the network."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.verify.test_noise import WITHOUT_LOSS, report_of

pytest.importorskip("torch")
pytest.importorskip("mindspore")

REFERENCE = """
import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(20, 8), Norm()
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(8, 8)

    def forward(self, ids):
        x = self.table(ids) * 2.5 - 0.1
        x = F.gelu(self.norm(x))
        return self.head(self.drop(x))


def build():
    return Net()
"""
PORT = """
from mindspore import nn, ops


class Norm(nn.Cell):
    def construct(self, x):
        return x * ops.rsqrt(x.pow(2).mean(-1, keep_dims=True) + 1e-6)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(20, 8), Norm()
        self.drop, self.head = nn.Dropout(p=0.2), nn.Dense(8, 8)

    def construct(self, ids):
        x = self.table(ids) * 2.5 - 0.1
        x = ops.gelu(self.norm(x), approximate="none")
        return self.head(self.drop(x))


def build():
    return Net()
"""
CASE = (
    WITHOUT_LOSS.replace(":Net", ":build")
    + """
[[inputs]]
shape = [4, 6]
dtype = "int64"
low = 0
high = 20
"""
)


@pytest.mark.parametrize(
    ("old", "new", "cause", "words"),
    [
        pytest.param("(ids) * 2.5", "(ids)", "embedding.scale", "other=2.5", id="a scale left out"),
        pytest.param('"none"', '"tanh"', "gelu.approximate", "approximate='none'", id="a setting"),
        pytest.param("1e-6", "1e-5", "rms_norm.eps", "other=1e-06", id="a number"),
        pytest.param(
            "self.drop(x)", "ops.dropout(x, 0.2)", "dropout.active", "probability 0", id="dropout"
        ),
    ],
)
def test_a_fix_names_the_line_and_what_belongs_there(
    tmp_path: Path, old: str, new: str, cause: str, words: str
) -> None:
    assert PORT.count(old) == 1
    port = PORT.replace(old, new)
    changed = zip(PORT.splitlines(), port.splitlines(), strict=True)
    line = next(number for number, (a, b) in enumerate(changed, 1) if a != b)
    networks = {"net_torch.py": REFERENCE, "net_mindspore.py": port}
    _, report = report_of(tmp_path, networks, CASE)
    found = {f["cause"]["id"]: f["fix"] for f in report["findings"] if f["cause"]}
    assert found[cause]["where"] == f"net_mindspore.py:{line}"
    assert words in found[cause]["text"]
