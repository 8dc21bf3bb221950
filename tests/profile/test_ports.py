"""`isograd profile --out` records the trainings that convert writes, compiled and recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from isograd.convert.conversion import Options
from isograd.convert.run import convert_path

pytest.importorskip("mindspore")

SCRIPT = """
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(16):
    x = rng.normal(size=(64, 64)).astype(np.float32)
    loss = (net(torch.from_numpy(x)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
"""
#: A step that somebody wrote for MindSpore, with an optimizer of MindSpore's.
BY_HAND = """
import numpy as np
import mindspore as ms
from mindspore import nn, ops

rng = np.random.default_rng(0)
net = nn.SequentialCell(nn.Dense(64, 256), nn.ReLU(), nn.Dense(256, 1)).set_train()
optimizer = nn.Adam(net.trainable_params(), 0.01)


def forward(x):
    return (net(x) ** 2).mean()


gradient = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def step(x):
    loss, gradients = gradient(x)
    optimizer(gradients)
    return loss


for _ in range(16):
    step(ms.Tensor(rng.normal(size=(64, 64)).astype(np.float32)))
"""


def profiled(script: Path, folder: Path) -> dict[str, dict[str, float]]:
    """The phases of a step."""
    command = [sys.executable, "-m", "isograd", "profile", str(script), "--out", str(folder)]
    done = subprocess.run(
        [*command, "--steps", "12", "--json", "-"], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert found["step"]["median_s"] > 0
    assert found["operators"]
    return {one["phase"]: one for one in found["step"]["phases"]}


def test_a_compiled_port_is_one_phase(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    convert_path(tmp_path / "train.py", tmp_path / "port")
    assert "@ms.jit" in (tmp_path / "port" / "train.py").read_text()
    phases = profiled(tmp_path / "port" / "train.py", tmp_path / "run")
    assert phases["other"]["share"] == pytest.approx(1.0)


def test_a_recorded_port_has_its_phases(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    convert_path(tmp_path / "train.py", tmp_path / "port", Options(eager=True))
    phases = profiled(tmp_path / "port" / "train.py", tmp_path / "run")
    assert {name for name, one in phases.items() if one["seconds"] > 0} >= {
        "forward",
        "backward",
        "update",
    }


def test_a_compiled_step_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BY_HAND)
    phases = profiled(tmp_path / "train.py", tmp_path / "run")
    assert phases["other"]["share"] == pytest.approx(1.0)
