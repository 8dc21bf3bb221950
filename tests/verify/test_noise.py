"""Clean ports whose kernels round more than most: none of it is a difference."""

from __future__ import annotations

import json
from pathlib import Path

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
