"""Names that the program gives to torch's packages by an assignment."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

from isograd.convert.unconverted import UnconvertedError, unconverted

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


_OTHERS = """
import torch
import torch.nn
import torch as t

T = torch
nn, F = T.nn, T.nn.functional; both = t


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        with T.no_grad():
            self.linear.weight.fill_(0.5); self.linear.bias.fill_(1.0)

    def forward(self, x):
        th = torch
        return th.relu(self.linear(x))


def first(x):
    G = torch.nn.functional
    return G.softmax(x, dim=-1)


def second(x):
    G = torch.nn.functional
    return G.relu(both.exp(x))
"""
_RUN_OTHERS = """
import json
from net import *
x = TENSOR([[0., 1.], [2., 3.]])
values = [v for part in (Net()(x), first(x), second(x)) for v in part.reshape(-1).tolist()]
print(json.dumps([round(value, 4) for value in values]))
"""


def test_torch_by_another_name_is_converted(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _OTHERS})
    assert not report.findings
    expected, found = run_both(tmp_path, port, _RUN_OTHERS)
    assert found == expected


def test_a_loop_over_what_was_not_converted_ends() -> None:
    with pytest.raises(UnconvertedError, match="was not converted"):
        list(unconverted("torch.no_such_thing"))
