"""`torch.exp_(x)` changes in the port what `x.exp_()` changes; copies of views are no views.

Every statement runs in both frameworks; what it leaves in its argument and its result are compared.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.convert.support import converted, port_of, run_both
from tests.convert.test_in_place import both

#: Statements about a tensor `x` of shape (3, 4), whose port does the same.
FAITHFUL = """
torch.exp_(x)
torch.neg_(input=x)
y = torch.exp_(x); x = x + y
y = torch.exp_(x * 0.1); x = x + y
z = x * 2; y = torch.neg_(z); x = x + y + z
torch.zero_(x[0])
torch.fill_(x[:, 1], 2)
y = torch.neg_(x[1]); x = x + y
y = x; torch.neg_(y)
y = x[0]; torch.neg_(y)
y = x[:, 0:2]; torch.clamp_(y, min=0)
for row in x: torch.neg_(row)
parts = [x]; torch.neg_(parts[0])
parts = {"a": x}; torch.neg_(parts["a"])
h = Holder(x); torch.neg_(h.mean)
h = Holder(x); y = torch.neg_(h.mean); x = x + y
h = Holder(x); torch.neg_(h.mean.mul_(2))
torch.exp_(torch.neg_(x))
torch.clamp_(torch.neg_(x).mul_(2), -3, 3)
torch.neg_(x.mul_(2)).add_(x)
torch.clamp_(x.mul_(2), max=x)
torch.neg_(x.view(-1))
torch.neg_(x.t())
torch.neg_(x.data)
torch.neg_(x[0].data)
w = x.data; torch.neg_(w); torch.fill_(w[0], 3)
torch.index_put_(x, (torch.tensor([0]), torch.tensor([1])), torch.tensor(7.0))
torch.nan_to_num_(torch.sqrt_(x), nan=0.5)
torch.round_(x.mul_(1.26), decimals=1)
x.addcdiv_(x * 1e-8, torch.full((3, 4), 1e-8), value=-0.5)
torch.Tensor.add_(x, 1)
torch.Tensor.mul_(x[0], 2)
y = torch.Tensor.add_(x, 1, alpha=3); x = x + y
F.threshold_(x, 0.5, 9)
F.hardtanh_(x[0], -2, 2)
h = Holder(x); F.relu_(h.mean)
y = F.celu_(x, alpha=0.5); x = x + y
y = x[x > 0]; torch.neg_(y); x = x + y.sum()
i = torch.tensor([0, 1]); y = x[i]; torch.neg_(y); x = x + y.sum()
i = torch.tensor([0, 1]); torch.neg_(x[i])
z = torch.empty(3, 4); torch.neg_(torch.add(x, 1, out=z)); x = x + z
y = x; x = torch.neg_(x); x = x + y
y = x * 1; torch.detach_(y); y += 1; x = x + y
p = nn.Parameter(x * 1); torch.neg_(p.data); x = p.detach() + 0
q = torch.resolve_conj(x); q += 1
x.apply_(lambda number: number + 1)
y = x; y.map_(x * 2, lambda one, other: one + other)
y = torch.narrow_copy(x, 0, 0, 1); y.add_(1); x = x + y
y = torch.select_copy(x, 0, 1); y[0] = 5; x = x + y
y = torch.slice_copy(x, 0, 0, 2); y[0] = 5; x = x + y.sum()
y = torch.permute_copy(x, (1, 0)); y[0] = 5; x = x + y.sum()
y = torch.transpose_copy(x, 0, 1); y += 5; x = x + y.sum()
y = torch.view_copy(x, (4, 3)); y[0] = 5; x = x + y.sum()
y = torch.unsqueeze_copy(x, 0); y[0, 0] = 5; x = x + y[0]
y = torch.squeeze_copy(x[:1]); y[0] = 5; x = x + y
y = torch.expand_copy(x[0], (3, 4)); y[0] = 5; x = x + y
y = torch.detach_copy(x); y[0] = 5; x = x + y
y = torch.alias_copy(x); y += 1; x = x + y
y = torch.unbind_copy(x)[0]; y[0] = 5; x = x + y
a, b = torch.split_copy(x, 2); a[0] = 2; b += 1; x = x + a.sum() + b.sum()
y = torch.as_strided_copy(x, (2, 2), (4, 1)); y[0] = 5; x = x + y.sum()
y = torch.diagonal_copy(x[:, :3]); y[0] = 5; x = x + y.sum()
y = torch.select_scatter(x, x[0], 0, 1); y[0] = 5; x = x + y
y = torch.slice_scatter(x, x[:1] * 2, 0, 1, 2); y[0, 0] = 5; x = x + y
""".strip().splitlines()

#: Changes that no write of MindSpore's carries to where torch carries them.
LOST = """
z = x.view(4, 3); torch.neg_(z)
torch.neg_(x.t().reshape(-1)[:2])
torch.neg_(x if x.sum() > 0 else x * 1)
parts = [x]; torch.neg_(next(iter(parts)))
parts = [x]; torch.exp_(torch.neg_(next(iter(parts))))
x = x * 1; row = x[0]; torch.neg_(x); x = x + row
torch.neg_(x)[0].add_(1)
torch.Tensor.add_(*(x, 1))
a, b = torch.unsafe_chunk(x, 2); a += 2
a = torch.unsafe_split(x, 2)[0]; a.mul_(2)
y = torch.adjoint(x); torch.neg_(y)
y = torch.conj(x); y += 1
y = torch.conj_physical(x); y += 1
""".strip().splitlines()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], ...]:
    """What torch says of each statement, what the port says, and the lines that were told."""
    return both(tmp_path_factory.mktemp("functions_in_place"), FAITHFUL + LOST)


@pytest.mark.parametrize("number", range(len(FAITHFUL)), ids=FAITHFUL)
def test_a_function_changes_what_the_method_changes(
    number: int, answers: tuple[list[object], ...]
) -> None:
    expected, found, told = (answer[number] for answer in answers)
    assert not isinstance(expected, str), expected
    assert not told
    assert not isinstance(found, str), found
    for one, other in zip(found, expected, strict=True):  # type: ignore[call-overload]  # lists
        np.testing.assert_allclose(one, other, rtol=2e-5)


@pytest.mark.parametrize("number", range(len(LOST)), ids=LOST)
def test_a_change_that_would_be_lost_is_told(
    number: int, answers: tuple[list[object], ...]
) -> None:
    assert answers[2][len(FAITHFUL) + number]


@pytest.mark.parametrize(
    ("function", "method"),
    [
        ("torch.exp_(x)", "x.exp_()"),
        ("torch.clamp_(x[0], min=0)", "x[0].clamp_(min=0)"),
        ("return torch.neg_(x) + y", "return x.neg_() + y"),
        ("torch.exp_(self.scale)", "self.scale.exp_()"),
        ("torch.neg_(torch.exp_(x))", "x.exp_().neg_()"),
        ("y = x[0]\n        torch.zero_(y)", "y = x[0]\n        y.zero_()"),
        ("exp_(x)", "x.exp_()"),
    ],
)
def test_the_port_of_a_function_is_that_of_the_method(function: str, method: str) -> None:
    ports = []
    for statement in (function, method):
        port, findings = port_of(f"""
import torch
from torch import exp_, nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def change(self, x: torch.Tensor, y: torch.Tensor):
        {statement}
        return x
""")
        ports.append((port, [(one.code, one.level, one.message) for one in findings]))
    assert ports[0] == ports[1]


def test_the_module_that_a_function_in_place_stands_in_is_told_what_is_not_known() -> None:
    _, findings = port_of("""
        import torch

        def f(values, x: torch.Tensor):
            torch.exp_(*values)
            return list(map(torch.exp_, [x]))
        """)
    assert [(found.line, found.code) for found in findings] == [
        (5, "not-converted"),
        (6, "not-converted"),
    ]


STATES = """
import torch


class Slow(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    def moments(self, state, gradient):
        first, second = state["first"], state["second"]
        first.mul_(0.5).add_(gradient)
        second.add_(1)
        return first / second

    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["first"] = torch.zeros_like(parameter)
                    state["second"] = torch.zeros_like(parameter)
                moved = self.moments(state, parameter.grad)
                with torch.no_grad():
                    parameter.sub_(group["lr"] * moved)


class Counts(object):
    def count(self, state):
        held = state["held"]
        held.add_(1)
        return held


def values():
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = Slow([weight])
    for _ in range(3):
        optimizer.zero_grad()
        (weight * weight).sum().backward()
        optimizer.step()
    state = {"held": torch.zeros(2)}
    Counts().count(state)
    Counts().count(state)
    first = optimizer.state[weight]["first"]
    return [weight.tolist(), first.tolist(), state["held"].tolist()]
"""


def test_methods_of_optimizers_change_the_state_that_they_are_given(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"states.py": STATES})
    assert "in-place-input" not in [finding.code for finding in report.findings]
    code = "import json, states; print(json.dumps(states.values()))"
    expected, found = run_both(tmp_path, port, code)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
