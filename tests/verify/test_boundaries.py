"""A port may draw a module's borders elsewhere; a fault at the border is still found."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from isograd.frameworks.base import CallInfo
from isograd.model import Stage
from isograd.verify.boundaries import Boundaries
from isograd.verify.places import lacking
from isograd.verify.unit_result import TensorResult, UnitResult
from isograd.verify.units import Unit

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
    assert any("divides first into modules otherwise" in note for note in report["notes"])


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


GIVEN_MORE = """class Gate(Module):
    def __init__(self):
        self.linear = Linear(4, 5)

    def forward(self, x, more):
        return self.linear(x){uses}

class Net(Module):
    def __init__(self):
        self.side = Linear(4, 5)
        self.gate = Gate()
        self.second = Linear(5, 3)

    def forward(self, x):
        more = self.side(x)
        return self.second(self.gate({given}) + more)

def build"""


@pytest.mark.parametrize("uses", ["", " * tanh(more)"])
def test_an_input_that_a_call_does_without(uses: str, make_case: CaseMaker, verify: Verify) -> None:
    """It is missed where the call needs it."""
    change = (("import mean_sq", "import relu, tanh, mean_sq"), (SEQUENCE, "Net()"))
    reference = GIVEN_MORE.format(uses=uses, given="x, more")
    port = GIVEN_MORE.format(uses="", given="x").replace("(self, x, more)", "(self, x)")
    make_case.spoil_reference = (*change, ("def build", reference))
    make_case.spoil = (*change, ("def build", port))
    path = make_case.folder / "report.json"
    answer = verify(make_case.write(), "--json", str(path))
    report = json.loads(path.read_text())
    if not uses:
        assert (answer.status, report["verdict"]) == (0, "equivalent")
        return
    assert (answer.status, report["verdict"]) == (1, "divergent")
    first = report["first_divergence"]
    assert (first["stage"], first["module"]) == ("forward", "gate")


def test_of_equal_outputs_the_paired_one_keeps_its_gradient() -> None:
    """The last hidden state is returned alone and among all; the port returns them all once."""
    first, last = (2, 8, 4), (2, 16)
    assert lacking((last, first, last), (first, last)) == (0,)
    assert lacking((first, last), (first, last)) == ()
    assert lacking((first, last), (last,)) == (0,)


def misshapen(call: int, pins: tuple[tuple[int, int], ...]) -> UnitResult:
    unit = Unit(call, call, pins)
    wrong = TensorResult(Stage.FORWARD, unit, call, "output 0", None, "another shape")
    return UnitResult(unit, (wrong,))


def test_a_layer_is_not_excused_by_a_call_that_hides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Network, block and layer, the last two of wrong shapes: the network pins the block."""
    shapes = ((4,),)
    calls = [
        CallInfo(name, 0, parent, shapes, shapes)
        for name, parent in (("", None), ("block", 0), ("block.layer", 1))
    ]
    unused: Any = None
    session: Any = SimpleNamespace(moved_borders=set())
    boundaries = Boundaries(session, unused, calls, calls, 5.0)
    monkeypatch.setattr(boundaries, "_is_evident", lambda partner, call: False)

    def agrees(partner: dict[int, int], call: int, before: set[Any], *, forward_only: bool) -> bool:
        return call == 0 and 1 in partner

    monkeypatch.setattr(boundaries, "_agrees", agrees)
    failed = [misshapen(1, ((2, 2),)), misshapen(2, ())]
    partner, changed = boundaries.free({0: 0, 1: 1, 2: 2}, failed)
    assert partner == {0: 0, 1: 1, 2: 2}
    assert changed == set()
