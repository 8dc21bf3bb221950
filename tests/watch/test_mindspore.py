"""A watched MindSpore training, eager and compiled: where the first NaN or Inf arose."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

import isograd
from isograd.runs.reader import Run
from isograd.watch.model import WatchReport, WatchVerdict

BAD_STEP = 3


class Net(nn.Cell):
    """Two layers with a place in between that spoils what passes in one batch."""

    def __init__(self, inner: nn.Cell | None = None) -> None:
        super().__init__()
        self.first = nn.Dense(8, 16)
        self.inner = inner
        self.last = nn.Dense(16, 4)

    def construct(self, x: Any) -> Any:
        h = self.first(x)
        if self.inner is not None:
            h = self.inner(h, (x.max() > 5).astype(ms.float32))
        return self.last(h)


class LogOfZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = h * h * (1 - bad) + 0.1 * (1 - bad)
        return ops.log(h)


class ExpOverflows(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = h * (1 + 1e4 * bad)
        e = ops.exp(h)
        return e / e.sum(-1, keepdims=True)


class ZeroByZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = (ops.abs(h) + 0.1) * (1 - bad)
        return h / h.sum(-1, keepdims=True)


class RootOfZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        s = (h * h).sum(-1, keepdims=True) * (1 - bad)
        return h + ops.sqrt(s)


CASES = [
    pytest.param(LogOfZero, "forward", "Log", "-inf", "ops.log", id="log of zero"),
    pytest.param(ExpOverflows, "forward", "Exp", "inf", "ops.exp", id="exp overflows"),
    pytest.param(ZeroByZero, "forward", "Div", "nan", "h / h", id="zero by zero"),
    pytest.param(RootOfZero, "backward", "Sqrt (backward)", "inf", "ops.sqrt", id="sqrt' at 0"),
]


def batches(steps: int = 6) -> Iterator[tuple[Any, Any]]:
    draw = np.random.default_rng(0)
    for step in range(steps):
        x = draw.standard_normal((16, 8)).clip(-3, 3).astype(np.float32)
        if step == BAD_STEP:
            x[0, 0] = 6.0
        yield ms.Tensor(x), ms.Tensor(draw.integers(0, 4, 16).astype(np.int32))


def eager_step(model: nn.Cell, optimizer: Any) -> Callable[..., Any]:
    loss_of = nn.CrossEntropyLoss()

    def forward(x: Any, y: Any) -> Any:
        return loss_of(model(x), y)

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = differentiate(x, y)
        optimizer(gradients)
        return loss

    return step


def compiled_step(model: nn.Cell, optimizer: Any) -> Callable[..., Any]:
    return ms.jit(eager_step(model, optimizer))


def cell_step(model: nn.Cell, optimizer: Any) -> Callable[..., Any]:
    return nn.TrainOneStepCell(nn.WithLossCell(model, nn.CrossEntropyLoss()), optimizer)


def train(folder: Path, model: nn.Cell, make: Callable[..., Any]) -> WatchReport:
    optimizer = nn.SGD(model.trainable_params(), 0.05)
    step = make(model, optimizer)
    with isograd.watch(model, folder, optimizer=optimizer):
        for x, y in batches():
            step(x, y)
    return isograd.watch(folder)


def line_of(cell: type, text: str) -> int:
    lines, first = inspect.getsourcelines(cell)
    return first + next(at for at, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(("cell", "phase", "operator", "kind", "marked"), CASES)
def test_the_origin(
    tmp_path: Path,
    cell: type,
    phase: str,
    operator: str,
    kind: str,
    marked: str,
) -> None:
    report = train(tmp_path / "a", Net(cell()), eager_step)
    origin = report.first_nonfinite
    assert origin is not None
    assert (origin["step"], origin["phase"], origin["module"]) == (BAD_STEP, phase, "inner")
    assert (origin["operator"], origin["kind"], origin["origin"]) == (operator, kind, True)
    assert str(origin["where"]).endswith(f"test_mindspore.py:{line_of(cell, marked)}")
    assert report.verdict is WatchVerdict.UNHEALTHY


@pytest.mark.parametrize(
    ("mode", "make"),
    [("PYNATIVE_MODE", cell_step), ("PYNATIVE_MODE", compiled_step), ("GRAPH_MODE", cell_step)],
)
def test_the_origin_in_other_forms_of_training(
    tmp_path: Path, mode: str, make: Callable[..., Any]
) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=getattr(ms, mode))
    try:
        origin = train(tmp_path / "a", Net(LogOfZero()), make).first_nonfinite
    finally:
        ms.set_context(mode=before)
    assert origin is not None
    assert (origin["step"], origin["operator"], origin["module"]) == (BAD_STEP, "Log", "inner")


@pytest.mark.parametrize("make", [eager_step, compiled_step])
def test_watching_changes_no_number(tmp_path: Path, make: Callable[..., Any]) -> None:
    def losses(is_watched: bool) -> list[float]:
        ms.set_seed(0)
        model = nn.SequentialCell(nn.Dense(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dense(8, 4))
        model.set_train()
        optimizer = nn.Adam(model.trainable_params(), 1e-3)
        step = make(model, optimizer)
        if not is_watched:
            return [float(step(x, y).asnumpy()) for x, y in batches(4)]
        with isograd.watch(model, tmp_path / "a", optimizer=optimizer, every=1):
            return [float(step(x, y).asnumpy()) for x, y in batches(4)]

    plain, watched = losses(False), losses(True)
    assert watched == plain
    report = isograd.watch(tmp_path / "a")
    assert report.steps == 4
    assert [a.code for a in report.alerts] == []


def test_an_optimizer_is_found_without_being_given(tmp_path: Path) -> None:
    model = Net()
    optimizer = nn.SGD(model.trainable_params(), 0.05)
    step = eager_step(model, optimizer)
    with isograd.watch(model, tmp_path / "a"):
        for x, y in batches(3):
            step(x, y)
    assert isograd.watch(tmp_path / "a").steps == 3


@pytest.mark.parametrize("scale", [2.0**24, 2.0**127])
def test_overflows_of_scaling(tmp_path: Path, scale: float) -> None:
    model = Net()
    optimizer = nn.SGD(model.trainable_params(), 0.05)
    scaler = ms.amp.DynamicLossScaler(scale, 2**10, 2)
    loss_of = nn.CrossEntropyLoss()

    def forward(x: Any, y: Any) -> Any:
        return scaler.scale(loss_of(model(x) * 8.0, y))

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    with isograd.watch(model, tmp_path / "a", optimizer=optimizer):
        for x, y in batches(6):
            _, gradients = differentiate(x, y)
            gradients = scaler.unscale(gradients)
            is_finite = ms.amp.all_finite(gradients)
            if bool(is_finite):
                optimizer(gradients)
            scaler.adjust(is_finite)
    report = isograd.watch(tmp_path / "a")
    assert report.steps == 6
    assert report.loss_scale is not None
    assert {a.code for a in report.alerts if a.severity.value == "alert"} == set()
    assert (len(report.loss_scale.overflows) > 0) == (scale > 2.0**100)


def test_detaching_leaves_mindspore_as_it_was(tmp_path: Path) -> None:
    before = (nn.Cell.__call__, nn.Cell.compile_and_run, nn.Optimizer.__call__)
    train(tmp_path / "a", Net(), eager_step)
    assert before == (nn.Cell.__call__, nn.Cell.compile_and_run, nn.Optimizer.__call__)
    assert "__call__" not in vars(nn.Optimizer)


@pytest.mark.parametrize("make", [eager_step, compiled_step])
@pytest.mark.parametrize("is_listed", [True, False])
def test_each_step_has_its_own_learning_rate(
    tmp_path: Path, make: Callable[..., Any], is_listed: bool
) -> None:
    expected = [0.05 * 0.5**step for step in range(6)]  # a list ends with the last step
    rates = expected if is_listed else nn.ExponentialDecayLR(0.05, 0.5, 1)
    model = Net()
    optimizer = nn.Momentum(model.trainable_params(), rates, 0.9)
    step = make(model, optimizer)
    with isograd.watch(model, tmp_path / "a", optimizer=optimizer):
        for x, y in batches():
            step(x, y)
    _, found = Run(tmp_path / "a").scalars.series("learning_rate")
    np.testing.assert_allclose(found, expected, rtol=1e-6)
