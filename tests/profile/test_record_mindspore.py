"""A MindSpore training is recorded: steps from one settled state to the next, queues, lines."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import nn
from mindspore.dataset import GeneratorDataset
from mindspore.dataset.engine.iterators import Iterator

import isograd
from isograd.cli.entry import main
from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.breakdown import Limit
from isograd.profile.model import Phase
from isograd.profile.read import pipelines
from isograd.profile.read.open import open_profile


class _Network(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(16, 32), nn.Dense(32, 4)

    def construct(self, inputs: Any) -> Any:
        return self.second(self.first(inputs).sin())


def _rows() -> Any:
    for index in range(400):
        yield np.full(16, index % 7, np.float32), np.int32(index % 4)


def _slow(value: np.ndarray) -> np.ndarray:
    time.sleep(0.01)
    return value


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded training; another where MindSpore gave no samples, as it does rarely at load."""
    for _ in range(3):
        folder = tmp_path_factory.mktemp("profile") / "run"
        _record(folder)
        if open_profile(folder).queues:
            break
    return folder


def _dataset() -> Any:
    dataset = GeneratorDataset(_rows, ["x", "y"], shuffle=False)
    return dataset.map(_slow, ["x"], num_parallel_workers=1).batch(8)


def _record(folder: Path) -> Iterator:
    """Record a training of 12 steps; the iterator over its batches, which is not at its end."""
    network = _Network().set_train()
    optimizer = nn.SGD(network.trainable_params(), 0.01)
    loss = nn.CrossEntropyLoss()
    gradients = mindspore.value_and_grad(
        lambda x, y: loss(network(x), y), None, network.trainable_params()
    )
    call, fetch = nn.Cell.__call__, Iterator.__next__
    with isograd.profile(network, folder, steps=10):
        batches = _dataset().create_tuple_iterator()
        for number, (x, y) in enumerate(batches):
            _, found = gradients(x, y)
            optimizer(found)
            if number == 12:
                break
    assert nn.Cell.__call__ is call
    assert Iterator.__next__ is fetch
    assert not mindspore.get_context("pynative_synchronize")
    return batches


def test_steps_and_phases(run: Path) -> None:
    profile = open_profile(run)
    assert profile.framework == "mindspore"
    assert profile.marks is not None
    assert len(profile.marks.window) == 10
    for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE):
        assert (profile.steps.phase(phase) > 0).all()
    assert any("every operator ran at once" in note for note in profile.notes)


def test_operators_have_times_lines_and_modules(run: Path) -> None:
    analysis = analyse(open_profile(run))
    sine = next(operator for operator in analysis.operators if operator.name == "Sin")
    assert sine.shapes == "8×32"
    assert sine.self_s > 0
    assert sine.where is not None
    assert "test_record_mindspore.py" in sine.where


def test_modules_are_timed(run: Path) -> None:
    times = {module.name: module for module in open_profile(run).modules}
    assert set(times) == {"", "first", "second"}
    assert times[""].forward_s > times["first"].forward_s > 0
    assert times["second"].backward_s > 0


def test_the_slow_operator_of_the_pipeline_is_named(run: Path) -> None:
    profile = open_profile(run)
    pipeline = analyse(profile).pipeline
    assert pipeline is not None, profile.notes
    assert pipeline.bottleneck is not None, pipeline.reason
    assert pipeline.queue(pipeline.bottleneck).name == "Map"


def test_queues_that_mindspore_does_not_give_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no monitor")

    monkeypatch.setattr(pipelines, "pipeline_profiling", fails)
    _record(tmp_path / "run")
    profile = open_profile(tmp_path / "run")
    assert "The pipeline's queues are not known: RuntimeError: no monitor" in profile.notes
    assert analyse(profile).pipeline is None


def test_an_iterator_that_lives_on_keeps_the_next_profile_from_sampling(tmp_path: Path) -> None:
    # MindSpore ends the process with a segmentation fault where it samples both.
    batches = _record(tmp_path / "first")
    assert open_profile(tmp_path / "first").queues
    _record(tmp_path / "second")
    second = open_profile(tmp_path / "second")
    assert not second.queues
    assert any("an iterator of an earlier profile is still in use" in one for one in second.notes)
    batches.stop()
    _record(tmp_path / "third")
    assert open_profile(tmp_path / "third").queues


def test_a_script_of_the_other_framework_leaves_no_sampling_behind(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_TORCH, encoding="utf-8")
    assert main(["profile", "--quiet", "--out", str(tmp_path / "torch"), str(script)]) in (0, 1)
    _record(tmp_path / "run")
    assert open_profile(tmp_path / "run").queues


def test_a_callback_of_model_train(tmp_path: Path) -> None:
    network = _Network()
    optimizer = nn.SGD(network.trainable_params(), 0.01)
    dataset = GeneratorDataset(_rows, ["x", "y"], shuffle=False).batch(8)
    model = mindspore.Model(network, nn.CrossEntropyLoss(), optimizer)
    callback = isograd.ProfileCallback(tmp_path / "run", steps=8)
    model.train(1, dataset.take(10), callbacks=[callback], dataset_sink_mode=False)
    profile = open_profile(tmp_path / "run")
    assert profile.marks is not None
    assert len(profile.marks.window) == 8
    assert (profile.steps.seconds > 0).all()


_TORCH = """
import torch
network = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    network(torch.ones(2, 4)).mean().backward()
    optimizer.step()
"""

_SCRIPT = """
import numpy as np, time
import mindspore, mindspore.dataset as ds
from mindspore import nn

def rows():
    for index in range(80):
        time.sleep(0.01)
        yield np.full(16, index % 7, np.float32), np.int32(index % 4)

data = ds.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(8)
batches = data.create_tuple_iterator()
network = nn.Dense(16, 4).set_train()
optimizer = nn.SGD(network.trainable_params(), 0.01)
loss = nn.CrossEntropyLoss()
gradients = mindspore.value_and_grad(
    lambda x, y: loss(network(x), y), None, network.trainable_params()
)
for x, y in batches:
    optimizer(gradients(x, y)[1])
"""


def test_a_script_that_builds_its_pipeline_first_has_queues(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_SCRIPT, encoding="utf-8")
    call = [sys.executable, "-m", "isograd", "profile", "--quiet", "--steps", "8", "--out", "run"]
    done = subprocess.run([*call, "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    assert {queue.name for queue in open_profile(tmp_path / "run").queues} >= {"Generator", "Batch"}


_EPOCHS = """
import mindspore, numpy
from mindspore import nn
from mindspore.dataset import NumpySlicesDataset

X, Y = numpy.ones((128, 4), "float32"), numpy.zeros(128, "int32")
net, loss_of = nn.Dense(4, 3), nn.CrossEntropyLoss()
update = nn.SGD(net.trainable_params(), 0.1)
gradient = mindspore.value_and_grad(lambda x, y: loss_of(net(x), y), None, update.parameters)
for epoch in range(4):
    for x, y in NumpySlicesDataset((X, Y), ["x", "y"]).batch({batch}).create_tuple_iterator():
        update(gradient(x, y)[1])
"""


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(8, id="a pipeline ends before its queues are looked at"),
        pytest.param(7, id="a pipeline ends while its queues are looked at"),
        pytest.param(16, id="several pipelines end before"),
    ],
)
def test_epochs_that_end_within_the_recording(tmp_path: Path, batch: int) -> None:
    (tmp_path / "train.py").write_text(_EPOCHS.replace("{batch}", str(batch)))
    call = [sys.executable, "-m", "isograd", "profile", "--quiet", "--out", "run"]
    done = subprocess.run([*call, "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    assert "ended while it ran" not in done.stderr


_COMPILED = """
import mindspore, numpy
from mindspore import nn

net, loss_of = nn.Dense(4, 3), nn.CrossEntropyLoss()
net.set_train()
update = nn.SGD(net.trainable_params(), 0.1)

def forward(x, y):
    return loss_of(net(x), y)

gradient = mindspore.value_and_grad(forward, None, update.parameters)

@mindspore.jit
def train_step(x, y):
    loss, gradients = gradient(x, y)
    update(gradients)
    return loss

for step in range(18):
    rows = {rows}
    train_step(mindspore.ops.ones((rows, 4)), mindspore.ops.zeros(rows, mindspore.int32))
"""


@pytest.mark.parametrize("rows", ["step + 2", "8"])
def test_a_step_that_is_compiled_anew_each_time(tmp_path: Path, rows: str) -> None:
    (tmp_path / "train.py").write_text(_COMPILED.replace("{rows}", rows))
    call = [sys.executable, "-m", "isograd", "profile", "--steps", "16", "--out", "run"]
    done = subprocess.run([*call, "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    is_named = "train.py:14: step.recompilation" in done.stdout
    assert is_named == ("step" in rows)


def test_a_crash_of_the_process_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    call = [sys.executable, "-m", "isograd", "profile", "--quiet", "--out", "run"]
    done = subprocess.run([*call, "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "the process ended while it ran train.py: it crashed in native code" in done.stderr


def _recorded(folder: Path, *, work_s: float, pause_s: float, compile_s: float) -> Any:
    """work_s: of the map for a row, 8 in a batch. pause_s: of a step. The queues hold 16."""

    def work(value: np.ndarray) -> np.ndarray:
        time.sleep(work_s)
        return value

    network = _Network().set_train()
    optimizer = nn.SGD(network.trainable_params(), 0.01)
    gradients = mindspore.value_and_grad(
        lambda x: network(x).sum(), None, network.trainable_params()
    )
    dataset = GeneratorDataset(_rows, ["x", "y"], shuffle=False)
    dataset = dataset.map(work, ["x"], num_parallel_workers=1).batch(8)
    with isograd.profile(network, folder, steps=10):
        for number, (x, _) in enumerate(dataset.create_tuple_iterator()):
            optimizer(gradients(x)[1])
            time.sleep(pause_s if number else compile_s)
            if number == 12:
                break
    return isograd.profile(folder)


def test_batches_made_ahead_do_not_hide_a_slow_pipeline(tmp_path: Path) -> None:
    report = _recorded(tmp_path / "run", work_s=0.02, pause_s=0.0, compile_s=4.0)
    assert report.analysis.limit is Limit.DATA
    assert report.analysis.step_s >= 0.14  # eight rows of 20 ms
    assert "batches had been made ahead" in " ".join(report.analysis.notes)
    finding = report.findings[0]
    assert (finding.code, finding.culprit) == ("data.slow_operator", "Map")


def test_a_pipeline_that_keeps_up_is_not_blamed(tmp_path: Path) -> None:
    report = _recorded(tmp_path / "run", work_s=0.0, pause_s=0.1, compile_s=0.1)
    assert report.analysis.limit is Limit.HOST
    assert not any("made ahead" in note for note in report.analysis.notes)
    assert not any(finding.code.startswith("data.") for finding in report.findings)
