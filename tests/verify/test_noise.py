"""Clean ports whose kernels round more than most: none of it is a difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isograd.cli import main

pytest.importorskip("torch")
pytest.importorskip("mindspore")

NETWORKS = {
    "net_torch.py": """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)).relu().mean((2, 3)))
""",
    "net_mindspore.py": """
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, pad_mode="valid", has_bias=True)
        self.norm, self.head = nn.BatchNorm2d(4), nn.Dense(4, 5)

    def construct(self, x):
        return self.head(ops.relu(self.norm(self.conv(x))).mean((2, 3)))
""",
}
LOSS = "\n\ndef loss(output):\n    return (output * output * output.abs()).mean()\n"
CASE = """
[reference]
framework = "torch"
model = "net_torch.py:Net"
loss = "net_torch.py:loss"
[port]
framework = "mindspore"
model = "net_mindspore.py:Net"
loss = "net_mindspore.py:loss"
[[inputs]]
shape = [2, 3, 64, 64]
dtype = "float32"
fill = "normal"
"""


@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_of_one_sign_into_a_normalisation(tmp_path: Path, seed: int) -> None:
    """A mean over positions gives equal gradients, whose sums MindSpore adds one by one."""
    for name, text in NETWORKS.items():
        (tmp_path / name).write_text(text + LOSS)
    (tmp_path / "case.toml").write_text(CASE)
    out = tmp_path / "report.json"
    status = main(
        ["verify", str(tmp_path / "case.toml"), "--quiet", "--seed", str(seed), "--json", str(out)]
    )
    report = json.loads(out.read_text())
    assert (status, report["verdict"], report["findings"]) == (0, "equivalent", [])


ATTENTION = {
    "net_torch.py": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 8)

    def forward(self, x, mask):
        h = self.inner(x)
        scores = h @ h.transpose(-2, -1)
        scores = scores.masked_fill(mask[:, None] == 0, -1e9)
        return torch.softmax(scores, -1) @ h
""",
    "net_mindspore.py": """
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dense(6, 8)

    def construct(self, x, mask):
        h = self.inner(x)
        scores = ops.matmul(h, h.swapaxes(-2, -1))
        scores = scores.masked_fill(mask[:, None] == 0, -1e9)
        return ops.matmul(ops.softmax(scores, -1), h)
""",
}
WITHOUT_LOSS = """
[reference]
model = "net_torch.py:Net"
[port]
model = "net_mindspore.py:Net"
"""
PADDED = """
[[inputs]]
shape = [4, 10, 6]
[[inputs]]
shape = [4, 10]
fill = "padding_mask"
"""


def report_of(folder: Path, networks: dict[str, str], case: str) -> tuple[int, dict[str, Any]]:
    for name, text in networks.items():
        (folder / name).write_text(text)
    (folder / "case.toml").write_text(case)
    out = folder / "report.json"
    status = main(["verify", str(folder / "case.toml"), "--quiet", "--json", str(out)])
    return status, json.loads(out.read_text())


def test_a_mask_of_whole_numbers_is_no_noise(tmp_path: Path) -> None:
    """A zero that noise moves makes another mask of `mask == 0`, behind which faults hide."""
    case = WITHOUT_LOSS + PADDED
    status, report = report_of(tmp_path, ATTENTION, case)
    assert (status, report["verdict"], report["findings"]) == (0, "equivalent", [])
    line = "        scores = scores.masked_fill(mask[:, None] == 0, -1e9)\n"
    port = ATTENTION["net_mindspore.py"]
    assert line in port
    status, report = report_of(
        tmp_path, ATTENTION | {"net_mindspore.py": port.replace(line, "")}, case
    )
    assert (status, report["verdict"]) == (1, "divergent")
    assert report["findings"][0]["cause"]["id"] == "attention.mask", report["findings"]


DECIDING = {
    "net_torch.py": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 8)

    def forward(self, x):
        h = self.inner(x)
        return torch.where(h * 0.1 + h * 0.2 > h * 0.3, h, -h)
""",
    "net_mindspore.py": """
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dense(6, 8)

    def construct(self, x):
        return self.inner(x)
""",
}


def test_a_decision_by_a_last_bit_is_not_called_equivalent(tmp_path: Path) -> None:
    """Rounding alone makes another result of the reference, so any port would pass."""
    case = WITHOUT_LOSS + PADDED.partition("[[inputs]]\nshape = [4, 10]\n")[0]
    status, report = report_of(tmp_path, DECIDING, case)
    assert (status, report["verdict"]) == (1, "incomplete")
    assert "hangs on a last bit" in report["gaps"][0]["why"]
