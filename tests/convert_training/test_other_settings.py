"""An optimizer takes over other settings until a step is compiled with its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import assert_follows

TEXT = """
import torch
from torch import nn

X = torch.cos(torch.arange(48.0)).view(3, 4, 4)
model = nn.Linear(4, 4)
for i, p in enumerate(model.parameters()):
    p.data.copy_(torch.sin(torch.arange(p.numel()).view(p.shape) * 1.3 + i) * 0.5)
other = torch.optim.SGD(model.parameters(), lr=0.02, weight_decay=0.1, momentum=0.9)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
CHANGE
for x in X:
    loss = (model(x) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
"""
CHANGES = {
    "loaded": "opt.load_state_dict(other.state_dict())",
    "set": "opt.param_groups[0]['weight_decay'] = 0.3",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_settings_before_the_first_step_are_taken_over(change: str, tmp_path: Path) -> None:
    text = TEXT.replace("CHANGE", change)
    assert "@ms.jit" in assert_follows(text, tmp_path).text
