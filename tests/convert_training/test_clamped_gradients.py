"""Gradients that a loop clamps by hand are clipped in the compiled step."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

from isograd.convert.training.clamped_gradients import clamped_gradients

PROGRAM = f"""{LAYERS}
net = make(1)
optimizer = torch.optim.RMSprop(net.parameters(), 0.05)
for x in X:
    loss = nn.functional.smooth_l1_loss(net(x) * 9, torch.ones(4, 4))
    optimizer.zero_grad()
    loss.backward()
    for p in net.parameters():
        p.grad.data.clamp_(-0.1, 0.1)
    optimizer.step()
    print(loss.item())
for p in net.parameters():
    print(p.sum().item())
"""


def test_it_is_compiled(tmp_path: Path) -> None:
    found = assert_follows(PROGRAM, tmp_path)
    assert [f.message for f in found.report.findings] == []
    assert "compat.clipped_by_value(" in found.text


@pytest.mark.parametrize(
    ("body", "bound"),
    [
        pytest.param("p.grad.data.clamp_(-1, 1)", "1", id="its data"),
        pytest.param("p.grad.clamp_(min=-a.limit, max=a.limit)", "a.limit", id="by a setting"),
        pytest.param(
            "if p.grad is not None:\n        p.grad.clamp_(-1, 1)", "1", id="where there is one"
        ),
        pytest.param("p.grad.clamp_(-1, 2)", "", id="other bounds"),
        pytest.param("p.grad.clamp_(-1)", "", id="one bound"),
        pytest.param("p.data.clamp_(-1, 1)", "", id="weights"),
        pytest.param("p.grad.clamp_(-1, 1)\n    print(p)", "", id="something else beside it"),
    ],
)
def test_which_loops_are_taken(body: str, bound: str) -> None:
    text = f"import torch as t\nfor p in net.q.parameters():\n    {body}\n"
    expected = f"t.nn.utils.clip_grad_value_(net.q.parameters(), {bound})"
    written = [new for _, _, new in clamped_gradients(text, ast.parse(text))]
    assert written == ([expected] if bound else [])
