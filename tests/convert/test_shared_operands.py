"""Later calls of a chain in place read what the earlier ones have written, as in torch.

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
y = x; x.add_(1).sub_(y)
y = x; x.add_(1).sub_(y).mul_(y + 2)
y = x; z = y; x.mul_(2).add_(z, alpha=0.5)
y = x * 1; x = x + y.add_(1).mul_(y[0] * 1)
y = x; z = x.add_(1).sub_(y * 2); x = z + y
y = x if x.sum() < 1e9 else x * 2; x.add_(1).mul_(y)
x[1:].mul_(2).add_(x.sum())
x[0].mul_(2).add_(x[0:2].sum(0))
x[0].mul_(2).add_(x[1])
x[:, :2].mul_(2).add_(x[:, 2:])
x[:, 1:].mul_(2).add_(x[:, :3] * 1)
y = x; y[0].mul_(2).add_(x[0])
row = x[0]; row.mul_(2).add_(x.sum(0))
y = x; x.clamp_(min=0).add_(torch.where(y > 0, y, y * 2))
y = x; x.add_(1).copy_(y * 2)
y = x.view(-1); x.add_(1).mul_(x.view(3, 4))
kept = [x]; x.add_(1).mul_(kept[0])
kept = {"x": x}; x.add_(1).mul_(kept["x"])
y = z = x; y.add_(1).mul_(z)
y, z = x, x; y.add_(1).mul_(z)
for row in x: row.mul_(2).add_(x[0])
""".strip().splitlines()

#: Changes that no write of MindSpore's carries to what is read behind.
LOST = """
v = x.view(4, 3); x.add_(1).mul_(v.view(3, 4))
v = x[0]; x.add_(1).mul_(v)
v = x.t(); v.mul_(2).add_(x.t())
w = x.data; x.add_(1).mul_(w)
for row in x: x.mul_(2).add_(row)
""".strip().splitlines()

#: Chains whose operands are tensors of their own: written as one expression.
APART = """
y = x * 2; x.mul_(2).add_(y)
y = torch.ones(3, 4); x.mul_(2).add_(y)
y = x.clone(); x.mul_(2).add_(y)
y = x; y = y + 1; x.mul_(2).add_(y)
x[0].mul_(2).add_(x[1])
x[..., :2].mul_(2).add_(x[..., 2:]).mul_(2 if x.is_floating_point() else 3)
a, b = x.chunk(2); a = a * 1; a.mul_(2).add_(b)
""".strip().splitlines()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], ...]:
    """What torch says of each statement, what the port says, and the lines that were told."""
    return both(tmp_path_factory.mktemp("shared_operands"), FAITHFUL + LOST)


@pytest.mark.parametrize("number", range(len(FAITHFUL)), ids=FAITHFUL)
def test_a_later_call_reads_what_an_earlier_one_wrote(
    number: int, answers: tuple[list[object], ...]
) -> None:
    expected, found, told = (answer[number] for answer in answers)
    assert not isinstance(expected, str), expected
    assert not told
    assert not isinstance(found, str), found
    for one, other in zip(found, expected, strict=True):  # type: ignore[call-overload]  # lists
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("number", range(len(LOST)), ids=LOST)
def test_an_operand_that_does_not_see_the_change_is_told(
    number: int, answers: tuple[list[object], ...]
) -> None:
    assert answers[2][len(FAITHFUL) + number]


@pytest.mark.parametrize("statement", APART)
def test_a_chain_with_other_tensors_is_one_expression(statement: str) -> None:
    body = "\n".join(f"    {part}" for part in statement.split("; "))
    port, _ = port_of(f"import torch\n\n\ndef f(x: torch.Tensor):\n{body}\n    return x\n")
    last = port.splitlines()[-2]
    assert last.count("overwrite(") + last.count("put(") + last.count("copy_(") <= 1
    assert ":=" not in last


OBJECTS = """
import torch
from torch import nn


class Kept:
    def __init__(self):
        self.h = torch.ones(2)
        self.c = self.h

    def step(self):
        self.h.mul_(2).add_(self.c)
        return self.h

    def total(self):
        return self.h.sum()

    def spread(self):
        self.h.add_(1).mul_(self.total())
        return self.h


def changed(t, u):
    t.add_(1).mul_(u)
    return t


held = torch.ones(2)


def read():
    return held * 2


def values():
    kept, x = Kept(), torch.ones(2)
    held.add_(1).mul_(read())
    given = [kept.step(), kept.spread(), changed(x, x), held]
    return [one.tolist() for one in given]
"""


def test_objects_functions_and_arguments_that_a_call_makes_one(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"objects.py": OBJECTS})
    assert not report.findings
    code = "import json, objects\nprint(json.dumps(objects.values()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected == [[50.0] * 2] * 2 + [[4.0] * 2, [8.0] * 2]


def test_the_data_of_a_parameter_that_a_name_holds_is_told() -> None:
    _, findings = port_of("""
import torch
from torch import nn

layer = nn.Linear(2, 2)
w = layer.weight.data
with torch.no_grad():
    layer.weight.sub_(1).mul_(w)
""")
    assert [(one.line, one.code) for one in findings] == [(8, "in-place-view")]


def test_a_chain_of_an_optimizer_stays_one_expression() -> None:
    port, findings = port_of("""
import torch


class Own(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                grad, state = p.grad, self.state[p]
                exp_avg = state["exp_avg"]
                exp_avg.mul_(0.9).add_(grad, alpha=0.1)
                state["exp_avg_sq"].mul_(0.9).add_(exp_avg)


def single(params, grads, averages):
    for i, p in enumerate(params):
        averages[i].mul_(0.9).add_(grads[i])
""")
    assert not findings
    for line in (
        "exp_avg[...] = ops.add(exp_avg * 0.9, 0.1 * grad)",
        'state["exp_avg_sq"] = (state["exp_avg_sq"] * 0.9) + exp_avg',
        "compat.put(averages, i, (averages[i] * 0.9) + grads[i])",
    ):
        assert line in port
