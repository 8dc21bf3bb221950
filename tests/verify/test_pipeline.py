"""The whole way of a verification, from the case file to the exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Answer, CaseMaker

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "fake"
Verify = Callable[..., "Answer"]


@pytest.fixture
def report(verify: Verify, tmp_path: Path) -> Callable[[Path], tuple[int, Any]]:
    def run(case: Path) -> tuple[int, Any]:
        path = tmp_path / "report.json"
        answer = verify(case, "--json", str(path))
        assert answer.error == ""
        return answer.status, json.loads(path.read_text())

    return run


def test_a_faithful_port_is_equivalent(report: Callable[[Path], tuple[int, Any]]) -> None:
    status, found = report(EXAMPLES / "faithful.toml")
    assert (status, found["verdict"], found["first_divergence"]) == (0, "equivalent", None)
    assert [s["stage"] for s in found["stages"]] == (
        "parameters forward loss backward update training inference compiled".split()
    )
    *stages, compiled = found["stages"]
    assert all(s["verdict"] == "equivalent" and s["checked"] > 0 for s in stages)
    assert compiled["verdict"] == "skipped"  # only MindSpore has a static graph


def test_a_fault_is_found_where_it_is(report: Callable[[Path], tuple[int, Any]]) -> None:
    status, found = report(EXAMPLES / "divergent.toml")
    assert (status, found["verdict"]) == (1, "divergent")
    first = found["first_divergence"]
    assert (first["stage"], first["module"], first["step"]) == ("forward", "2.body.1", 0)
    assert first["ratio"] > 100


@pytest.mark.parametrize(
    ("before", "after", "stage"),
    [
        ("mean_squared_error(output, target)", "mean_squared_error(output, target) * 0.5", "loss"),
        ("lr=0.1", "lr=0.11", "update"),
        ("lr=0.1)", "lr=0.1, momentum=0.01)", "update"),
        ("model.parameters()", "model.parameters()[1:]", "update"),
        ("ReLU()", "Tanh()", "forward"),
        ("Linear(5, 3)", "Linear(5, 3, bias=False)", "parameters"),
    ],
)
def test_each_stage_finds_its_own_faults(
    before: str,
    after: str,
    stage: str,
    make_case: CaseMaker,
    report: Callable[[Path], tuple[int, Any]],
) -> None:
    make_case.spoil = (("import SGD", "import Tanh, SGD"), (before, after))
    status, found = report(make_case.write())
    assert (status, found["verdict"]) == (1, "divergent")
    assert found["first_divergence"]["stage"] == stage


@pytest.mark.parametrize(
    ("keys", "skipped"),
    [
        ((), ["loss", "backward", "update", "training"]),
        (("loss",), ["update", "training"]),
        (("loss", "optimizer"), []),
    ],
)
def test_what_the_case_does_not_name_is_skipped(
    keys: tuple[str, ...],
    skipped: list[str],
    make_case: CaseMaker,
    report: Callable[[Path], tuple[int, Any]],
) -> None:
    make_case.keys = (keys, keys)
    make_case.targets = make_case.targets if keys else ""
    status, found = report(make_case.write())
    assert (status, found["verdict"]) == (0, "equivalent")
    stages = [s["stage"] for s in found["stages"] if s["verdict"] == "skipped"]
    assert stages == [*skipped, "compiled"]  # the fake has no static graph


_FORCED = {
    "a.py": """
import torch
from torch import nn

def unit(w):
    return w / w.flatten(1).norm(dim=1).reshape(-1, 1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 5))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.weight.copy_(unit(self.weight))
        return torch.relu(x @ self.weight.t())

def loss(y):
    return (y * y).mean()

def optimizer(net):
    return torch.optim.SGD(net.parameters(), 0.1)
""",
    "b.py": """
import mindspore as ms
import numpy as np
from mindspore import nn, ops

def unit(w):
    return w / ops.norm(w, dim=1).reshape(-1, 1)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(np.zeros((4, 5), np.float32))

    def construct(self, x):
        if self.training:
            ops.assign(self.weight, ops.stop_gradient(unit(self.weight) * FACTOR))
        return ops.relu(x @ self.weight.T)

def loss(y):
    return (y * y).mean()

def optimizer(net):
    return nn.SGD(net.trainable_params(), 0.1)
""",
}
_FORCED_CASE = """
[reference]
framework = "torch"
model = "a.py:Net"
loss = "a.py:loss"
optimizer = "a.py:optimizer"
[port]
framework = "mindspore"
model = "b.py:Net"
loss = "b.py:loss"
optimizer = "b.py:optimizer"
[[inputs]]
shape = [2, 5]
[verify]
steps = 2
"""


@pytest.mark.parametrize(("factor", "verdict"), [("1", "equivalent"), ("1.001", "divergent")])
def test_a_network_whose_forward_writes_its_weights(
    factor: str, verdict: str, tmp_path: Path, report: Callable[[Path], tuple[int, Any]]
) -> None:
    for name, text in _FORCED.items():
        (tmp_path / name).write_text(text.replace("FACTOR", factor))
    (tmp_path / "case.toml").write_text(_FORCED_CASE)
    _, found = report(tmp_path / "case.toml")
    assert found["verdict"] == verdict


def test_a_network_without_parameters_is_judged_by_what_it_computes(
    tmp_path: Path, report: Callable[[Path], tuple[int, Any]]
) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.relu(x) * 2\n\ndef loss(y):\n    return (y * y).mean()\n\n"
        "def optimizer(net):\n    raise ValueError('there is nothing to train')\n"
    )
    (tmp_path / "b.py").write_text(
        "from mindspore import nn, ops\n\nclass Net(nn.Cell):\n    def construct(self, x):\n"
        "        return ops.relu(x) * FACTOR\n\ndef loss(y):\n    return (y * y).mean()\n\n"
        "def optimizer(net):\n    raise ValueError('there is nothing to train')\n"
    )
    case = tmp_path / "case.toml"
    case.write_text(
        "".join(
            f'[{side}]\nframework = "{framework}"\nmodel = "{file}:Net"\nloss = "{file}:loss"\n'
            f'optimizer = "{file}:optimizer"\n'
            for side, framework, file in (
                ("reference", "torch", "a.py"),
                ("port", "mindspore", "b.py"),
            )
        )
        + "[[inputs]]\nshape = [2, 5]\n[verify]\nsteps = 2\n"
    )
    text = (tmp_path / "b.py").read_text()
    for factor, verdict in (("2", "equivalent"), ("3", "divergent")):
        (tmp_path / "b.py").write_text(text.replace("FACTOR", factor))
        _, found = report(case)
        assert found["verdict"] == verdict
        skipped = [s["stage"] for s in found["stages"] if s["verdict"] == "skipped"]
        assert skipped == ["parameters", "update", "training"]
