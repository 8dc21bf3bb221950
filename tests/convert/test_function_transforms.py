"""torch.func, vmap and torch.autograd.functional called directly, and several tensors in `out=`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_both, with_cases

from isograd.convert import Level

_HEAD = """
import torch
from torch.func import grad, hessian, jacrev, vmap

x = torch.arange(12.0).reshape(3, 4) - 5


def cubes(a):
    return (a ** 3).sum()


def of_two(a, b):
    return (a ** 2 * b).sum() + (b ** 3).sum() * a.sum()


def doubled_into(a, out):
    torch.mul(a, 2, out=out)


def sorted_into(a, out):
    torch.sort(a, 1, out=out)


def greatest_into(a, v, i):
    torch.max(a, 1, out=[v, i])

"""
#: Each gives a list of tensors.
_CASES = (
    ("return [torch.func.grad(lambda a: (a * a).sum())(x)]",),
    ("return [torch.func.grad(lambda a, b: (a * b).sum(), argnums=1)(x, x + 1)]",),
    ("return [torch.vmap(lambda a: a.sum(), in_dims=1)(x), vmap(torch.dot)(x, x)]",),
    ("return [vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1)(x, x[0])]",),
    ("g = grad(cubes)", "return [g(x[0]), vmap(g)(x)]"),
    ("return [vmap(vmap(lambda a: a + 1))(x), *vmap(lambda a: (a, a * 2))(x)]",),
    ("return [torch.func.jacrev(lambda a: a ** 2)(x[0]), jacrev(cubes)(x)]",),
    ("return [torch.func.jacfwd(lambda a: a.exp())(x[0])]",),
    ("return [torch.autograd.functional.jacobian(lambda a: a.exp(), x[0])]",),
    ("return [*torch.autograd.functional.jacobian(lambda a, b: a * b, (x[0], x[1]))]",),
    ("return [torch.autograd.functional.hessian(cubes, x[0]), hessian(cubes)(x[0])]",),
    ("blocks = torch.autograd.functional.hessian(of_two, (x[0], x[1]))",
     "return [part for row in blocks for part in row]"),
    ("(a, b), (c, d) = hessian(of_two, argnums=(1, 0))(x[0], x[2])", "return [a, b, c, d]"),
    ("o = torch.zeros(5)", "p = o", "torch.exp(x[0], out=o)", "return [o, p]"),
    ("o = [torch.zeros(2, 4)]", "torch.add(x[0], 1, out=o[0])", "return o"),
    ("o = torch.empty(0)", "doubled_into(x, o)", "p = torch.zeros(3, 4)", "doubled_into(x, p)",
     "return [o, p]"),
    ("v, i = torch.empty(0), torch.empty(0, dtype=torch.long)", "out = (v, i)",
     "torch.max(x, 1, out=out)", "return [v, i]"),
    ("return [*torch.autograd.functional.vjp(lambda a: a.exp(), x[0], torch.ones(4))]",),
    ("v, i = torch.empty(3), torch.empty(3, dtype=torch.long)",
     "torch.max(x, dim=1, out=(v, i)); torch.min(-x, 1, keepdim=False, out=(v, i))",
     "return [v, i]"),
    ("v, i = torch.empty(0), torch.LongTensor()",
     "found = torch.topk(x, 2, dim=1, out=(v, i))", "return [v, i, *found]"),
    ("out = (torch.empty(3), torch.empty(3, dtype=torch.long)); v = out[0]",
     "torch.max(x, 1, out=out)", "return [v, *out]"),
    ("v, i = torch.empty(3), torch.empty(3, dtype=torch.long)", "held = [v]",
     "torch.max(x, 1, out=(v, i))", "return [held[0], v, i]"),
    ("v, i = torch.empty(3, 4), torch.empty(3, 4, dtype=torch.long)",
     "sorted_into(x, (v, i))", "return [v, i]"),
    ("v, i = torch.empty(3), torch.empty(3, dtype=torch.long)",
     "greatest_into(x, v, i)", "return [v, i]"),
)  # fmt: skip
_RUN = """
import json
from net import CASES
print(json.dumps([[part.tolist() for part in case()] for case in CASES]))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], list[object]]:
    """What each case gives in torch, and in its port."""
    folder = tmp_path_factory.mktemp("transforms")
    port, report = converted(folder, {"net.py": with_cases(_HEAD, _CASES)})
    assert not [finding for finding in report.findings if finding.level is Level.FINISH]
    return run_both(folder, port, _RUN)


@pytest.mark.parametrize("number", range(len(_CASES)), ids=[case[-1] for case in _CASES])
def test_it_is_torchs(number: int, answers: tuple[list[object], list[object]]) -> None:
    expected, found = (answer[number] for answer in answers)
    for one, other in zip(found, expected, strict=True):  # type: ignore[call-overload]  # lists
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize(
    "code", ["torch.func.hessian(lambda a: (a * a).sum())(x)", "grad(grad(torch.sin))(x)"]
)
def test_a_second_derivative_that_is_not_compiled_is_reported(code: str) -> None:
    _, findings = port_of(f"import torch\nfrom torch.func import grad\ndef f(x):\n    y = {code}\n")
    assert [f.line for f in findings if f.level is Level.FINISH] == [4]
