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


WRITTEN = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(4.0) / 4)

    def part(self, x, keep):
        x[keep] = self.w.sum() * x.new_ones(4)
        return x

    def forward(self, x, labels):
        x = x * 2
        k = labels == 0
        row = k[1]
        x[k] = (x.clone() * self.w)[k]
        y = x.clone()
        y[labels > 5] = (x.clone() * 7)[labels > 5]
        y[labels[:, 0] == 0] = self.w * 3
        y[k] += self.w
        y[x > 9] -= 1
        y = self.part(y, labels == 1)
        y[~k] = y[:1, :1].mean((0,)) * 2
        z = y.sum(-1)
        z[k] += self.w.sum()
        i = torch.tensor(1)
        z[i] = self.w.sum()
        y[:, row] = (x * 3)[:, row]
        return (y * y).mean() + (z * z).mean() + (x[k, 1:] ** 2).mean()
"""


def test_masks_compile_with_their_gradients(tmp_path: Path) -> None:
    """MindSpore's graph would broadcast what a mask of leading axes takes to the whole tensor."""
    port, report = converted(tmp_path, {"net.py": WRITTEN})
    assert not report.findings
    code = """
    import json
    import net
    made = net.Net()
    x = TENSOR([[[(12.0 * i + 4 * j + k) / 10 for k in range(4)] for j in range(3)]
                for i in range(2)])
    labels = TENSOR([[0, 1, 1], [1, 0, 0]])
    if hasattr(made, "construct"):
        import mindspore as ms
        step = ms.jit(ms.value_and_grad(made, 0, made.trainable_params()))
        loss, (slope, (weight,)) = step(x, labels)
    else:
        x.requires_grad_()
        loss = made(x, labels)
        loss.backward()
        slope, weight = x.grad, made.w.grad
    print(json.dumps([loss.item(), *slope.reshape(-1).tolist(), *weight.tolist()]))
    """
    expected, found = run_both(tmp_path, port, code)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
