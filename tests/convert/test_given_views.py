"""A function of the file changes its argument in place, of which a call gives it a view."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

_HEAD = """
import torch
from torch import nn


def changed(t, u):
    t.add_(1)
    return t * u


def added(t, u):
    t += 1
    return t * u


def copied(t, u):
    t.copy_(u * 2)
    return t * u


def alone(t, u):
    t.add_(1)
    return t


def row(t, u):
    t[0] = 5
    return t * u


def scaled(t):
    t.mul_(2)
    return t

"""

REACHED = """
changed(x, x)
changed(x, x * 2)
changed(x, y)
alone(x, x * 1)
row(x, x[:])
scaled(x[0])
scaled(x[1:])
scaled((x * 2).view(-1))
changed(x[0], x)
changed(x[:1], x[1:])
""".strip().splitlines()

LOST = """
changed(x, x.view(2, 2))
changed(x, u=x[0])
changed(x.view(2, 2), x)
added(x, x.view(2, 2))
copied(x, x.view(2, 2))
scaled(x.view(-1))
scaled(x.t())
scaled(x.detach())
scaled(x.data)
scaled(layer.weight.t())
""".strip().splitlines()


def _case(number: int, call: str) -> str:
    return f"""
def case_{number}():
    x, y, layer = torch.ones(2, 2), torch.ones(2, 2) * 3, nn.Linear(2, 2)
    with torch.no_grad():
        nn.init.ones_(layer.weight)
        z = {call}
        return [one.tolist() for one in (x, y, z, layer.weight)]

"""


def test_what_the_port_reaches_is_not_told(tmp_path: Path) -> None:
    start = _HEAD
    for number, call in enumerate(REACHED):
        name = call.partition("(")[0]  # each of its own function: the calls of one count together
        start += (
            _HEAD[_HEAD.index(f"def {name}(") :]
            .partition("\n\n\n")[0]
            .replace(f"def {name}(", f"def {name}_{number}(")
        )
        start += "\n\n" + _case(number, call.replace(name, f"{name}_{number}", 1))
    names = ", ".join(f"case_{number}" for number in range(len(REACHED)))
    code = f"{start}\ndef values():\n    return [case() for case in ({names})]\n"
    port, report = converted(tmp_path, {"given.py": code})
    assert not report.findings
    expected, found = run_both(
        tmp_path, port, "import json, given\nprint(json.dumps(given.values()))"
    )
    assert dict(zip(REACHED, found, strict=True)) == dict(zip(REACHED, expected, strict=True))


@pytest.mark.parametrize("call", LOST)
def test_what_the_port_does_not_reach_is_told(call: str) -> None:
    _, findings = port_of(_HEAD + _case(0, call))
    assert "in-place-view" in [one.code for one in findings]


def test_data_that_a_statement_gives_is_the_tensor_itself() -> None:
    port, findings = port_of(f"""{_HEAD}
layer = nn.Linear(2, 2)
scaled(layer.weight.data)
""")
    assert not findings
    assert "\nscaled(layer.weight)\n" in port
