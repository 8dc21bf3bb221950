"""A watched torch training: where the first value arose that is not finite, and what is undone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import isograd
from isograd.errors import UsageError
from isograd.runs.reader import Run
from isograd.watch.model import WatchReport, WatchVerdict
from isograd.watch.session import AlertRaised
from isograd.watch.torch_lane import gradient_norms

Spoil = Callable[[torch.Tensor], torch.Tensor]
BAD_STEP = 3


class Net(nn.Module):
    """Two layers with a place in between that spoils what passes in one batch."""

    def __init__(self, spoil: Spoil | None = None) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.inner = Inner(spoil)
        self.last = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.inner(self.first(x), x))


class Inner(nn.Module):
    def __init__(self, spoil: Spoil | None) -> None:
        super().__init__()
        self.spoil = spoil

    def forward(self, h: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if self.spoil is not None and bool((x > 50).any()):
            return self.spoil(h)
        return torch.relu(h)


def batches(steps: int = 6) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(0)
    for step in range(steps):
        x = torch.randn(16, 8, generator=draw)
        if step == BAD_STEP:
            x[0, 0] = 60.0
        yield x, torch.randint(0, 4, (16,), generator=draw)


def train(
    folder: Path,
    model: nn.Module,
    loss_of: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor] | None = None,
    **options: Any,
) -> WatchReport:
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with isograd.watch(model, folder, **options):
        for step, (x, y) in enumerate(batches()):
            optimizer.zero_grad()
            output = model(x)
            loss = F.cross_entropy(output, y)
            if loss_of is not None:
                loss = loss_of(output, loss, step)
            loss.backward()
            optimizer.step()
    return isograd.watch(folder)


def line_of(function: Callable[..., Any], text: str) -> int:
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(at for at, line in enumerate(lines) if text in line)


def log_of_zero(h: torch.Tensor) -> torch.Tensor:
    h = torch.relu(h)
    return torch.log(h)


def zero_by_zero(h: torch.Tensor) -> torch.Tensor:
    h = torch.relu(h - 1e4)
    return h / h.sum(-1, keepdim=True)


def overflow_of_exp(h: torch.Tensor) -> torch.Tensor:
    e = torch.exp(h * 1e3)
    return e / e.sum(-1, keepdim=True)


def softmax_of_nothing(h: torch.Tensor) -> torch.Tensor:
    h = h.masked_fill(h < 1e9, float("-inf"))
    return torch.softmax(h, -1)


def root_of_zero(h: torch.Tensor) -> torch.Tensor:
    s = (h * 0).sum(-1, keepdim=True)
    return h + torch.sqrt(s)


def norm_of_zero_squared(h: torch.Tensor) -> torch.Tensor:
    s = (h * 0).pow(2).sum(-1, keepdim=True)
    return h / (s.pow(0.5) + 1.0)


def masked_log(h: torch.Tensor) -> torch.Tensor:
    positive = (h > 0) * h
    return torch.where(positive > 0, torch.log(positive), torch.zeros_like(h))


@pytest.mark.parametrize(
    ("spoil", "phase", "operator", "kind", "marked"),
    [
        pytest.param(log_of_zero, "forward", "log", "-inf", "torch.log", id="log of zero"),
        pytest.param(zero_by_zero, "forward", "div", "nan", "h / h", id="zero by zero"),
        pytest.param(overflow_of_exp, "forward", "exp", "inf", "torch.exp", id="exp overflows"),
        pytest.param(softmax_of_nothing, "forward", "_softmax", "nan", "softmax(", id="softmax"),
        pytest.param(root_of_zero, "backward", "SqrtBackward0", "inf", "sqrt", id="sqrt' at 0"),
        pytest.param(
            norm_of_zero_squared, "backward", "PowBackward0", "inf", "0.5", id="pow' at 0"
        ),
        pytest.param(masked_log, "backward", "LogBackward0", "nan", "torch.where", id="masked log"),
    ],
)
def test_the_origin_in_the_network(
    tmp_path: Path, spoil: Spoil, phase: str, operator: str, kind: str, marked: str
) -> None:
    report = train(tmp_path / "a", Net(spoil))
    origin = report.first_nonfinite
    assert origin is not None
    assert (origin["step"], origin["phase"], origin["module"]) == (BAD_STEP, phase, "inner")
    assert (origin["operator"], origin["kind"], origin["origin"]) == (operator, kind, True)
    assert str(origin["where"]).endswith(f"test_torch.py:{line_of(spoil, marked)}")
    assert report.verdict is WatchVerdict.UNHEALTHY
    assert report.needs_action


def log_in_the_loss(output: torch.Tensor, loss: torch.Tensor, step: int) -> torch.Tensor:
    p = torch.softmax(output * (1e4 if step == BAD_STEP else 1.0), -1)
    return loss - (torch.log(p) * p).sum(-1).mean()


def root_in_the_loss(output: torch.Tensor, loss: torch.Tensor, step: int) -> torch.Tensor:
    zeros = output * (0.0 if step == BAD_STEP else 1.0)
    return loss + torch.sqrt(zeros.pow(2).sum(-1)).mean()


@pytest.mark.parametrize(
    ("loss_of", "phase", "operator", "marked"),
    [
        pytest.param(log_in_the_loss, "loss", "log", "torch.log", id="log"),
        pytest.param(root_in_the_loss, "backward", "SqrtBackward0", "torch.sqrt", id="sqrt'"),
    ],
)
def test_the_origin_between_the_network_and_the_loss(
    tmp_path: Path, loss_of: Any, phase: str, operator: str, marked: str
) -> None:
    origin = train(tmp_path / "a", Net(), loss_of).first_nonfinite
    assert origin is not None
    assert (origin["step"], origin["phase"], origin["operator"]) == (BAD_STEP, phase, operator)
    assert str(origin["where"]).endswith(f"test_torch.py:{line_of(loss_of, marked)}")


def test_a_batch_that_holds_nan(tmp_path: Path) -> None:
    class Loader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x)

    model = Loader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.from_numpy(
        np.ones((5, 4, 8), np.float32) * np.arange(4, dtype=np.float32)[:, None]
    )
    data[2, 1, 1] = float("nan")
    with isograd.watch(model, tmp_path / "a"):
        for x in data:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    report = isograd.watch(tmp_path / "a")
    assert report.first_nonfinite is not None
    assert (report.first_nonfinite["step"], report.first_nonfinite["phase"]) == (2, "data")
    assert "input.nonfinite" in {alert.code for alert in report.alerts}


def test_a_compiled_network_is_replayed_eagerly(tmp_path: Path) -> None:
    model = Net(log_of_zero)
    model.inner.forward = torch.compile(model.inner.forward, backend="eager")  # type: ignore[method-assign]
    origin = train(tmp_path / "a", model).first_nonfinite
    assert origin is not None
    assert (origin["module"], origin["operator"]) == ("inner", "log")


def test_random_masks_are_replayed(tmp_path: Path) -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = F.dropout(torch.ones(4), 0.3)
            return (
                self.layer(x) / kept.sum()
                if float(kept[0].detach())
                else torch.log(self.layer(x) * 0)
            )

    torch.manual_seed(4)
    model = Dropping()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with isograd.watch(model, tmp_path / "a"):
        for _ in range(12):
            optimizer.zero_grad()
            model(torch.randn(4, 8)).mean().backward()
            optimizer.step()
    origin = isograd.watch(tmp_path / "a").first_nonfinite
    assert origin is not None
    assert (origin["operator"], origin["origin"]) == ("log", True)


def test_what_is_not_reproduced_is_said(tmp_path: Path) -> None:
    calls = []

    def spoil_once(h: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return h / 0.0 if len(calls) == 1 else h

    origin = train(tmp_path / "a", Net(spoil_once)).first_nonfinite
    assert origin is not None
    assert origin["origin"] is False
    assert "the replay did not reproduce it" in origin["note"]


def test_the_replay_changes_nothing(tmp_path: Path) -> None:
    def losses(is_watched: bool) -> list[float]:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        found = []

        def run() -> None:
            for step, (x, y) in enumerate(batches(8)):
                if step == BAD_STEP:
                    x = x.clamp(-2, 2)
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                if step == 2:
                    loss = loss + torch.sqrt(loss * 0)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                for p in model.parameters():
                    p.grad = torch.nan_to_num(p.grad) if step != 2 else torch.zeros_like(p)
                optimizer.step()
                found.append(loss.item())

        if is_watched:
            with isograd.watch(model, tmp_path / "a", every=1):
                run()
        else:
            run()
        return found

    assert losses(True) == losses(False)


def test_detaching_leaves_torch_as_it_was(tmp_path: Path) -> None:
    before = (nn.Module.__call__, torch.autograd.backward, torch.amp.GradScaler.step)
    train(tmp_path / "a", Net())
    with pytest.raises(ZeroDivisionError), isograd.watch(Net(), tmp_path / "b"):
        raise ZeroDivisionError
    assert before == (nn.Module.__call__, torch.autograd.backward, torch.amp.GradScaler.step)
    assert torch.overrides._get_current_function_mode_stack() == []
    assert Run(tmp_path / "b").information.reason == "ZeroDivisionError: "


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_usual_overflows_of_scaling_are_notices(tmp_path: Path, dtype: torch.dtype) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30)
    with isograd.watch(model, tmp_path / "a", scaler=scaler):
        for x, y in batches(40):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=dtype):
                loss = F.cross_entropy(model(x.clamp(-3, 3)), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    report = isograd.watch(tmp_path / "a")
    assert report.loss_scale is not None
    assert report.steps == 40
    assert {a.code for a in report.alerts if a.severity.value == "alert"} == set()
    if dtype is torch.float16:
        assert report.loss_scale.overflows[0] == 0
        assert "scale.overflow" in {a.code for a in report.alerts}
        assert "would have fitted" in report.loss_scale.advice


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(torch.float16, 6e4), (torch.float32, 1e30), (torch.float64, 1e300), (torch.bfloat16, 1e30)],
)
def test_a_norm_that_overflows_is_of_finite_gradients(dtype: torch.dtype, size: float) -> None:
    parameter = nn.Parameter(torch.zeros(2, 8, dtype=dtype))
    parameter.grad = torch.full_like(parameter, size)
    norms, _, _ = gradient_norms([parameter], None)
    assert norms[0] == pytest.approx(4 * float(parameter.grad[0, 0]), rel=1e-5)
    for spoil in (float("inf"), float("nan")):
        parameter.grad[1, 3] = spoil
        assert not np.isfinite(gradient_norms([parameter], None)[0][0])


def test_large_finite_gradients_are_no_alert_of_values_that_are_not_finite(tmp_path: Path) -> None:
    report = train(tmp_path / "run", Net(), lambda _, loss, __: loss * 1e25)
    first = {alert.code: alert.first_step for alert in report.alerts}
    assert first["gradient.nonfinite"] == first["loss.nonfinite"] == 1


def test_a_genuine_nan_under_scaling_is_no_overflow(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with isograd.watch(model, tmp_path / "a"):
        for step, (x, y) in enumerate(batches(6)):
            optimizer.zero_grad()
            loss = root_in_the_loss(model(x.clamp(-3, 3)), F.cross_entropy(model(x), y), step)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    origin = isograd.watch(tmp_path / "a").first_nonfinite
    assert origin is not None
    assert (origin["step"], origin["operator"]) == (BAD_STEP, "SqrtBackward0")


def test_actions(tmp_path: Path) -> None:
    seen: list[Any] = []
    train(tmp_path / "a", Net(log_of_zero), action=seen.append)
    assert seen[0]["code"] == "loss.nonfinite"
    with pytest.raises(AlertRaised, match="step 3: the loss is nan"):
        train(tmp_path / "b", Net(log_of_zero), action="raise")
    assert train(tmp_path / "c", Net(log_of_zero), action="stop").steps == BAD_STEP + 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(lambda f: isograd.watch(Net(), f, action="panic"), "action: 'panic'", id="a"),
        pytest.param(lambda f: isograd.watch(Net()), "no folder is given", id="folder"),
        pytest.param(
            lambda f: isograd.watch(Net(), f, alerts={"x.y": {}}), "no alert 'x.y'", id="c"
        ),
        pytest.param(
            lambda f: isograd.watch(Net(), f, alerts={"loss.spike": {"size": 1}}),
            "loss.spike has no threshold 'size'. It has deviations, share, descent, history",
            id="threshold",
        ),
        pytest.param(lambda f: isograd.watch([1], f).__enter__(), "cannot be watched", id="model"),
        pytest.param(lambda f: isograd.watch(f / "none"), "does not exist", id="no run"),
    ],
)
def test_bad_calls(tmp_path: Path, call: Callable[[Path], object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        call(tmp_path / "a")


def test_labels_outside_of_the_classes(tmp_path: Path) -> None:
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def run() -> None:
        for step in range(3):
            optimizer.zero_grad()
            y = torch.tensor([0, 1, 2, 4 if step == 2 else 3])
            F.cross_entropy(model(torch.randn(4, 8)), y).backward()
            optimizer.step()

    with pytest.raises(IndexError), isograd.watch(model, tmp_path / "a"):
        run()
    report = isograd.watch(tmp_path / "a")
    (alert,) = [a for a in report.alerts if a.code == "input.labels"]
    assert (alert.first_step, alert.value, alert.limit) == (2, 4.0, 4.0)


def test_nothing_is_said_of_a_gan_with_two_optimizers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    make, judge = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8)), Net()
    optimizers = [torch.optim.Adam(m.parameters(), lr=1e-3) for m in (judge, make)]
    with isograd.watch(judge, tmp_path / "a", optimizer=optimizers):
        for x, _ in batches(30):
            fake = make(torch.randn(16, 4))
            optimizers[0].zero_grad()
            (judge(fake.detach()).mean() - judge(x.clamp(-3, 3)).mean()).tanh().backward()
            optimizers[0].step()
            optimizers[1].zero_grad()
            (-judge(fake).mean()).tanh().backward()
            optimizers[1].step()
    report = isograd.watch(tmp_path / "a")
    assert [a.code for a in report.alerts if a.severity.value == "alert"] == []
    assert "optimizer_1/loss" in {curve.name for curve in report.curves}


def test_a_step_that_has_passed_is_let_go(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    passed: list[weakref.ref[torch.Tensor]] = []
    with isograd.watch(model, tmp_path / "run", replay=True):
        for x, y in batches(12):
            optimizer.zero_grad()
            output = model(x)
            F.cross_entropy(output, y).backward()
            passed += [weakref.ref(x), weakref.ref(output)]
            optimizer.step()
        gc.collect()
        alive = [at // 2 for at, one in enumerate(passed) if one() is not None]
    # The last batch is this loop's, and the one before it was compared with it.
    assert min(alive) >= 10


def test_the_origin_in_a_step_with_a_closure(tmp_path: Path) -> None:
    model = Net(log_of_zero)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with isograd.watch(model, tmp_path / "run", optimizer=optimizer):
        for x, y in batches():

            def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)
    origin = isograd.watch(tmp_path / "run").first_nonfinite
    assert origin is not None
    assert (origin["step"], origin["module"], origin["operator"]) == (BAD_STEP, "inner", "log")


def test_gradients_that_somebody_keeps_are_not_used_again(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    kept = []
    with isograd.watch(model, tmp_path / "run") as watched:
        for x, y in batches():
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            kept += [parameter.grad for parameter in model.parameters()]
    assert "update.repeated" not in {alert.code for alert in watched.alerts}
