"""Parts of results by torch's names, beside the plain unpacking, and compiled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both, run_port

pytest.importorskip("torch")
pytest.importorskip("mindspore")

_NET = """
import torch


def parts(x):
    found = torch.linalg.svd(x)
    left, values, right = torch.linalg.svd(x)
    sign, size = torch.linalg.slogdet(x)
    q, r = torch.linalg.qr(x)
    mantissa, exponent = torch.frexp(x)
    return [
        found.S, torch.svd(x).S, values, left[0].abs(), found.Vh.abs(), right.abs(),
        torch.linalg.slogdet(x).logabsdet, torch.slogdet(x).sign, sign, size,
        torch.linalg.qr(x).R.abs(), x.qr().Q.abs(), q.abs(), r.abs(),
        torch.frexp(x).mantissa, torch.frexp(x).exponent, mantissa, exponent,
        torch.geqrf(x).tau.abs(), torch.mode(x, 0).values, torch.mode(x, 0).indices,
    ]


def handed_on():
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    return [last(one) for one in (torch.linalg.svd(x), torch.linalg.qr(x))]


def last(found):
    return found.S if hasattr(found, "S") else found.R.abs()
"""
_CALL = """
import json, net
found = [*net.parts(TENSOR([[2.0, 1.0], [1.0, 3.0]])), *net.handed_on()]
print(json.dumps([[round(float(n), 4) for n in part.reshape(-1)] for part in found]))
"""
#: The static graph's answer and the gradient of a part that is asked for by its name.
_COMPILED = """
import json, mindspore as ms, net
x = ms.Tensor([[2.0, 1.0], [1.0, 3.0]])
graph = ms.jit(net.compiled)
found = graph(x), ms.grad(graph)(x), net.compiled(x), ms.grad(net.compiled)(x)
print(json.dumps([[round(float(n), 4) for n in part.reshape(-1)] for part in found]))
"""


def test_parts_are_what_torch_names_so(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not report.findings
    expected, found = run_both(tmp_path, port, _CALL)
    assert found == expected


def test_a_part_by_its_name_has_a_gradient_when_compiled(tmp_path: Path) -> None:
    code = "import torch\n\n\ndef compiled(x):\n    low, exponent = torch.frexp(x)\n"
    code += "    return (torch.frexp(x).mantissa * low + exponent).sum()\n"
    port, _ = converted(tmp_path, {"net.py": code})
    by_graph, slope, eager, eager_slope = json.loads(run_port(port, _COMPILED))
    assert by_graph == eager
    assert slope == eager_slope
    assert any(slope)


def test_an_attribute_of_another_result_stays() -> None:
    code = "import torch\n\n\ndef f(found):\n    return found.S, torch.relu(found.x)\n"
    assert "found.S" in port_of(code)[0]
