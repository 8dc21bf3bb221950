"""Views that functions, methods and properties of a file return are views, as torch's own are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

from isograd.convert import Level

FUNCTIONS = """
import torch


def column(t, j):
    return t[:, j]


def first(t):
    row = t[0]
    return row


class Kept:
    def __init__(self):
        self.t = torch.zeros(2, 2)

    @property
    def first(self):
        return self.t[0]

    def of(self, t):
        return t[1]


def of_function():
    x = torch.ones(2, 2)
    c = column(x, 1)
    c.mul_(0)
    return x


def of_name():
    x = torch.ones(2, 2)
    c = first(x)
    c += 2
    return x


def of_method():
    x = torch.ones(2, 2)
    c = Kept().of(x)
    c += 2
    return x


def of_property():
    kept = Kept()
    kept.first.add_(1)
    kept.first[1:].add_(1)
    return kept.t


def values():
    return [made().tolist() for made in (of_function, of_name, of_method, of_property)]
"""

_HEAD = """
import torch


def flat(t):
    return t.view(-1)


def rows(t):
    if t.ndim > 2:
        t = t.flatten(1)
        return t
    return t * 2


class Kept:
    def __init__(self):
        self.t = torch.zeros(2, 2)

    @property
    def diagonal(self):
        return self.t.diagonal()

    def flat(self):
        return self.t.view(-1)


def run(x: torch.Tensor, kept: Kept):
"""


def test_parts_that_are_returned_are_written_in_their_tensor(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"returned.py": FUNCTIONS})
    assert not report.findings
    code = "import json, returned\nprint(json.dumps(returned.values()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected[0] == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    "statement",
    [
        "x = x * 1; v = flat(x); v.add_(1); return x",
        "x = x * 1; v = rows(x); v += 1; return x",
        "x = x * 1; v = flat(x); x.add_(1); return v",
        "x = x * 1; flat(x)[0] = 5; return x",
        "kept.diagonal.add_(1)",
        "kept.diagonal.add_(1).mul_(2)",
        "kept.diagonal.copy_(x)",
        "kept.diagonal[0] = 5",
        "kept.diagonal[0] += 5",
        "kept.flat().add_(1)",
        "v = kept.flat(); v.add_(1)",
    ],
)
def test_a_change_of_a_returned_view_that_is_lost_is_told(statement: str) -> None:
    body = "\n".join(f"    {part}" for part in statement.split("; "))
    _, findings = port_of(f"{_HEAD}{body}\n")
    assert [one.code for one in findings if one.line > _HEAD.count("\n")]


SAME = """
import torch
from torch import nn


def same(t):
    return t


def perhaps(t, flag):
    if flag:
        return t
    return t.clone()


row = lambda t: t[0]


class Net(nn.Module):
    def act(self, t):
        return t if self.training else t * 2

    def forward(self, t):
        x = t * 1
        y = self.act(x)
        y.add_(1)
        return x


def by_function():
    x = torch.ones(2, 2)
    y = same(x)
    y.mul_(3)
    y[0] = 7
    return x


def by_lambda():
    x = torch.ones(2, 2)
    itself = lambda t: t
    y = itself(x)
    y.add_(1)
    z = row(x)
    z += 3
    return x


def by_branch():
    x = torch.ones(2, 2)
    y = perhaps(x, True)
    y.zero_()
    return x


def by_method():
    return Net()(torch.ones(2, 2))


def values():
    return [made().tolist() for made in (by_function, by_lambda, by_branch, by_method)]
"""


def test_a_function_that_returns_its_argument_makes_no_tensor(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"returned.py": SAME})
    assert not [finding for finding in report.findings if finding.level is Level.FINISH]
    code = "import json, returned\nprint(json.dumps(returned.values()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected[0] == [[7.0, 7.0], [3.0, 3.0]]


LATER = """
import torch


def second(a, b):
    return b


def pick(flag, t, u):
    if flag:
        return t
    return u


def row(i, *, t):
    return t[i]


def part(i, t):
    return t[:, i]


class Box:
    @staticmethod
    def same(a, t):
        return t

    def of(self, a, t):
        return t


last = lambda a, b: b


def by_place():
    x = torch.ones(2, 2)
    y = second(1, x)
    y.add_(1)
    return x


def by_name():
    x = torch.ones(2, 2)
    y = second(b=x, a=1)
    y += 1
    return x


def first_of_two():
    x = torch.ones(2, 2)
    y = pick(True, x, x * 2)
    y.mul_(3)
    return x


def second_of_two():
    x = torch.ones(2, 2)
    y = pick(False, x * 2, x)
    y.mul_(3)
    return x


def by_name_alone():
    x = torch.ones(2, 2)
    y = row(1, t=x)
    y.mul_(3)
    return x


def of_part():
    x = torch.ones(2, 2)
    y = part(1, t=x)
    y -= 3
    return x


def of_methods():
    x = torch.ones(2, 2)
    y = Box.same(1, x)
    y -= 3
    z = Box().of(1, x)
    z.mul_(4)
    return x


def of_lambda():
    x = torch.ones(2, 2)
    y = last(1, x)
    y.zero_()
    return x


def counted():
    n = 3
    m = second(1, n)
    m += 1
    return torch.tensor([n, m])


MADE = (
    by_place, by_name, first_of_two, second_of_two, by_name_alone, of_part, of_methods, of_lambda,
    counted,
)


def values():
    return [made().tolist() for made in MADE]
"""


def test_a_function_that_returns_a_later_argument_makes_no_tensor(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"returned.py": LATER})
    assert not [finding for finding in report.findings if finding.level is Level.FINISH]
    code = "import json, returned\nprint(json.dumps(returned.values()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected[0] == [[2.0, 2.0], [2.0, 2.0]]
    assert "m += 1" in (port / "returned.py").read_text(encoding="utf-8")


def test_a_view_of_a_later_argument_that_is_written_to_is_reported() -> None:
    code = """
        import torch

        def flat(i, t):
            return t.view(-1)

        def run(x: torch.Tensor):
            x = x * 1
            y = flat(1, x)
            y -= 3
            return x
    """
    _, findings = port_of(code)
    assert "in-place-view" in {one.code for one in findings}


OUTER = """
import functools
import torch

kept = torch.zeros(2)
count = 1


def get():
    return kept


def number():
    return count


def of_module():
    x = get()
    x.add_(1)
    n = number()
    n += 1
    return [kept, torch.tensor(count)]


def of_function():
    x = torch.zeros(2)

    def inner():
        return x

    y = inner()
    y += 1
    return [x, y]


def bound_anew():
    x = torch.zeros(2)

    def grown(n):
        nonlocal x
        x = x + n
        return x

    y = grown(2)
    y += 1
    return [x, y]


def of_lambda():
    x = torch.zeros(2)
    inner = lambda: x
    y = inner()
    y.mul_(0).add_(5)
    return [x]


@functools.lru_cache(None)
def table(n):
    return torch.arange(n).float()


def of_cache():
    x = table(3)
    x += 1
    return [table(3), x]


def of_list():
    held = [torch.zeros(2)]

    def last():
        return held[-1]

    y = last()
    y += 1
    return held


def values():
    made = (of_module, of_function, bound_anew, of_lambda, of_list, of_cache)
    return [[part.tolist() for part in one()] for one in made]
"""


def test_a_tensor_from_around_a_function_that_returns_it_is_changed(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"returned.py": OUTER})
    assert not report.findings
    code = "import json, returned\nprint(json.dumps(returned.values()))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
    assert expected[1] == [[1.0, 1.0], [1.0, 1.0]]
