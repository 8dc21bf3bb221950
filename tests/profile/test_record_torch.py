"""A torch training is recorded: steps, phases, lines, and nothing is left behind."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

import isograd
from isograd.cli.entry import main
from isograd.errors import ProfileError, UsageError
from isograd.profile import trying
from isograd.profile.analyse.breakdown import Limit
from isograd.profile.model import Phase
from isograd.profile.read.open import open_profile
from isograd.profile.record.variants import FLOAT32
from isograd.runs.reader import Run
from isograd.runs.writer import RunWriter


class _Samples(Dataset[Any]):
    def __init__(self, sleep_s: float = 0.0) -> None:
        self.sleep_s = sleep_s

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(self.sleep_s)
        return torch.full((64,), float(index % 7)), index % 4


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(inplace=True), nn.Linear(128, 4))


def _train(network: nn.Module, samples: Dataset[Any], steps: int) -> list[float]:
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    losses = []
    for number, (inputs, labels) in enumerate(DataLoader(samples, batch_size=8)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if number + 1 == steps:
            break
    return losses


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profile") / "slow"
    network = _network()
    with isograd.profile(network, folder, steps=14):
        _train(network, _Samples(0.012), 18)
    return folder


def test_a_slow_dataset_is_found_with_its_line(slow: Path) -> None:
    report = isograd.profile(slow)
    assert report.analysis.limit is Limit.DATA
    finding = report.findings[0]
    assert finding.code.startswith("data.")
    assert finding.where is not None
    assert finding.where.endswith(f"test_record_torch.py:{_line_of('time.sleep(self.sleep_s)')}")
    assert finding.culprit == "__getitem__"
    assert finding.share > 0.5


def test_windows_phases_modules_and_lines(slow: Path) -> None:
    profile = open_profile(slow)
    assert profile.marks is not None
    assert profile.marks.window.count("warm-up") == 2
    assert profile.marks.window.count("source") == 1
    assert len(profile.steps) == profile.marks.window.count("plain") >= 7
    for phase in (Phase.DATA, Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE):
        assert (profile.steps.phase(phase) > 0).all()
    assert {module.name for module in profile.modules} == {"", "0", "1", "2"}
    assert all(module.backward_s > 0 for module in profile.modules)
    known = {(one.name, one.module) for one in profile.source_operators}
    assert ("aten::addmm", "0") in known
    # isograd's own read of the loss behind the backward pass is none of the training's.
    reads = {one.where for one in profile.source_operators if one.name.endswith("_scalar_dense")}
    line = _line_of("losses.append(float(loss.detach()))")
    assert [where.rpartition(":")[2] for where in reads] == [str(line)]
    assert profile.host is not None
    assert profile.host.excluded.keys() == {"first step, with compilation", "warm-up"}
    assert profile.structure is not None
    assert json.loads((slow / "run.json").read_text())["state"] == "complete"


def test_losses_are_written_between_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(writer: RunWriter, step: int, values: dict[str, float]) -> None:
        time.sleep(0.05)
        written(writer, step, values)

    written = RunWriter.scalars
    monkeypatch.setattr(RunWriter, "scalars", slow)
    network = _network()
    with isograd.profile(network, tmp_path / "a", steps=10):
        losses = _train(network, _Samples(), 12)
    steps = open_profile(tmp_path / "a").steps
    assert float(np.median(steps.seconds)) < 0.05
    kept = Run(tmp_path / "a").scalars.series("loss")[1].tolist()
    assert kept == pytest.approx(losses[: len(kept)])
    assert len(kept) > 2


def test_nothing_is_left_behind_and_nothing_is_changed(tmp_path: Path) -> None:
    plain, recorded = _network(), _network()
    backward, fetch = torch.autograd.backward, _BaseDataLoaderIter.__next__
    callbacks = list(gc.callbacks)
    with isograd.profile(recorded, tmp_path / "run", steps=10):
        losses = _train(recorded, _Samples(), 14)
    assert losses == _train(plain, _Samples(), 14)
    assert torch.autograd.backward is backward
    assert _BaseDataLoaderIter.__next__ is fetch
    assert gc.callbacks == callbacks
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in recorded.modules()]
    assert hooks == [0] * len(hooks)


def test_an_error_in_the_training_keeps_what_was_seen(tmp_path: Path) -> None:
    network = _network()

    def train() -> None:
        with isograd.profile(network, tmp_path / "run", steps=10):
            _train(network, _Samples(), 6)
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        train()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["state"] == "failed"
    assert len(open_profile(tmp_path / "run").steps) > 0


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        pytest.param(3, "3 steps are too few", id="few steps"),
        pytest.param(10, "no training step was seen", id="no training"),
    ],
)
def test_what_cannot_be_recorded(tmp_path: Path, steps: int, message: str) -> None:
    def train() -> None:
        with isograd.profile(_network(), tmp_path / "run", steps=steps):
            pass

    with pytest.raises((UsageError, ProfileError), match=message):
        train()


def test_only_networks_and_paths_are_taken(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be profiled"):
        isograd.profile(object(), tmp_path / "run")
    with pytest.raises(UsageError, match="no folder"):
        isograd.profile(_network())  # type: ignore[call-overload]  # that is the point


_SCRIPT = """\
import sys
import torch

network = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
inputs = torch.ones(4, 8)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    network(inputs).sum().backward()
    optimizer.step()
    if sys.argv[2] == "fail":
        raise ValueError("no luck")
"""


def test_a_script_is_recorded_unchanged(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)
    call = ["profile", "--quiet", "--out", str(tmp_path / "run"), "--steps", "9"]
    assert main([*call, str(script), "--", "15", "work"]) in (0, 1)
    assert len(open_profile(tmp_path / "run").steps) > 0


def test_a_script_that_fails_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)
    call = ["profile", "--quiet", "--out", str(tmp_path / "run"), str(script)]
    assert main([*call, "--", "15", "fail"]) == 2
    assert "raised ValueError: no luck" in capsys.readouterr().err


def test_two_runs_pair_their_modules(slow: Path, tmp_path: Path) -> None:
    network = _network()
    with isograd.profile(network, tmp_path / "fast", steps=12):
        _train(network, _Samples(), 14)
    report = isograd.profile(slow, tmp_path / "fast")
    assert report.against is not None
    assert report.against.faster is False
    assert report.against.ratio > 2
    assert {(one.name, one.other_name) for one in report.against.modules} == {
        (name, name) for name in ("", "0", "1", "2")
    }
    data = json.loads(report.to_json())
    assert data["against"]["verdict"] == "slower"
    assert all(one["against"]["ratio"] > 0 for one in data["modules"])


def test_settings_are_tried_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\ntorch.manual_seed(0)\n" + _SCRIPT)
    chosen = [one for one in trying.VARIANTS if one.name == "threads-1"]
    monkeypatch.setattr(trying, "VARIANTS", tuple(chosen))
    monkeypatch.setattr(trying, "ROUNDS", 1)
    found = trying.try_settings(script, ("20", "work"), "torch")
    assert [one.code for one in found] == ["try.threads-1"]
    for one in found:
        assert one.tried is not None
        assert one.tried.step_s > 0
        assert "the training is the same" in one.message
    assert found[0].tried is not None
    assert found[0].tried.equivalent is True


@pytest.mark.parametrize(
    ("losses", "again", "tried", "same"),
    [
        pytest.param([1.0, 0.5], [1.0, 0.5], [1.0, 0.5 + 1e-7], True, id="rounding"),
        pytest.param([1.0, 0.5], [1.0, 0.5], [1.0, 0.6], False, id="another training"),
        pytest.param([1.0, 0.5], [1.0, 0.7], [1.0, 0.5], None, id="not repeatable"),
        pytest.param([], [], [], None, id="no losses"),
    ],
)
def test_equivalence_needs_a_training_that_repeats(
    losses: list[float], again: list[float], tried: list[float], same: bool | None
) -> None:
    base = [trying.Attempt(1.0, 1, tuple(one)) for one in (losses, again)]
    other = [trying.Attempt(1.0, 1, tuple(tried))]
    assert trying.equivalent(base, other, FLOAT32) is same


def test_links_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--links", "2"]) == 0
    assert "A message of n bytes between 2 processes takes about" in capsys.readouterr().out


def test_networks_in_a_container_are_passes(tmp_path: Path) -> None:
    networks = nn.ModuleDict({"maker": nn.Linear(4, 8), "judge": nn.Linear(8, 1)})
    optimizer = torch.optim.SGD(networks.parameters(), lr=0.1)
    with isograd.profile(networks, tmp_path / "run", steps=10):
        for _ in range(12):
            optimizer.zero_grad()
            networks["judge"](networks["maker"](torch.ones(2, 4))).mean().backward()
            optimizer.step()
    steps = open_profile(tmp_path / "run").steps
    assert len(steps) > 0
    assert (steps.phase(Phase.FORWARD) > 0).all()
