"""A module's input into which no gradient flows, such as a mask, may be used or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.verify.test_noise import CASE

from isograd.cli import main

pytest.importorskip("torch")
pytest.importorskip("mindspore")

#: torch's attention takes a causal mask as a hint and does not read it; a port multiplies by it.
NETWORKS = {
    "net_torch.py": """
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, scores, mask):
        return self.inner(scores.tril() @ scores)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.masked = nn.Linear(4, 4), Masked()

    def forward(self, x):
        return self.masked(self.first(x), torch.ones(4, 4).tril())
""",
    "net_mindspore.py": """
from mindspore import nn, ops


class Masked(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dense(4, 4)

    def construct(self, scores, mask):
        return self.inner(ops.matmul(scores * mask, scores))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.masked = nn.Dense(4, 4), Masked()

    def construct(self, x):
        return self.masked(self.first(x), ops.tril(ops.ones((4, 4))))
""",
}
LOSS = "\n\ndef loss(output):\n    return (output * output).mean()\n"


def test_the_gradient_of_a_constant_mask_is_not_judged(tmp_path: Path) -> None:
    for name, text in NETWORKS.items():
        (tmp_path / name).write_text(text + LOSS)
    (tmp_path / "case.toml").write_text(CASE.replace("[2, 3, 64, 64]", "[4, 4]"))
    out = tmp_path / "report.json"
    status = main(["verify", str(tmp_path / "case.toml"), "--quiet", "--json", str(out)])
    report = json.loads(out.read_text())
    assert (status, report["verdict"], report["findings"]) == (0, "equivalent", [])
