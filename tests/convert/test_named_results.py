"""Parts of torch's named results: tensors, of which the port takes the methods of torch."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, port_of, run_both

_CODE = """
import torch

X = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
held = X.max(dim=1)
at_top = [held[0].size(0), held.indices.tolist()]


class Bag:
    values = 3


def of_parts():
    v = X.topk(2, dim=1).values
    first, second = X.topk(2)
    found = [v.std().item(), v.var(0).tolist(), v.repeat(2, 1).shape[0], first.std().item()]
    found += [second.size(1), (X.max(1).indices.sum() / 4).item()]
    return found


def of_a_held_result():
    a = X.sort(dim=1).values
    m = a.max(1)
    return m[0].std().item(), m.indices.sum().item(), [one.size(0) for one in m]


def of_matrices():
    parts = [torch.linalg.eigh(X).eigenvalues, torch.linalg.svd(X).S, torch.linalg.qr(X).R]
    parts += [torch.linalg.lu(X).U, torch.linalg.inv_ex(X).inverse, torch.frexp(X).mantissa]
    parts += [torch.linalg.lstsq(X, X).solution, torch.linalg.slogdet(X).logabsdet[None]]
    parts += [torch.linalg.cholesky_ex(X).L, torch.aminmax(X, dim=0).min, X.mode().values]
    return [round(part.std(0, correction=0).sum().item(), 3) for part in parts if part.size(0)]


def of_others(held={"a": 1.0}):
    return sorted(held.values()), Bag().values, Bag.values
"""


def test_parts_by_name_are_tensors(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"m.py": _CODE})
    assert not report.findings
    code = """
    import json, m
    found = [m.at_top, m.of_parts(), m.of_a_held_result(), m.of_matrices(), m.of_others()]
    print(json.dumps(found))
    """
    expected, found = run_both(tmp_path, port, code)
    assert _rounded(found) == _rounded(expected)


def _rounded(value: object) -> object:
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value


def test_a_name_that_may_hold_anything_else_keeps_its_part() -> None:
    code = """
    import torch

    def f(x: torch.Tensor, other):
        found = other(x)
        if found is None:
            found = x.max(1)
        return found.indices

    def g(x: torch.Tensor):
        global found
        found = x.max(1)

    found = g(torch.ones(2, 2))
    print(found.indices)
    """
    port, _ = port_of(code)
    assert port.count("found.indices") == 2


_BY_NAME = """
import torch

X = torch.tensor([[2.0, -4.0], [1.0, 5.0]])


def written_out():
    found = [getattr(X, "std")().item(), getattr(X, "median")().item()]
    return found, getattr(X, "sum")(dim=0).tolist(), getattr(X, "tag", 3)
"""


def test_a_method_by_its_name_is_torchs(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"m.py": _BY_NAME})
    assert not report.findings
    code = "import json, m; print(json.dumps(m.written_out()))"
    expected, found = run_both(tmp_path, port, code)
    assert _rounded(found) == _rounded(expected)


def test_a_computed_name_of_a_tensors_method_is_reported() -> None:
    code = """
    import torch

    def f(x: torch.Tensor, name):
        y = getattr(x, "add_")(1)
        return getattr(x, name)(), getattr(name, "upper")(), getattr(y, "tag", 2)
    """
    _, findings = port_of(code)
    assert [(one.line, one.code) for one in findings] == [
        (5, "not-converted"),
        (6, "not-converted"),
    ]
