"""`isograd watch` sees the trainings that convert writes: compiled steps, and recorded loops."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isograd.convert.conversion import Options
from isograd.convert.run import convert_path

pytest.importorskip("mindspore")

SCRIPT = """
import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8, bias=False), nn.Linear(8, 1)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = h + torch.log(h.sum(1, keepdim=True))
        return self.second(h)


def main():
    rng = np.random.default_rng(0)
    net = Net()
    for i, p in enumerate(net.parameters()):
        p.data = 0.3 * torch.sin(torch.arange(p.numel()).reshape(p.shape) + i)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(8):
        x = rng.normal(size=(16, 4)).astype(np.float32)
        if step == {bad}:
            x[3] = 0.0
        optimizer.zero_grad()
        loss = (net(torch.from_numpy(x)) ** 2).mean()
        loss.backward()
        optimizer.step()


main()
"""


def ports(folder: Path, bad: int, *, eager: bool) -> Path:
    """The port of the script; its batch number `bad` makes a logarithm of 0."""
    (folder / "train.py").write_text(SCRIPT.replace("{bad}", str(bad)))
    convert_path(folder / "train.py", folder / "port", Options(eager=eager))
    path = folder / "port" / "train.py"
    assert ("ms.jit" in path.read_text()) is not eager
    return path


def watched(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "isograd", "watch", *map(str, arguments), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "eager", [pytest.param(False, id="compiled"), pytest.param(True, id="recorded")]
)
def test_a_healthy_port(eager: bool, tmp_path: Path) -> None:
    found = watched(ports(tmp_path, -1, eager=eager), "--out", tmp_path / "run")
    assert (found["verdict"], found["steps"]) == ("healthy", 8)
    assert found["run"]["framework"] == "mindspore"


def test_the_origin_in_a_compiled_port(tmp_path: Path) -> None:
    port = ports(tmp_path, 5, eager=False)
    found = watched(port, "--out", tmp_path / "run")
    assert (found["verdict"], found["steps"]) == ("unhealthy", 8)
    lines = port.read_text().splitlines()
    line = next(at for at, text in enumerate(lines, 1) if "ops.log" in text)
    origin = found["first_nonfinite"]
    assert (origin["step"], origin["phase"], origin["operator"]) == (5, "forward", "Log")
    assert origin["where"].endswith(f"train.py:{line}")


def test_a_recorded_loss_cannot_be_replayed(tmp_path: Path) -> None:
    port = ports(tmp_path, 5, eager=True)
    found = watched(port, "--out", tmp_path / "run")
    assert (found["verdict"], found["steps"]) == ("unhealthy", 8)
    lines = port.read_text().splitlines()
    line = next(at for at, text in enumerate(lines, 1) if "optimizer.step()" in text)
    origin = found["first_nonfinite"]
    assert (origin["step"], origin["origin"]) == (5, False)
    assert origin["where"].endswith(f"train.py:{line}")
    assert "convert without --eager" in origin["note"]


@pytest.mark.parametrize(
    "eager", [pytest.param(False, id="compiled"), pytest.param(True, id="recorded")]
)
def test_two_runs_of_a_port(eager: bool, tmp_path: Path) -> None:
    port = ports(tmp_path, -1, eager=eager)
    found = watched(port, "--twice", 3)
    assert (found["verdict"], found["steps"]) == ("healthy", 3)
    port.write_text(port.read_text().replace("default_rng(0)", "default_rng()"))
    found = watched(port, "--twice", 3)
    assert found["randomness"]["first_difference"]["what"] == "batch"
