"""A difference counts by what it reaches: outputs, loss, gradients of parameters, and state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from conftest import Answer, CaseMaker

Verify = Callable[..., "Answer"]
Report = Callable[..., dict[str, Any]]

TORCH = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.soft, self.last = nn.Linear(4, 4), nn.Softmax(-1), nn.Linear(4, 3)
    def forward({arguments}):
        {body}

def build():
    return Net()
"""
MINDSPORE = TORCH.replace("Module", "Cell").replace("Linear", "Dense")
MINDSPORE = MINDSPORE.replace("def forward", "def construct")


@pytest.fixture
def report(make_case: CaseMaker, verify: Verify, tmp_path: Path) -> Report:
    """What verify says of two bodies of the same network."""

    def run(reference: str, port: str, arguments: str = "self, x", options: str = "") -> Any:
        make_case.frameworks = ("torch", "mindspore")
        texts = []
        for source, name, body in ((TORCH, "Sequential", reference), (MINDSPORE, "Cell", port)):
            built = "nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))"
            if name == "Cell":
                built = "nn.SequentialCell(nn.Dense(4, 5), nn.ReLU(), nn.Dense(5, 3))"
            text = source.replace("{arguments}", arguments).replace("{body}", body)
            texts.append(((f"def build():\n    return {built}\n", text),))
        make_case.spoil_reference, make_case.spoil = texts
        make_case.extra = f'[verify]\nsteps = 1\nmode = "train"\ncompiled = "off"\n{options}'
        path = tmp_path / "report.json"
        answer = verify(make_case.write(), "--json", str(path))
        assert answer.error == ""
        return json.loads(path.read_text())

    return run


@pytest.mark.parametrize(
    ("options", "verdict", "severities"),
    [
        pytest.param("", "equivalent", {"equivalent"}, id="nobody trains on the mask"),
        pytest.param(
            "input_gradients = true\n", "divergent", {"effective", "masked"}, id="it counts"
        ),
    ],
)
def test_a_weaker_mask_reaches_its_own_gradient_alone(
    report: Report, make_case: CaseMaker, options: str, verdict: str, severities: set[str]
) -> None:
    body = "return self.last((self.first(x) + hidden * {}).softmax(-1) * x)"
    hidden = np.zeros((6, 4), np.float32)
    hidden[:, 1] = 1.0
    np.save(make_case.folder / "hidden.npy", hidden)
    make_case.inputs += '[[inputs]]\nfile = "hidden.npy"\n'
    found = report(body.format("-1e9"), body.format("-1e4"), "self, x, hidden", options)
    assert found["verdict"] == verdict
    assert found["findings"]
    assert {f["severity"] for f in found["findings"]} <= severities
    assert all("input 1" in f["message"] for f in found["findings"])


def test_what_a_normalisation_undoes_reaches_nothing(report: Report) -> None:
    """A shift that the softmax takes out again, and one that stays."""
    body = "return self.last(self.soft(self.first(x) + {}))"
    found = report(body.format("0.0"), body.format("1.5"))
    assert found["verdict"] == "equivalent"
    assert [f["severity"] for f in found["findings"]] == ["equivalent"]
    found = report("return self.last(self.first(x))", "return self.last(self.first(x) + 1.5)")
    assert found["verdict"] == "divergent"
    assert found["findings"][0]["severity"] == "effective"


def test_no_parameter_reaches_the_loss(report: Report) -> None:
    body = "return (self.last(self.first(x)) > 0).{} * 1.0"
    found = report(body.format("float()"), body.format("astype(ms.float32)"))
    stages = {s["stage"]: s["verdict"] for s in found["stages"]}
    assert (found["verdict"], stages["update"]) == ("equivalent", "equivalent")


def test_a_network_that_yields_its_outputs(report: Report, make_case: CaseMaker) -> None:
    make_case.keys, make_case.targets = ((), ()), ""
    body = "yield self.last(self.first(x))\n        yield {}(self.last(x))"
    found = report(body.format("torch.relu"), body.format("ops.relu"))
    assert found["verdict"] == "equivalent"
    found = report(body.format("torch.relu"), body.format("ops.tanh"))
    assert found["verdict"] == "divergent"


@pytest.mark.parametrize(
    ("loss", "verdict", "severity"),
    [
        pytest.param(
            "ops.mse_loss(output[0], target)", "equivalent", "equivalent", id="loss without it"
        ),
        pytest.param(
            "ops.mse_loss(output[0] + output[1], target)",
            "divergent",
            "effective",
            id="loss takes it",
        ),
        pytest.param("", "divergent", "effective", id="no loss to judge it by"),
    ],
)
def test_an_output_that_only_the_port_returns(
    make_case: CaseMaker, verify: Verify, tmp_path: Path, loss: str, verdict: str, severity: str
) -> None:
    make_case.frameworks = ("torch", "mindspore")
    network = "nn.SequentialCell(nn.Dense(4, 5), nn.ReLU(), nn.Dense(5, 3))"
    both = "class Both(nn.SequentialCell):\n    def construct(self, x):\n"
    both += "        y = super().construct(x)\n        return y, y * 2\n\ndef build():"
    make_case.spoil = (
        ("def build():", both),
        (network, network.replace("nn.SequentialCell", "Both")),
        ("ops.mse_loss(output, target)", loss or "0"),
    )
    if not loss:
        make_case.keys, make_case.targets = ((), ()), ""
    path = tmp_path / "report.json"
    assert verify(make_case.write(), "--json", str(path)).error == ""
    report = json.loads(path.read_text())
    found = [f for f in report["findings"] if f["code"] == "forward.outputs"]
    assert (report["verdict"], [f["severity"] for f in found]) == (verdict, [severity])
    assert "the output 1 of shape (6, 3)" in found[0]["message"]
