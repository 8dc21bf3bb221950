"""A function of torch's that a name holds is called by torch's names of arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

_NET = """
import torch

outer = torch.vstack


def apply(x, v):
    times, root = torch.mv, torch.sqrt
    times = torch.mv
    spread = torch.broadcast_to
    return [times(x, vec=v), spread(v, size=(3, 2)), outer(tensors=[v, v]), torch.kron(v, v)]
"""
_CALL = """
import json, net
found = net.apply(TENSOR([[2.0, 1.0], [1.0, 3.0]]), TENSOR([1.0, 2.0]))
print(json.dumps([part.tolist() for part in found]))
"""


def test_a_call_by_names_finds_mindspores_arguments(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    port, _ = converted(tmp_path, {"net.py": _NET})
    expected, found = run_both(tmp_path, port, _CALL)
    assert found == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("f = torch.mv\n    return f(x, vec=y)", "f(x, y)", id="its one function"),
        pytest.param("f = torch.mv\n    return f(vec=y, input=x)", "vec=y", id="another order"),
        pytest.param("f = torch.mv\n    return f(*x, vec=y)", "vec=y", id="unknown places before"),
        pytest.param(
            "f = torch.mv\n    if x is y:\n        f = x.g\n    return f(x, vec=y)",
            "f(x, vec=y)",
            id="it may be anything else",
        ),
        pytest.param(
            "for f in y:\n        x = f(x, vec=y)\n    return x", "f(x, vec=y)", id="of a loop"
        ),
    ],
)
def test_only_known_functions_get_their_arguments_by_place(body: str, expected: str) -> None:
    port, _ = port_of(f"import torch\n\n\ndef apply(x, y):\n    {body}\n")
    assert expected in port
