"""Masks of several axes beside slices, `...` and None in an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

MASKS = """
import torch


def elements(x, low):
    inside = (x[..., 0] >= low) & (x[..., 0] < 20)
    corners = torch.tensor([[True, False, True, True]] * 3)
    found = [
        x[inside, :], x[inside, 1:], x[inside, ...], x[inside, None], x[..., corners],
        x[~inside, :2], x[:, corners], x[torch.isnan(x[..., 1]), 1:], x[x[:, 0, 0] > 3, 1:],
    ]
    return [[list(part.shape), part.tolist()] for part in found]
"""


def test_a_mask_of_several_axes_beside_others_takes_what_it_takes_in_torch(tmp_path: Path) -> None:
    """MindSpore 2.10 gives another shape and other elements, or raises."""
    port, report = converted(tmp_path, {"masks.py": MASKS})
    assert not report.findings
    code = """
    import json
    import masks
    values = [[[float(12 * i + 4 * j + k) for k in range(4)] for j in range(3)] for i in range(2)]
    print(json.dumps(masks.elements(TENSOR(values), 5.0)))
    """
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert "x[inside]" in (port / "masks.py").read_text()


LOGITS = """
import torch
from torch import nn

model = nn.Linear(3, 5)
for number, parameter in enumerate(model.parameters()):
    values = torch.arange(parameter.numel()).reshape(parameter.shape)
    parameter.data.copy_(0.3 * torch.sin(values + number))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
criterion = nn.CrossEntropyLoss()


def pick(similarity):
    logits = similarity[~torch.eye(5, dtype=torch.bool)].view(similarity.shape[0], -1)
    return logits, torch.zeros(logits.shape[0], dtype=torch.long)


losses = []
for step in range(3):
    x = torch.sin(torch.arange(15.0) + step).reshape(5, 3)
    logits, labels = pick(model(x))
    loss = criterion(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""


def test_a_compiled_loss_of_what_a_mask_takes(tmp_path: Path) -> None:
    """The compiler knows no shape of it: a question about shapes would compile both answers."""
    port, _ = converted(tmp_path, {"logits.py": LOGITS})
    assert "ms.jit" in (port / "logits.py").read_text()
    code = "import json, logits; print(json.dumps(logits.losses))"
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
