"""Errors of operators in a `try` are raised there, and caught as torch's are."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, port_of, run_both

_NET = """
import torch
from torch import nn


def product(x):
    try:
        y = x @ x
    except RuntimeError:
        y = x @ x.t()
    return y


def on_one_line(x):
    try: y = x @ x
    except RuntimeError: y = x @ x.t()
    return y


def viewed(x):
    try:
        x = x.view(2, 2)  # as many as there are
    except RuntimeError as error:
        x = x.reshape(3, 2)
    return x


def returned(x, y):
    try:
        return torch.cat([x, y]), 1
    except (KeyError, RuntimeError):
        return x, 2


def counted(net, rows):
    done, failed = 0, []
    for number, x in enumerate(rows):
        try:
            if x.dim() == 3:
                continue
            y = net(x)
            done += 1
        except Exception:
            failed.append(number)
    return [done, *failed]


def made():
    return nn.Linear(3, 2)


class Store:
    def __init__(self):
        self.value = torch.ones(2)

    def add(self, x):
        try:
            self.value = self.value + x
        except RuntimeError:
            pass


def kept():
    store = Store()
    store.add(torch.ones(3))
    store.add(torch.ones(2))
    return store.value


def of_python(x):
    try:
        try:
            y = x * 2
            raise ValueError("mine")
        except RuntimeError:
            return "wrong"
    except ValueError as error:
        return str(error)
"""
_RUN = """
import json
from net import *
x, z = TENSOR([[1., 2, 3], [4, 5, 6]]), TENSOR([[1., 2], [3, 4]])
net = made()
print(json.dumps([
    product(x).tolist(), on_one_line(x).tolist(), viewed(x).tolist(), returned(x, z)[1],
    counted(net, [x, z, x[None], z, x]), kept().tolist(), of_python(x),
]))
"""


def test_failing_operators_are_caught_where_they_are_called(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"net.py": _NET})
    assert not report.findings
    expected, found = run_both(tmp_path, port, _RUN)
    assert found == expected


def test_a_try_around_something_else_stays_as_it_is() -> None:
    text, _ = port_of("""
        import json
        import torch
        from os import listdir

        def read(path):
            with open(path) as file:
                return json.load(file)

        def f(path, x: torch.Tensor):
            try:
                settings = read(path)
                names = listdir(path)
            except Exception:
                settings = {}
            try:
                y = x + 1
            except OSError:
                y = x
            return settings, y
        """)
    assert "computed" not in text
    assert "errors_of" not in text


_RECORDED = """
import torch


def part(x, n):
    try:
        return x.view(n)
    except Exception:
        return x * 2


def slopes():
    x = torch.ones(3, requires_grad=True)
    b = x * 3
    for n in (3, 1, 7):
        try:
            y = b.view(n) * 2
        except RuntimeError: continue
    loss = (y * x + part(b, 5)).sum()
    loss.backward()
    with torch.no_grad():
        still = part(x, 5)
    return x.grad.tolist(), still.requires_grad, (x * 2).requires_grad
"""


def test_gradients_are_recorded_behind_what_failed(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _RECORDED})
    code = "import json, net\nprint(json.dumps([net.slopes(), net.slopes()]))\n"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected
