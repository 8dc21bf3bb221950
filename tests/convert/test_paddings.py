"""Paddings by MindSpore's own function, where no width can be below 0, and by the runtime's."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, port_of, run_both

_CODE = """
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def forward(self, x):
        B, C, H, W = x.shape
        left = none = 0
        more = H % 2
        widths = (left, -W % 4, none * 2, more, 0, 0)
        short = max(1, 4 - H)
        y = F.pad(x, widths, value=0.5) if W % 4 else x
        y = F.pad(y, (short // 2, short - short // 2))
        return F.pad(y, [0, 1, 2, 0], "constant", -1) * 2


def cut(x, n):
    return F.pad(x, (0, n)) + F.pad(x, (0, 3 - x.shape[-1]))
"""

_USE = """
import json
import numpy as np
import net

x = np.arange(30, dtype=np.float32).reshape(1, 2, 3, 5)
found = [net.Net()(TENSOR(x)).sum((2, 3)).tolist(), list(net.Net()(TENSOR(x)).shape)]
found += [net.cut(TENSOR(x[..., :4]), n).tolist() for n in (-1,)]
print(json.dumps(found))
"""


def test_paddings_by_widths_from_zero_on_are_torchs(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _CODE})
    assert not report.findings
    text = (port / "net.py").read_text()
    assert text.count("ops.pad(") == 3
    assert text.count(".pad(") == 5
    expected, found = run_both(tmp_path, port, _USE)
    assert found == expected


@pytest.mark.parametrize(
    "widths",
    [
        "(n, 0)",
        "(0, -1)",
        "[0, x.shape[1] - 2]",
        "(0, x.shape[1] % n)",
        "(0, True)",
        "(0, 1 / 2)",
        "widths",
        "(*widths, 0, 1)",
    ],
)
def test_what_may_be_below_zero_is_not_given_to_mindspores_own(widths: str) -> None:
    code = f"""
    import torch
    import torch.nn.functional as F

    def f(x: torch.Tensor, n):
        widths = [0, 1]
        widths[1] = n
        return F.pad(x, {widths})
    """
    assert "ops.pad(" not in port_of(code)[0]


def test_names_that_are_bound_otherwise_too_are_not_known() -> None:
    code = """
    import torch
    import torch.nn.functional as F

    def f(x: torch.Tensor):
        right = 1
        for right in (-1, 0):
            x = F.pad(x, (0, right))
        low = 2
        low -= 3
        return F.pad(x, (low, 0))
    """
    assert "ops.pad(" not in port_of(code)[0]
