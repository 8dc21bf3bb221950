"""What torch takes and MindSpore raises of: None for a dtype, marks of plain tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

_CODE = """
import torch
from typing import Any, Optional


def moved(x: torch.Tensor, device: torch.device, dtype: Optional[torch.dtype] = None):
    return x.to(device=device, dtype=dtype)


def cast(x: torch.Tensor, *, dtype: "torch.dtype | None"):
    return x.to(dtype=dtype)


def repeated(x: torch.Tensor):
    return torch.jit.annotate(torch.Tensor, x).repeat(2, 1)


def first(*given):
    return given[0].clone()


class Box:
    def __init__(self, data: Any):
        self.data = data

    def clone(self):
        return Box(self.data)

    def learns(self):
        return self.data.requires_grad


def found():
    x = torch.arange(6.0).reshape(2, 3)
    made = [moved(x, x.device), moved(x, x.device, torch.float64), cast(x, dtype=None)]
    made += [repeated(x), first(x), first(Box(x)).data]
    told = [Box(x).learns(), Box(torch.nn.Parameter(x)).learns()]
    return [(one.tolist(), str(one.dtype).split(".")[-1].lower()) for one in made], told
"""


def test_what_is_given_is_torchs(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _CODE})
    code = "import json, net\nprint(json.dumps(net.found()))\n"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("def f(x: torch.Tensor, dtype):", id="nothing says so"),
        pytest.param("def f(x: torch.Tensor, dtype: torch.dtype = torch.float16):", id="a dtype"),
        pytest.param(
            "def f(x: torch.Tensor, dtype=None):\n    dtype = dtype or torch.float16",
            id="bound again",
        ),
        pytest.param(
            "def f(x: torch.Tensor, dtype=None):\n    if dtype is None:\n        return x",
            id="asked before",
        ),
    ],
)
def test_what_is_no_none_stays_mindspores(head: str) -> None:
    port, _ = port_of(f"import torch\n\n\n{head}\n    return x.to(dtype=dtype)\n")
    assert "return x.astype(dtype)" in port


def test_the_gradient_goes_through_a_padding_by_nothing(tmp_path: Path) -> None:
    code = """
    import torch
    import torch.nn.functional as F


    def slope(n):
        x = torch.arange(1.0, 7.0).reshape(1, 2, 3).requires_grad_(True)
        F.pad(x, (0, n), mode="replicate").pow(2).sum().backward()
        return x.grad.tolist()
    """
    port, _ = converted(tmp_path, {"net.py": code})
    run = "import json, net\nprint(json.dumps([net.slope(0), net.slope(1)]))\n"
    expected, found = run_both(tmp_path, port, run)
    assert found == expected
