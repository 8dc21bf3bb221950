"""What the static graph takes otherwise, at its line: in ports, and in torch code before them."""

from __future__ import annotations

import pytest
from tests.scan.support import Scanner

from isograd.scan.model import Hazard

PORT = """
import functools
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.act = functools.partial(ops.gelu, approximate="tanh")

    def construct(self, x):
        ys = [x]
        ys.extend([self.helper(x)])
        return self.act(ys[0] + ys[1])

    def helper(self, x):
        return sum([self.fc(x) * i for j in range(2) for i in range(j)])

    def not_called(self, ys):
        ys = list(ys)
        ys.reverse()
        return ys
"""


def _static(scanner: Scanner, code: str) -> list[Hazard]:
    scanner.write(main=code)
    hazards = scanner.scan().files[0].hazards
    return [hazard for hazard in hazards if hazard.code.startswith("compiled.")]


def test_a_port_is_read_from_its_construct_on(scanner: Scanner) -> None:
    found = {(h.code, h.line, h.is_silent) for h in _static(scanner, PORT)}
    assert found == {
        ("compiled.list.extend", 13, True),
        ("compiled.partial", 14, True),
        ("compiled.comprehension.two_loops", 17, False),
    }


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        pytest.param("import mindspore", set(), id="a port has MindSpore's tensors"),
        pytest.param(
            "import mindspore, torch",
            {"Tensor.view", "Tensor.shape"},
            id="both frameworks: whose they are is not known",
        ),
    ],
)
def test_tensors_of_a_port_are_not_taken_for_torchs(
    scanner: Scanner, imports: str, expected: set[str]
) -> None:
    scanner.write(main=f"{imports}\n\ndef f(x):\n    return x.view(x.shape[0], -1)\n")
    assert scanner.apis(unsure=True) & {"Tensor.view", "Tensor.shape"} == expected


def test_torch_code_says_what_comes_after_conversion(scanner: Scanner) -> None:
    code = PORT.replace("from mindspore import nn, ops", "import torch\nfrom torch import nn")
    code = code.replace("nn.Cell", "nn.Module").replace("construct", "forward")
    code = code.replace("nn.Dense", "nn.Linear").replace("ops.gelu", "nn.functional.gelu")
    found = _static(scanner, code)
    assert {h.code for h in found} >= {"compiled.list.extend", "compiled.comprehension.two_loops"}
    assert all(h.message.startswith("After conversion: ") for h in found)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x = x.expand(2, 3)", id="an API that conversion writes otherwise"),
        pytest.param("x = self.fc(x)", id="plain code"),
    ],
)
def test_torch_code_is_not_blamed_for_what_conversion_mends(scanner: Scanner, line: str) -> None:
    code = f"""
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
    def forward(self, x):
        {line}
        return x
"""
    assert _static(scanner, code) == []


def test_a_file_of_neither_framework_is_left_alone(scanner: Scanner) -> None:
    code = PORT.replace("from mindspore import nn, ops", "from elsewhere import nn, ops")
    assert _static(scanner, code) == []


HELPERS = """
from mindspore import nn, ops
from helpers import deeper

def doubled(xs):
    ys = list(xs)
    ys.extend([xs[0] * 2])
    return sum(ys)

def plain(xs):
    return sum(xs)

def through(xs):
    return deeper.turned(xs)

def made(number):
    def inner(xs):
        return sum([x * n for x in xs for n in range(number)])
    return inner

thrice = made(3)
"""
DEEPER = """
from mindspore import nn

def turned(xs):
    ys = list(xs)
    ys.reverse()
    return ys[0]
"""
ACROSS = """
from mindspore import nn, ops
import helpers as own
from helpers import {name}

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.kept = own.{name}
    def construct(self, x):
        return {call}([self.fc(x)])
"""


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        pytest.param("doubled", {"compiled.list.extend"}, id="a function of another file"),
        pytest.param("through", {"compiled.list.reverse"}, id="one that calls a third file's"),
        pytest.param("thrice", {"compiled.comprehension.two_loops"}, id="one that another makes"),
        pytest.param("plain", set(), id="one that compiles"),
    ],
)
@pytest.mark.parametrize("call", ["{name}", "own.{name}", "self.kept"])
def test_a_function_of_another_file_is_reported_where_it_is_called(
    scanner: Scanner, name: str, codes: set[str], call: str
) -> None:
    code = ACROSS.replace("{call}", call).replace("{name}", name)
    scanner.write(main=code, helpers_init=HELPERS, helpers__deeper=DEEPER)
    scan = next(file for file in scanner.scan().files if file.file == "main.py")
    found = [hazard for hazard in scan.hazards if hazard.code.startswith("compiled.")]
    assert {hazard.code for hazard in found} == codes
    assert {hazard.line for hazard in found} <= {12}
    assert all(name in hazard.message for hazard in found)
