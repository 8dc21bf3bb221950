"""`features.retain_grad()`: gradients of tensors that were computed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert_training.running import LAYERS, assert_follows

ACTIVATION = """
first, second = make(1), make(2)
x = X[0]
features = torch.relu(first(x))
features.retain_grad()
print(float(features.grad is None))
scores = second(features)
scores[:, 1].sum().backward(retain_graph=True)
weights = features.grad.mean(0, keepdim=True)
print((weights * features).sum().item())
scores[:, 2].sum().backward()
print(features.grad.sum().item(), first.weight.grad.sum().item(), sep="\\n")
first.weight.retain_grad()
print(first.weight.grad.abs().sum().item())
"""


def test_a_gradient_is_kept_and_added_to(tmp_path: Path) -> None:
    converted = assert_follows(LAYERS + ACTIVATION, tmp_path)
    assert "compat.retain_grad(features)" in converted.text


def test_what_has_no_graph_is_refused(tmp_path: Path) -> None:
    text = """
import torch
from torch import nn

net = nn.Linear(2, 1)
x = torch.ones(3, 2)
with torch.no_grad():
    y = net(x)
try:
    y.retain_grad()
except RuntimeError as error:
    print(float("can't retain_grad" in str(error)))
net(x).sum().backward()
"""
    assert_follows(text, tmp_path)
