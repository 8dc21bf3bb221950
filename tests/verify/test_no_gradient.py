"""Where one network has no gradient, verify says which; where neither has, it compares none."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.verify.test_noise import CASE

from isograd.cli import main
from isograd.model import Stage
from isograd.noise.envelope import Measured
from isograd.tensors import tensor_value
from isograd.verify.end_to_end import PassResult, judge
from isograd.verify.findings import whole_findings

SOME, NONE = np.ones(3), np.zeros(3)


@pytest.fixture
def session() -> Any:
    """A session whose networks name everything alike."""
    return SimpleNamespace(
        as_reference=lambda gradients, summed: gradients,
        counts=lambda key: True,
        infos=lambda: ({}, {}),
    )


def judged(session: Any, reference: dict[str, Any], port: dict[str, Any]) -> PassResult:
    ours = {f"gradient.parameter.{n}": Measured(v, "float32", 1e-6) for n, v in reference.items()}
    theirs = {f"gradient.parameter.{n}": tensor_value(v) for n, v in port.items()}
    return judge(session, ours, theirs)


@pytest.mark.parametrize(
    ("reference", "port", "said"),
    [
        pytest.param(
            {"a.weight": NONE, "b.weight": SOME},
            {"a.weight": SOME, "b.weight": SOME},
            "only the port has a gradient for a.weight, the reference none",
            id="the port's alone",
        ),
        pytest.param(
            {"a.weight": SOME, "b.weight": SOME},
            {"a.weight": NONE, "b.weight": SOME},
            "only the reference has a gradient for a.weight, the port none",
            id="the reference's alone",
        ),
        pytest.param(
            {"a.weight": SOME, "b.weight": SOME},
            {"a.weight": 2 * SOME, "b.weight": SOME},
            "",
            id="both have one",
        ),
    ],
)
def test_a_gradient_of_one_network_alone_is_said(
    reference: dict[str, Any],
    port: dict[str, Any],
    said: str,
    session: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("isograd.verify.findings.module_of", lambda _, name: name[0])
    whole = judged(session, reference, port)
    (finding,) = whole_findings(session, Stage.BACKWARD, "train", whole, ("gradient",))
    start = "the gradient of a.weight differs end to end although every module agrees alone"
    assert finding.message == (f"{start}; {said}" if said else start)


@pytest.mark.parametrize(
    ("first", "second", "backward"),
    [
        pytest.param("torch.ones(4)", "ops.ones(4)", "skipped", id="neither"),
        pytest.param("torch.ones(4) * x", "ops.ones(4) * x", "equivalent", id="the input has one"),
    ],
)
def test_networks_without_gradients_skip_the_stage(
    first: str, second: str, backward: str, tmp_path: Path
) -> None:
    """Found by random network 365: a matrix to the power of zero depends on nothing."""
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    loss = "\n\ndef loss(output):\n    return (output * output).mean()\n"
    for module, base, method, text in (
        ("torch", "torch.nn.Module", "forward", first),
        ("mindspore", "mindspore.nn.Cell", "construct", second),
    ):
        head = (
            "import torch\n"
            if module == "torch"
            else "import mindspore\nfrom mindspore import ops\n"
        )
        body = f"class Net({base}):\n    def {method}(self, x):\n        return {text}\n"
        (tmp_path / f"net_{module}.py").write_text(f"{head}\n\n{body}{loss}")
    (tmp_path / "case.toml").write_text(CASE.replace("[2, 3, 64, 64]", "[4, 4]"))
    out = tmp_path / "report.json"
    status = main(["verify", str(tmp_path / "case.toml"), "--quiet", "--json", str(out)])
    report = json.loads(out.read_text())
    (verdict,) = (s["verdict"] for s in report["stages"] if s["stage"] == "backward")
    assert (status, report["verdict"], verdict) == (0, "equivalent", backward)


CONSTANTS = """
import {module}

class Net({base}):
    def __init__(self):
        super().__init__()
        self.norm = {norm}

    def {method}(self, x):
        return self.norm(x)

def loss(output):
    return (output * output).mean()
"""


def test_constants_of_a_layer_without_weights_are_no_parameters(tmp_path: Path) -> None:
    """MindSpore's GroupNorm(affine=False) holds a gamma and a beta, torch's nothing."""
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    for module, base, method, norm in (
        ("torch", "torch.nn.Module", "forward", "torch.nn.GroupNorm(2, 4, affine=False)"),
        (
            "mindspore",
            "mindspore.nn.Cell",
            "construct",
            "mindspore.nn.GroupNorm(2, 4, affine=False)",
        ),
    ):
        text = CONSTANTS.format(module=module, base=base, method=method, norm=norm)
        (tmp_path / f"net_{module}.py").write_text(text)
    (tmp_path / "case.toml").write_text(CASE.replace("[2, 3, 64, 64]", "[2, 4, 3, 3]"))
    out = tmp_path / "report.json"
    status = main(["verify", str(tmp_path / "case.toml"), "--quiet", "--json", str(out)])
    report = json.loads(out.read_text())
    (verdict,) = (s["verdict"] for s in report["stages"] if s["stage"] == "parameters")
    assert (status, report["verdict"], verdict) == (0, "equivalent", "skipped")
