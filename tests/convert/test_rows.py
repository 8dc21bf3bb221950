"""Rows of a tensor that are listed or gone through are views of it, as in torch.

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
rows = list(x); rows[0].add_(5)
rows = tuple(x); rows[1].mul_(2)
rows = [*x]; rows[0].add_(5); rows[1] += 1
rows = [r for r in x]; rows[2].zero_()
rows = sorted(x, key=lambda r: -r.sum().item()); rows[0].zero_()
rows = {i: r for i, r in enumerate(x)}; rows[1].add_(1)
x = x * 1; rows = list(x); x[0].add_(1); x = rows[0] * 2
x = x * 1; rows = list(x); x[0] += 1; x = rows[0] * 2
x = x * 1; a = x[0]; rows = list(x); rows[0].add_(1); x = a + rows[1]
x = x * 1; rows = [r for r in x if r.sum() < 1e9]; rows[1].add_(1); x = x + rows[0]
rows = [r * 2 for r in x]; x.add_(1); x = x + rows[0]
rows = list(x * 2); x.add_(1); x = x + rows[0]
a, b, c = list(x); b.add_(1)
a, b = x[0], x[:2]; x = a * 1; a.add_(1); x = x + b.sum()
""".strip().splitlines()

#: Changes that no write of MindSpore's carries to where torch carries them.
LOST = """
x = x * 1; rows = list(x); x.add_(1); x = x + rows[0]
x = x * 1; rows = [r for r in x]; x += 1; x = x + rows[0]
x = x * 1; rows = [*x]; x.mul_(2); x = x + rows[0]
x = x * 1; rows = list(enumerate(x)); x.mul_(2); x = x + rows[0][1]
x = x * 1; rows = list(zip(x, x)); x.mul_(2); x = x + rows[0][1]
x = x * 1; rows = {i: r for i, r in enumerate(x)}; x.mul_(2); x = x + rows[0]
x = x * 1; rows = sorted(x, key=lambda r: r.sum().item()); x.mul_(2); x = x + rows[0]
rows = [r.view(2, 2) for r in x]; x.add_(1); x = x + rows[0].sum()
""".strip().splitlines()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], ...]:
    """What torch says of each statement, what the port says, and the lines that were told."""
    return both(tmp_path_factory.mktemp("rows"), FAITHFUL + LOST)


@pytest.mark.parametrize("number", range(len(FAITHFUL)), ids=FAITHFUL)
def test_a_change_reaches_the_rows_and_their_tensor(
    number: int, answers: tuple[list[object], ...]
) -> None:
    expected, found, told = (answer[number] for answer in answers)
    assert not isinstance(expected, str), expected
    assert not told
    assert not isinstance(found, str), found
    for one, other in zip(found, expected, strict=True):  # type: ignore[call-overload]  # lists
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("number", range(len(LOST)), ids=LOST)
def test_a_change_that_rows_do_not_see_is_told(
    number: int, answers: tuple[list[object], ...]
) -> None:
    assert answers[2][len(FAITHFUL) + number]


ROWS = """
import torch


def by_number():
    x = torch.arange(4.0).reshape(2, 2)
    a = x[0]
    for row in x:
        row.add_(1)
    return a


def values():
    return by_number().tolist()
"""


def test_a_row_by_number_sees_a_loop_over_the_rows(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"rows.py": ROWS})
    assert not report.findings
    expected, found = run_both(
        tmp_path, port, "import json, rows\nprint(json.dumps(rows.values()))"
    )
    assert found == expected == [1.0, 2.0]


@pytest.mark.parametrize(
    "body",
    [
        "q, k = x[0], x[1]",
        "q, k = x",
        "q, k = x.unbind(0)",
        "q = x[0]; k = x[1:]",
        "q = x[:, 0]; k = x[:, 1]",
    ],
)
def test_rows_that_differ_by_number_are_bound_anew(body: str) -> None:
    port, findings = port_of(
        f"import torch\n\n\ndef f(x: torch.Tensor):\n    x = x * 2; {body}\n"
        "    q *= 2\n    return q, k\n"
    )
    assert not findings
    assert "    q *= 2\n" in port


def test_keys_of_a_dictionary_are_no_rows() -> None:
    _, findings = port_of("""
import torch


def renamed(state, shift: torch.Tensor):
    names = [name for name in state if name.endswith("bias")]
    for name in names:
        state[name.replace("bias", "shift")] = state.pop(name) + shift
    return state
""")
    assert not findings
