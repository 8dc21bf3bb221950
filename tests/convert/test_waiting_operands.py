"""What a statement has read sees a change that the same statement makes, as in torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_both, with_cases

#: Expressions about h, which is computed from x.
EXPRESSIONS = """
h.mul_(2) + h.add_(5)
h.mul_(2) + h.sin_()
torch.stack([h, h.add_(1)])
torch.stack([h.add_(1), h.mul_(2)])
(h * 2) + h.add_(1)
(h, h.add_(1), h * 2)
{"a": h.add_(1), "b": h.add_(1)}
both(h, h.add_(1))
both(h, h.add_(1), h.mul_(2))
both(h.view(-1), h.add_(1))
both(torch.sum(h), h.add_(1))
both(h * 2, h, h.add_(1))
both(h[0], h, h.add_(1))
F.relu(h.sub_(2), inplace=True) + h
(h.exp_() if h.sum() > 0 else h.neg_()) + h
h + torch.neg_(h)
h + F.relu(h, inplace=True)
h.add_(1), h
[h, h.add_(1)][0]
h + (h if h.sum() > 1e9 else h.add_(1))
other(h) + other(k.mul_(2)) + k.add_(h)
"""
_START = """
import torch
import torch.nn.functional as F
from torch import nn


def both(*parts):
    return sum(part.sum() * (n + 1) for n, part in enumerate(parts))


def other(part):
    return part


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return x + self.relu(x)


class Joined(Residual):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = x * 2
        y = self.relu(x.mul_(3)) - x
        return torch.cat([x, x.add_(y)])


def total(found):
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (tuple, list)):
        return sum(part.sum() * (n + 2) for n, part in enumerate(found))
    return (found * found).sum()


def added():
    x = torch.ones(2)
    x += x.add_(1)
    return x.tolist()
"""


def _case(expression: str) -> list[str]:
    return [
        "x = torch.tensor([0.7, -1.2, 0.4], requires_grad=True)",
        "h, k = x * 3, x * 2",
        f"z = {expression}",
        "loss = total(z) + h.sum() * 7",
        "loss.backward()",
        "return [loss.item(), *x.grad.tolist()]",
    ]


def _written() -> str:
    return with_cases(_START, map(_case, EXPRESSIONS.strip().splitlines()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("waiting")
    converted(root, {"net.py": _written()})
    return root


def test_each_part_sees_the_changes(folder: Path) -> None:
    code = "import json, net; print(json.dumps([case() for case in net.CASES]))"
    expected, found = run_both(folder, folder / "port", code)
    expressions = EXPRESSIONS.strip().splitlines()
    for expression, wanted, got in zip(expressions, expected, found, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, err_msg=expression)


def test_networks_and_an_augmented_assignment(folder: Path) -> None:
    code = """
    import json, net
    x = TENSOR([-1.0, 2.0])
    print(json.dumps([*(kind()(x).tolist() for kind in (net.Residual, net.Joined)), net.added()]))
    """
    expected, found = run_both(folder, folder / "port", code)
    assert found == expected


def test_an_input_of_forward_that_cannot_be_changed_before_is_told() -> None:
    _, findings = port_of(
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def forward(self, x):
                while (x + x.add_(1)).sum() < 9:
                    pass
                return x
        """
    )
    assert any("in this statement" in found.message for found in findings)


def test_a_view_that_does_not_see_the_change_is_told() -> None:
    _, findings = port_of(
        """
        import torch

        def f(x: torch.Tensor):
            y = torch.sin(x)
            return torch.stack([y * 2, y.view(-1), y.add_(1)])
        """
    )
    assert any("share memory" in found.message for found in findings)


def test_what_is_used_before_it_is_changed_is_bound_as_ever() -> None:
    port, _ = port_of(
        """
        import torch

        def f(x: torch.Tensor):
            y = torch.sin(x)
            z = y * 2 + y.add_(1)
            return z, y
        """
    )
    assert "y * 2 + (y := y + 1)" in port
