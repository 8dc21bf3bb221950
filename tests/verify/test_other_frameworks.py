"""What passes the conformance class is verified and diagnosed, as reference and as port.

The numpy fake is such a framework: nothing of isograd outside its adapter knows its functions.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from isograd.model import Cause, Finding, Verdict, VerifyReport
from isograd.progress import SilentProgress
from isograd.verify.diagnose_case import diagnose_case
from isograd.verify.ladder import verify_case

NETWORKS = {
    "fake": """
from isograd.frameworks.fake.network import SGD, BatchNorm, Linear, ReLU, Sequential
from isograd.frameworks.fake.network import mean_squared_error as loss

def build():
    return Sequential(Linear(4, 5), BatchNorm(5, eps=EPS), ReLU(), Linear(5, 3))

def optimizer(model):
    return SGD(model.parameters(), lr=0.1)
""",
    "torch": """
import torch
from torch import nn

loss = nn.functional.mse_loss

def build():
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, eps=EPS), nn.ReLU(), nn.Linear(5, 3))

def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)
""",
    "mindspore": """
from mindspore import nn, ops

def loss(output, target):
    return ops.mse_loss(output, target)

def build():
    norm = nn.BatchNorm1d(5, eps=EPS, momentum=0.9)
    return nn.SequentialCell(nn.Dense(4, 5), norm, nn.ReLU(), nn.Dense(5, 3))

def optimizer(model):
    return nn.SGD(model.trainable_params(), 0.1)
""",
}
PAIRS = [("fake", "fake"), ("torch", "fake"), ("fake", "mindspore")]
in_pairs = pytest.mark.parametrize(
    "frameworks", PAIRS, ids=[f"{reference} to {port}" for reference, port in PAIRS]
)


@pytest.fixture(autouse=True)
def frameworks_are_installed(frameworks: tuple[str, str]) -> None:
    for name in set(frameworks) - {"fake"}:
        pytest.importorskip(name)


def _case(folder: Path, frameworks: tuple[str, str], eps: str) -> Path:
    text = ""
    for side, framework, number in zip(
        ("reference", "port"), frameworks, ("1e-05", eps), strict=True
    ):
        (folder / f"{side}.py").write_text(NETWORKS[framework].replace("EPS", number))
        text += f'[{side}]\nframework = "{framework}"\n'
        text += f'model = "{side}.py:build"\nloss = "{side}.py:loss"\n'
        text += f'optimizer = "{side}.py:optimizer"\n'
    text += '[[inputs]]\nshape = [6, 4]\n[[targets]]\nshape = [6, 3]\ndtype = "float32"\n'
    path = folder / "case.toml"
    path.write_text(f'{text}[verify]\nsteps = 2\ncompiled = "off"\n')
    return path


def _verified(case: Path) -> VerifyReport:
    return verify_case(case, seed=0, keep=None, progress=SilentProgress())


def _cause(finding: Finding) -> Cause:
    assert finding.cause is not None, finding.message
    return finding.cause


@in_pairs
def test_a_faithful_port_is_equivalent(frameworks: tuple[str, str], tmp_path: Path) -> None:
    report = _verified(_case(tmp_path, frameworks, "1e-05"))
    assert report.verdict is Verdict.EQUIVALENT, [f.message for f in report.findings]
    assert [one.message for one in report.findings if one.diverges] == []


@in_pairs
def test_a_fault_gets_its_module_its_cause_and_its_fix(
    frameworks: tuple[str, str], tmp_path: Path
) -> None:
    report = _verified(_case(tmp_path, frameworks, "0.001"))
    finding = next(one for one in report.findings if one.diverges)
    assert (finding.stage.value, finding.module) == ("forward", "1"), finding.message
    cause = _cause(finding)
    assert (cause.id, cause.reference, cause.proved) == ("batch_norm.eps", 1e-5, True)
    assert cause.port == pytest.approx(1e-3, rel=1e-3)
    assert finding.fix is not None
    assert re.search(r"eps\w*=1e-0?5", finding.fix.text)


@in_pairs
def test_one_module_alone_gets_the_same_cause(frameworks: tuple[str, str], tmp_path: Path) -> None:
    case = _case(tmp_path, frameworks, "0.001")
    report = diagnose_case(case, "1", mode="train", seed=0, progress=SilentProgress())
    assert report.verdict is Verdict.DIVERGENT
    causes = [one for call in report.calls for stage in call.stages for one in stage.causes]
    assert {one.cause.id for one in causes} == {"batch_norm.eps"}
