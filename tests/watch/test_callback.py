"""The callback in MindSpore's Model.train, and in the form that Trainer calls it."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops

import isograd


class Log(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Dense(4, 4)

    def construct(self, x: Any) -> Any:
        return self.layer(x) + ops.log(x[:, :1])


def dataset(bad: bool) -> Any:
    x = np.random.default_rng(0).random((24, 4)).astype(np.float32) + 0.5
    if bad:
        x[13, 0] = 0.0
    y = np.arange(24, dtype=np.int32) % 4
    return ms.dataset.NumpySlicesDataset((x, y), shuffle=False).batch(4)


@pytest.mark.parametrize(("bad", "steps"), [(False, 6), (True, 4)])
def test_model_train(tmp_path: Path, bad: bool, steps: int) -> None:
    network = Log()
    optimizer = nn.SGD(network.trainable_params(), 0.01)
    model = ms.Model(network, nn.CrossEntropyLoss(), optimizer)
    callback = isograd.WatchCallback(tmp_path / "a", action="stop")
    assert isinstance(callback, ms.Callback)
    assert isinstance(callback, isograd.WatchCallback)
    model.train(1, dataset(bad), callbacks=[callback], dataset_sink_mode=False)
    report = isograd.watch(tmp_path / "a")
    assert report.steps == steps
    assert report.run["state"] == "complete"
    origin = report.first_nonfinite
    assert (origin is not None) == bad
    if origin is not None:
        assert (origin["step"], origin["operator"]) == (3, "Log")


def test_a_trainer_that_calls_as_transformers_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = types.ModuleType("transformers")
    module.TrainerCallback = type("TrainerCallback", (), {})
    monkeypatch.setitem(sys.modules, "transformers", module)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    callback: Any = isograd.WatchCallback(tmp_path / "a", action="stop")
    assert isinstance(callback, module.TrainerCallback)
    control = types.SimpleNamespace(should_training_stop=False)
    callback.on_train_begin(None, None, control, model=model, optimizer=optimizer)
    for step in range(10):
        optimizer.zero_grad()
        loss = model(torch.randn(3, 4)).square().mean()
        (loss / (0.0 if step == 3 else 1.0)).backward()
        optimizer.step()
        callback.on_step_end(None, None, control)
        if control.should_training_stop:
            break
    callback.on_train_end(None, None, control)
    assert isograd.watch(tmp_path / "a").steps == 4
