"""Names that the program gives to torch's packages by an assignment."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, port_of, run_both

_NET = """
import torch
from torch import nn

D = torch.distributions


def likelihood(x):
    return D.Normal(0.0, 1.0).log_prob(x)


def pooled(x):
    F = nn.functional  # only here
    return F.max_pool2d(x, 2, 2)
"""
_RUN = """
import json
from net import *
x = TENSOR([[[0., 1.], [2., 3.]]])
values = [*likelihood(x).reshape(-1).tolist(), *pooled(x).reshape(-1).tolist()]
print(json.dumps([round(value, 4) for value in values]))
"""


def test_a_package_by_another_name_is_converted(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not report.findings
    expected, found = run_both(tmp_path, port, _RUN)
    assert found == expected


def test_a_name_with_another_value_is_no_package() -> None:
    text, findings = port_of("""
        import torch

        def f(x, fast):
            if fast:
                F = torch.nn.functional
            else:
                F = None
            return F.relu(x)
        """)
    assert "import torch.nn" not in text
    assert "unconverted" in text
    assert findings
