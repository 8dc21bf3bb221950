"""A port may draw a module's borders elsewhere; a fault at the border is still found."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Answer, CaseMaker

Verify = Callable[..., "Answer"]

NETS = {
    "reference": """class Net(Module):
    def __init__(self):
        self.first = Linear(4, 5)
        self.second = Linear(5, 3)

    def forward(self, x):
        return self.second(relu(self.first(x)))

def build""",
    "port": """class Active(Linear):
    def forward(self, x):
        return relu(super().forward(x))

class Net(Module):
    def __init__(self):
        self.first = Active(4, 5)
        self.second = Linear(5, 3)

    def forward(self, x):
        return self.second(self.first(x))

def build""",
}
SEQUENCE = "Sequential(Linear(4, 5), ReLU(), Linear(5, 3))"


@pytest.fixture
def found(make_case: CaseMaker, verify: Verify) -> Callable[..., tuple[int, Any]]:
    """Verify the two networks, the port with one more change."""

    def run(before: str = "", after: str = "") -> tuple[int, Any]:
        change = (("import mean_sq", "import relu, tanh, mean_sq"), (SEQUENCE, "Net()"))
        port = NETS["port"]
        assert before in port
        make_case.spoil_reference = (*change, ("def build", NETS["reference"]))
        make_case.spoil = (*change, ("def build", port.replace(before, after, 1)))
        path = make_case.folder / "report.json"
        answer = verify(make_case.write(), "--json", str(path))
        return answer.status, json.loads(path.read_text())

    return run


def test_an_activation_inside_the_layer(found: Callable[..., tuple[int, Any]]) -> None:
    status, report = found("Net", "Net")
    assert (status, report["verdict"]) == (0, "equivalent")
    assert any("draws the borders of first elsewhere" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("relu(super()", "tanh(super()"),
        ("super().forward(x))", "super().forward(x)) * 1.001"),
        ("super().forward(x)", "super().forward(x) + 0.001"),
    ],
    ids=["kind", "scale", "offset"],
)
def test_a_fault_at_the_border(
    before: str, after: str, found: Callable[..., tuple[int, Any]]
) -> None:
    status, report = found(before, after)
    assert (status, report["verdict"]) == (1, "divergent")
    first = report["first_divergence"]
    assert first["stage"] == "forward"
    assert first["module"] in ("", "first")
