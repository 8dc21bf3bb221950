"""Planted faults and healthy runs in MindSpore, eager and compiled.

`python benchmarks/watch/run_mindspore.py [--sample] [--only faults|healthy]`; writes
benchmarks/watch/results/mindspore_{faults,healthy}.json.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

sys.path.insert(0, str(Path(__file__).parent))

from mindspore_networks import TASKS, Task
from results import summary, write

import isograd

BAD_STEP, STEPS = 4, 8


class LogOfZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = ops.abs(h) * (1 - bad) + 0.1 * (1 - bad)
        return -ops.log(h)  # here


class ZeroByZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = (ops.abs(h) + 0.1) * (1 - bad)
        return h / h.sum()  # here


class OneByZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = (ops.abs(h) + 0.1) * (1 - bad)
        return ops.reciprocal(h)  # here


class ExpOverflows(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = h * (1 - bad) + 1e3 * bad
        return ops.exp(h)  # here


class RsqrtOfZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = (h * h + 0.1) * (1 - bad)
        return ops.rsqrt(h)  # here


class RootAtZero(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        s = (h * h + 0.1) * (1 - bad)
        return h + ops.sqrt(s)  # here


class SquareOverflows(nn.Cell):
    def construct(self, h: Any, bad: Any) -> Any:
        h = h + 1e25 * bad
        return ops.square(h)  # here


NONFINITE: dict[str, tuple[Callable[[], nn.Cell], frozenset[str], str]] = {
    "log(0)": (LogOfZero, frozenset({"Log"}), "forward"),
    "0/0": (ZeroByZero, frozenset({"Div", "RealDiv"}), "forward"),
    "1/0": (OneByZero, frozenset({"Reciprocal"}), "forward"),
    "exp overflow": (ExpOverflows, frozenset({"Exp"}), "forward"),
    "rsqrt(0)": (RsqrtOfZero, frozenset({"Rsqrt"}), "forward"),
    "sqrt'(0)": (RootAtZero, frozenset({"Sqrt (backward)"}), "backward"),
    "square overflow": (SquareOverflows, frozenset({"Square"}), "forward"),
}


class Plant(nn.Cell):
    """A cell whose output is spoilt while its flag is 1."""

    def __init__(self, inner: nn.Cell, spoil: nn.Cell) -> None:
        super().__init__()
        self.inner, self.spoil = inner, spoil
        flag = ms.Tensor(0.0, ms.float32)
        self.flag = ms.Parameter(flag, name="isograd_flag", requires_grad=False)

    def construct(self, x: Any) -> Any:
        return self.spoil(self.inner(x), self.flag)


def line_of(cell: Callable[[], nn.Cell]) -> str:
    """`file:line` of the line that is marked with `# here`."""
    lines, first = inspect.getsourcelines(cell)
    at = next(number for number, line in enumerate(lines) if "# here" in line)
    return f"{Path(__file__).name}:{first + at}"


def step_of(model: nn.Cell, optimizer: Any, form: str) -> Callable[..., Any]:
    loss_of = nn.CrossEntropyLoss()
    if form == "cell":
        return nn.TrainOneStepCell(nn.WithLossCell(model, loss_of), optimizer)

    def forward(x: Any, y: Any) -> Any:
        return loss_of(model(x), y)

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = differentiate(x, y)
        optimizer(gradients)
        return loss

    return ms.jit(step) if form == "jit" else step


def train(
    model: nn.Cell,
    task: Task,
    folder: Path,
    form: str,
    steps: int,
    *,
    rate: float = 1e-3,
    seed: int = 0,
    every: int = 1,
    change: Callable[[int, Any, Any], Any] | None = None,
    at_step: Callable[[int], None] | None = None,
    updates: int = 1,
    trains: bool = True,
) -> Any:
    if trains:
        model.set_train()
    optimizer = nn.Adam(model.trainable_params(), rate)
    step = step_of(model, optimizer, form)
    draw = np.random.default_rng(1000 + seed)
    watched = isograd.watch(model, folder, optimizer=optimizer, every=every)
    with contextlib.redirect_stderr(io.StringIO()), watched:
        for number in range(steps):
            x, y = task.batch(draw)
            if change is not None:
                x, y = change(number, x, y)
            if at_step is not None:
                at_step(number)
            for _ in range(updates):
                step(ms.Tensor(x), ms.Tensor(y))
    return isograd.watch(folder)


def nonfinite(task: Task, name: str, folder: Path, form: str) -> dict[str, Any]:
    spoil, operators, phase = NONFINITE[name]
    ms.set_seed(0)
    model = task.build()
    plant = Plant(getattr(model, task.middle), spoil())
    setattr(model, task.middle, plant)

    def at_step(number: int) -> None:
        value = 1.0 if number == BAD_STEP else 0.0
        ops.assign(plant.flag, ms.Tensor(value, ms.float32))

    report = train(model, task, folder, form, STEPS, at_step=at_step)
    origin = report.first_nonfinite or {}
    right = {
        "step": origin.get("step") == BAD_STEP,
        "phase": origin.get("phase") == phase,
        "module": origin.get("module") == f"{task.middle}.spoil",
        "operator": origin.get("operator") in operators,
        "line": str(origin.get("where")).endswith(line_of(spoil)),
    }
    kept = ("step", "phase", "module", "operator", "where", "note")
    return {"network": task.name, "fault": name, "form": form, "right": all(right.values()),
            "parts": right, "found": {key: origin.get(key) for key in kept}}  # fmt: skip


def _nan(step: int, x: Any, y: Any) -> Any:
    if step == BAD_STEP and x.dtype == np.float32:
        x = x.copy()
        x.reshape(-1)[3] = np.nan
    return x, y


def _constant(step: int, x: Any, y: Any) -> Any:
    return np.zeros_like(x), y


def _dead(model: nn.Cell) -> None:
    cell = next(c for c in model.cells() if isinstance(c, nn.Dense))
    cell.bias.set_data(ms.Tensor(np.full(cell.bias.shape, -100.0, np.float32)))


ILLNESS: tuple[tuple[str, frozenset[str], tuple[str, ...], dict[str, Any]], ...] = (
    ("rate × 100", frozenset({"weight.update_ratio", "loss.diverging", "loss.spike"}),
     ("mlp", "cnn", "transformer", "mixer"), {"rate": 0.3}),
    ("NaN in a batch", frozenset({"input.nonfinite"}), ("mlp", "cnn", "rnn"), {"change": _nan}),
    ("constant inputs", frozenset({"input.constant"}), ("mlp", "cnn", "unet"),
     {"change": _constant}),
    ("norm never trains", frozenset({"statistics.stale"}), ("resnet",), {"trains": False}),
    ("dead by bias", frozenset({"activation.dead"}), ("mlp",), {"dead": True}),
)  # fmt: skip


def illness(
    name: str, codes: frozenset[str], task: Task, options: dict[str, Any], folder: Path
) -> dict[str, Any]:
    ms.set_seed(0)
    model = task.build()
    given = dict(options)
    if given.pop("dead", False):
        _dead(model)
    report = train(model, task, folder, "eager", 12, **given)
    found = {a.code: a.first_step for a in report.alerts if a.severity.value == "alert"}
    begins = BAD_STEP if "NaN" in name else 0
    times = [step for code, step in found.items() if code in codes]
    right = bool(times) and min(times) <= begins + 5
    return {"network": task.name, "fault": name, "right": right, "found": found}


def healthy(task: Task, seed: int, steps: int, folder: Path, form: str) -> dict[str, Any]:
    ms.set_seed(seed)
    started = time.perf_counter()
    report = train(task.build(), task, folder, form, steps, seed=seed, every=5)
    alerts = [a.code for a in report.alerts if a.severity.value == "alert"]
    losses = next(curve.values for curve in report.curves if curve.name == "loss")
    return {"network": task.name, "seed": seed, "form": form, "right": not alerts,
            "alerts": alerts, "loss": [float(losses[0]), float(losses[-1])],
            "steps": report.steps, "seconds": round(time.perf_counter() - started, 1)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="two networks, few faults")
    parser.add_argument("--only", choices=["faults", "healthy"])
    options = parser.parse_args()
    tasks = tuple(t for t in TASKS if t.name in ("mlp", "autoencoder")) if options.sample else TASKS
    folder = Path(tempfile.mkdtemp(prefix="isograd-watch-"))
    try:
        if options.only != "healthy":
            faults(tasks, folder)
        if options.only != "faults":
            runs(tasks, folder, options.sample)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def faults(tasks: tuple[Task, ...], folder: Path) -> None:
    origins = []
    for number, task in enumerate(tasks):
        for place, name in enumerate(NONFINITE):
            if (place + number) % 2 == 0:
                origins.append(nonfinite(task, name, folder / f"{task.name}-{place}", "eager"))
        name = list(NONFINITE)[(number * 3) % len(NONFINITE)]
        form = "cell" if number % 3 == 0 else "jit"
        origins.append(nonfinite(task, name, folder / f"{task.name}-{form}", form))
        print(origins[-1], flush=True)
    others = [
        illness(name, codes, task, given, folder / f"{task.name}-{name}".replace(" ", "-"))
        for name, codes, names, given in ILLNESS
        for task in tasks
        if task.name in names
    ]
    write("mindspore_faults", {"origins": origins, "others": others})
    print(summary("origins", origins))
    print(summary("others", others))


def runs(tasks: tuple[Task, ...], folder: Path, sample: bool) -> None:
    steps = 60 if sample else 300
    found = []
    for number, task in enumerate(tasks):
        found.append(healthy(task, number % 3, steps, folder / f"h-{task.name}", "eager"))
        if number % 3 == 0:
            found.append(healthy(task, 1, steps, folder / f"j-{task.name}", "jit"))
    write("mindspore_healthy", {"runs": found})
    print(summary("healthy", found))


if __name__ == "__main__":
    main()
