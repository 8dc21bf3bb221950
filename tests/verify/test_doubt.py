"""What names, shapes and order leave open is settled by trying it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Answer, CaseMaker

Verify = Callable[..., "Answer"]

NET = """class Square(Module):
    def __init__(self):
        self.matrix = Linear(4, 4).weight

    def forward(self, x):
        return matmul(x, self.matrix)

class Net(Module):
    def __init__(self):
        self.{first} = Square()
        self.{second} = Square()
        self.last = Linear(4, 3)

    def forward(self, x):
        return self.last(self.{second}(tanh(self.{first}(x))))

def build"""
#: Initial values that agree would tell how a matrix is stored.
OTHER_DRAWS = ("self.matrix =", "Linear(1, 1)\n        self.matrix =")
SEQUENCE = "Sequential(Linear(4, 5), ReLU(), Linear(5, 3))"


@pytest.fixture
def found(make_case: CaseMaker, verify: Verify) -> Callable[..., tuple[int, Any]]:
    """Verify a network of square matrices against one with other names and changes."""

    def run(names: tuple[str, str], *changes: tuple[str, str]) -> tuple[int, Any]:
        library = ("import mean_sq", "import matmul, tanh, transpose, mean_sq")
        port = NET.format(first=names[0], second=names[1]).replace(*OTHER_DRAWS)
        for before, after in changes:
            assert before in port
            port = port.replace(before, after, 1)
        net = NET.format(first="inner", second="outer")
        make_case.spoil_reference = (library, (SEQUENCE, "Net()"), ("def build", net))
        make_case.spoil = (
            library,
            (SEQUENCE, "Net()"),
            ("def build", port),
        )
        path = make_case.folder / "report.json"
        answer = verify(make_case.write(), "--json", str(path))
        return answer.status, json.loads(path.read_text())

    return run


def notes_of(report: Any) -> str:
    return " ".join(report["notes"])


TURNED = ("matmul(x, self.matrix)", "matmul(x, transpose(self.matrix))")


def test_a_square_matrix_that_is_stored_transposed(found: Callable[..., tuple[int, Any]]) -> None:
    status, report = found(("inner", "outer"), TURNED)
    assert (status, report["verdict"]) == (0, "equivalent")
    assert "inner.matrix transposed" in notes_of(report)


def test_a_fault_is_not_explained_away(found: Callable[..., tuple[int, Any]]) -> None:
    status, report = found(("inner", "outer"), ("self.matrix)", "self.matrix) * 1.01"))
    assert (status, report["verdict"]) == (1, "divergent")
    assert report["first_divergence"]["stage"] == "forward"
    assert "settled by experiment" not in notes_of(report)


def test_layers_under_other_names(found: Callable[..., tuple[int, Any]]) -> None:
    status, report = found(("one", "two"), TURNED)
    assert (status, report["verdict"]) == (0, "equivalent")
    assert "one.matrix transposed" in notes_of(report)
