"""Arguments in brackets of their own, in calls over several lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

_NET = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, channels=2):
        super().__init__()
        self.conv = nn.Conv2d(
            channels,
            (channels * 2),
            3,
            (channels // 2),
        )
        self.drop = nn.Dropout(
            (0.1)
        )

    def forward(self, x):
        return self.drop(self.conv(x)).mean(
            (2, 3),
        )


def called(a):
    return [
        torch.amax(
            a,
            (a.dim() - 1),
        ),
        torch.logsumexp(
            a, (a.dim() - 2)
        ),
        torch.max(
            (a[:1] - a / 2),
            (a / 3),  # (the corner
        ),
        F.max_pool2d(
            (  # why (this
                a[None]
            ),
            (  (1 + 1)  # twice (
            ) ,
        ),
        torch.full(
            (2, 3), (7)
        ),
    ]
"""


def test_values_are_torchs(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not report.findings
    code = """
    import json, net
    shape = list(net.Net()(TENSOR([[[[0.0] * 5] * 5] * 2])).shape)
    a = TENSOR([[[float(7 * i + j) % 5 for j in range(4)] for i in range(2)]])
    print(json.dumps([shape, *(part.tolist() for part in net.called(a))]))
    """
    expected, found = run_both(tmp_path, port, code)
    assert _close(expected, found)


def _close(one: object, other: object) -> bool:
    if not isinstance(one, list) or not isinstance(other, list):
        return bool(other == pytest.approx(one))
    return len(one) == len(other) and all(map(_close, one, other))


def test_brackets_and_comments_stay() -> None:
    port, _ = port_of(
        """
        import torch

        def f(a, d):
            return torch.amax(
                a,
                (d - 1),  # the last
            )
        """
    )
    assert "        a,\n        (d - 1), False,  # the last\n    )" in port
