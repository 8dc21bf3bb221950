"""Reductions, losses and products of what may be empty: MindSpore's are whatever memory held."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F


def fill():
    for count in (1, 3, 4, 5, 8, 12, 15, 20, 40):
        float((torch.ones(count) * 7.0).sum())


def apart(a, b):
    return (a - b).abs()


def far(a, b):
    return apart(a, b).sum()


class Focal(nn.Module):
    def forward(self, logits, labels):
        fill()
        return (F.l1_loss(logits, labels, reduction="none") ** 2).sum()


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls = nn.Linear(4, 5)
        self.late = nn.Linear(4, 3)
        self.ce = nn.CrossEntropyLoss()
        self.ce_sum = nn.CrossEntropyLoss(reduction="sum")
        self.mse = nn.MSELoss()
        self.focal = Focal()
        for parameter in self.parameters():
            parameter.data.fill_(0.1)

    def forward(self, x, labels):
        found = []
        logits, chosen = self.cls(x), labels > 0
        taken, those = logits[chosen], labels[chosen]
        fill()
        found += [taken.abs().sum(), (taken ** 2).sum(), taken.mean(), taken.norm()]
        fill()
        found += [F.cross_entropy(taken, those), F.cross_entropy(taken, those, reduction="sum")]
        fill()
        found += [self.ce(taken, those), self.ce_sum(taken, those), self.mse(taken, taken * 2)]
        fill()
        found += [F.smooth_l1_loss(taken, taken * 2, reduction="sum"), far(taken, taken * 3)]
        found += [self.focal(taken, taken * 2), (taken.T @ taken).sum()]
        fill()
        return [*found, self.late(x[chosen]).sum(), (x[chosen] @ self.late.weight.T).mean()]


def values(net, labels):
    x = torch.arange(24.0).reshape(6, 4) / 10
    losses = [loss.detach() for loss in net(x, torch.tensor(labels))]
    return [f"{float(loss):.3g}" for loss in losses]


def slopes(net, labels):
    found = []
    for number in range(15):
        net.zero_grad()
        loss = net(torch.arange(24.0).reshape(6, 4) / 10, torch.tensor(labels))[number]
        fill()
        loss.backward()
        grads = [p.grad for p in net.parameters() if p.grad is not None]
        found.append(round(sum(float(grad.abs().sum()) for grad in grads), 1))
    return found
"""


@pytest.mark.parametrize("labels", [[0] * 6, [0, 1, 3, 0, 2, 4]])
def test_what_a_mask_takes_reduces_as_in_torch(tmp_path: Path, labels: list[int]) -> None:
    port, _ = converted(tmp_path, {"net.py": HEAD})
    code = f"""
    import json, net
    made = net.Head()
    print(json.dumps([net.values(made, {labels}), net.slopes(made, {labels})]))
    """
    expected, found = run_both(tmp_path, port, code)
    assert found == expected


def test_a_compiled_loss_of_nothing_is_torchs(tmp_path: Path) -> None:
    code = """
    import torch
    import torch.nn.functional as F


    def loss(x: torch.Tensor, y):
        chosen = x[y > 0]
        return F.l1_loss(chosen, chosen * 2, reduction="sum"), chosen.abs().mean()
    """
    port, _ = converted(tmp_path, {"net.py": code})
    run = """
    import json, sys, net
    jit = sys.modules["mindspore"].jit if "mindspore" in sys.modules else lambda f: f
    x = TENSOR([1.0, 2.0, 3.0])
    print(json.dumps([
        [f"{float(v):.3f}" for v in jit(net.loss)(x, TENSOR(y))]
        for y in ([0.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    ]))
    """
    expected, found = run_both(tmp_path, port, run)
    assert found == expected == [["5.000", "2.500"], ["0.000", "nan"]]


def test_what_cannot_be_empty_stays_mindspores() -> None:
    port, _ = port_of("""
    import torch
    import torch.nn.functional as F


    def f(x: torch.Tensor, y: torch.Tensor):
        rows = x[:3].abs()
        kept = torch.where(x > 0, x, y)
        n = x[x > 0].shape[0]
        return rows.sum() + kept.mean() + F.mse_loss(x, y, reduction="sum") + (x @ y).sum() + n
    """)
    assert "unless_empty" not in port
    assert "total" not in port


def test_a_mask_that_is_bound_to_itself_is_read(tmp_path: Path) -> None:
    code = """
    import torch
    import torch.nn.functional as F


    def loss(x: torch.Tensor, keep, near):
        keep = keep & near
        chosen = x[keep]
        return F.l1_loss(chosen, chosen * 2)
    """
    port, _ = converted(tmp_path, {"net.py": code})
    run = """
    import json, net
    x, keep = TENSOR([1.0, 2.0, 3.0]), TENSOR([True, True, False])
    print(json.dumps(round(float(net.loss(x, keep, keep)), 3)))
    """
    expected, found = run_both(tmp_path, port, run)
    assert found == expected == 1.5
