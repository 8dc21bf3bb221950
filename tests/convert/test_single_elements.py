"""One element by elements of a tensor: `scores[tags[i], tags[i + 1]]`, with its gradient."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, run_original, run_port

pytest.importorskip("torch")
pytest.importorskip("mindspore")

SCORES = """
import torch
from torch import nn


class Path(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.Parameter(torch.arange(9.0).view(3, 3))

    def forward(self, scores, tags):
        total = torch.zeros(1)
        for i, row in enumerate(scores):
            total = total + self.steps[tags[i + 1], tags[i]] * row[tags[i + 1]]
        return total + self.steps[2, tags[-1]] + self.steps[tags[:2], tags[1:3]].sum()


net = Path()
scores = torch.sin(torch.arange(9.0)).view(3, 3)
tags = torch.tensor([0, 2, 1, 2])
loss = net(scores, tags).sum()
loss.backward()
print(round(loss.item(), 4), [[round(v, 4) for v in row] for row in net.steps.grad.tolist()])
"""


def test_its_gradient_is_torchs(tmp_path: Path) -> None:
    """MindSpore 2.10 raises in the gradient of `steps[tags[1], tags[0]]`."""
    port, report = converted(tmp_path, {"path.py": SCORES})
    assert [f.code for f in report.findings] in ([], ["eager-training"])
    assert run_port(port, "import path") == run_original(tmp_path, "import path")
