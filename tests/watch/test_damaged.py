"""Runs of real trainings whose writing ended early: nothing is lost but the last step."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import isograd
from isograd.errors import IsogradError

torch = pytest.importorskip("torch")

_STEPS = 12
_TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
for step in range(200):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
print("trained to the end")
"""


def train(folder: Path, seed: int = 0, factor: float = 1.0, copied: Path | None = None) -> Path:
    """A watched training; factor: of gradients from step 6; copied: the run before it is sealed."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))
    with isograd.watch(net, folder, optimizer=optimizer, first=0, every=1):
        for step in range(_STEPS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            (loss * (factor if step >= 6 else 1.0)).backward()
            optimizer.step()
        if copied is not None:
            shutil.copytree(folder, copied)
    return folder


@pytest.mark.parametrize("table", ["scalars", "statistics"])
def test_a_crash_within_a_row_costs_one_step(table: str, tmp_path: Path) -> None:
    train(tmp_path / "a", copied=tmp_path / "crashed")
    (rows,) = (tmp_path / "crashed" / table).glob("*.rows")
    rows.write_bytes(rows.read_bytes()[:-7])
    report = isograd.watch(tmp_path / "crashed")
    assert report.steps >= _STEPS - 1
    assert {alert.code for alert in report.alerts} == {"input.repeated"}


def test_a_sealed_table_that_is_cut(tmp_path: Path) -> None:
    folder = train(tmp_path / "a")
    (columns,) = (folder / "scalars").glob("*.columns")
    columns.write_bytes(columns.read_bytes()[:-7])
    with pytest.raises(IsogradError, match="columns"):
        isograd.watch(folder)


def test_a_description_that_is_cut(tmp_path: Path) -> None:
    folder = train(tmp_path / "a")
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text[: len(text) // 2])
    with pytest.raises(IsogradError, match=r"run\.json.* is malformed"):
        isograd.watch(folder)


def _with_little_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_TRAINING)
    command = [sys.executable, "-B", "-m", "isograd", "watch", "--out", "a", "train.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_with_little_room,  # no thread of the tests holds a lock here
    )
    assert "trained to the end" in done.stdout
    assert "isograd stopped writing the run" in done.stderr
    assert "The training goes on" in done.stderr
    assert isograd.watch(tmp_path / "a").steps > 0


def test_against_seeds_of_the_reference(tmp_path: Path) -> None:
    references = [train(tmp_path / f"reference{seed}", seed) for seed in range(3)]
    same = isograd.watch(train(tmp_path / "same", 7), against=references)
    assert "reference.departs" not in {alert.code for alert in same.alerts}
    port = train(tmp_path / "port", 7, factor=40.0)
    departs = [a for a in isograd.watch(port, against=references).alerts if "departs" in a.code]
    assert departs
    assert min(alert.first_step for alert in departs) == 6
