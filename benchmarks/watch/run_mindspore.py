"""Planted faults and healthy runs in MindSpore: eager, jit, GRAPH_MODE, and float16 with a scaler.

`python benchmarks/watch/run_mindspore.py [--sample] [--only origins|others|healthy]`; writes
benchmarks/watch/results/mindspore_{origins,others,healthy}.json, after each network.
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

from mindspore_faults import BAD_STEP, FAULTS, NONFINITE, Fault, Plant, Training
from mindspore_networks import TASKS, Task
from results import summary, write

import isograd

STEPS = 8
#: How a step is run.  cell: nn.TrainOneStepCell, eagerly; graph: the same in GRAPH_MODE; float16:
#: eagerly, amp level O2 with a DynamicLossScaler.
FORMS = ("eager", "jit", "cell", "graph", "float16")
#: A float16 that overflows where float32 would not is another fault than the planted one.
_NOT_IN_FLOAT16 = frozenset({"square overflow"})
#: A tanh gives 1 for that Inf, and its derivative 0: neither loss nor gradients ever show it.
_HARMLESS = frozenset({("autoencoder", "square overflow")})
_NOTICES = frozenset({"optimizer.decay", "input.repeated"})


def line_of(cell: Callable[[], nn.Cell]) -> str:
    """`file:line` of the line that is marked with `# here`."""
    lines, first = inspect.getsourcelines(cell)
    at = next(number for number, line in enumerate(lines) if "# here" in line)
    return f"{Path(inspect.getfile(cell)).name}:{first + at}"


def step_of(training: Training, optimizer: Any, form: str) -> Callable[..., Any]:
    loss_of = nn.CrossEntropyLoss()
    model, scaler = training.model, training.scaler
    if form in ("cell", "graph"):
        return nn.TrainOneStepCell(nn.WithLossCell(model, loss_of), optimizer).set_train()
    network = ms.amp.auto_mixed_precision(model, "O2") if form == "float16" else model
    change_loss = training.change_loss

    def forward(x: Any, y: Any, factor: Any) -> Any:
        output = network(x)
        loss = loss_of(output, y) * factor
        if change_loss is not None:
            loss = change_loss(loss, output)
        return loss if scaler is None else scaler.scale(loss)

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x: Any, y: Any, factor: Any) -> Any:
        loss, gradients = differentiate(x, y, factor)
        for _ in range(training.updates):
            optimizer(gradients)
        return loss

    def scaled_step(x: Any, y: Any, factor: Any) -> Any:
        loss, gradients = differentiate(x, y, factor)
        is_finite = ms.amp.all_finite(gradients)
        if is_finite:
            optimizer(scaler.unscale(gradients))
        scaler.adjust(is_finite)
        return loss

    if form == "jit":
        return ms.jit(step)
    return step if scaler is None else scaled_step


def train(
    training: Training,
    task: Task,
    folder: Path,
    form: str,
    steps: int,
    *,
    seed: int = 0,
    every: int = 1,
    at_step: Callable[[int], None] | None = None,
) -> Any:
    model = training.model
    if form == "graph":
        ms.set_context(mode=ms.GRAPH_MODE)
    if form == "float16":
        training.scaler = ms.amp.DynamicLossScaler(2.0**24, 2, 50)
    try:
        optimizer = nn.Adam(
            model.trainable_params(), training.rate, weight_decay=training.weight_decay
        )
        step = step_of(training, optimizer, form)
        model.set_train(training.trains)
        draw = np.random.default_rng(1000 + seed)
        watched = isograd.watch(model, folder, optimizer=optimizer, every=every)
        with contextlib.redirect_stderr(io.StringIO()), watched:
            for number in range(steps):
                x, y = task.batch(draw)
                if training.change is not None:
                    x, y = training.change(number, x, y)
                if at_step is not None:
                    at_step(number)
                given = [ms.Tensor(x), ms.Tensor(y)]
                if form not in ("cell", "graph"):
                    factor = training.factor(number) if training.factor is not None else 1.0
                    given.append(ms.Tensor(factor, ms.float32))
                step(*given)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    return isograd.watch(folder)


def nonfinite(task: Task, name: str, folder: Path, form: str) -> dict[str, Any]:
    spoil, operators, phase = NONFINITE[name]
    ms.set_seed(0)
    model = task.build()
    plant = Plant(getattr(model, task.middle), spoil())
    setattr(model, task.middle, plant)
    # A scaler first overflows by itself, and then needs steps at which nothing does.
    bad_step = BAD_STEP + 20 if form == "float16" else BAD_STEP

    def at_step(number: int) -> None:
        value = 1.0 if number == bad_step else 0.0
        ops.assign(plant.flag, ms.Tensor(value, ms.float32))

    report = train(
        Training(model, task.middle), task, folder, form, bad_step + STEPS - BAD_STEP,
        at_step=at_step,
    )  # fmt: skip
    origin = report.first_nonfinite or {}
    right = {
        "step": origin.get("step") == bad_step,
        "phase": origin.get("phase") == phase,
        "module": origin.get("module") == f"{task.middle}.spoil",
        "operator": origin.get("operator") in operators,
        "line": str(origin.get("where")).endswith(line_of(spoil)),
    }
    kept = ("step", "phase", "module", "operator", "where", "note")
    return {"network": task.name, "fault": name, "form": form, "right": all(right.values()),
            "parts": right, "found": {key: origin.get(key) for key in kept}}  # fmt: skip


def illness(fault: Fault, task: Task, folder: Path) -> dict[str, Any]:
    """Plant another fault; is the right rule among the alerts within five steps?"""
    ms.set_seed(0)
    training = Training(task.build(), task.middle)
    fault.plant(training)
    report = train(training, task, folder, "eager", fault.steps)
    found = {
        alert.code: alert.first_step
        for alert in report.alerts
        if alert.severity.value == "alert" or alert.code in _NOTICES
    }
    times = [step for code, step in found.items() if code in fault.codes]
    right = bool(times) and min(times) <= fault.begins + 5
    return {"network": task.name, "fault": fault.name, "right": right, "found": found,
            "late": bool(times) and not right}  # fmt: skip


def healthy(task: Task, seed: int, steps: int, folder: Path, form: str) -> dict[str, Any]:
    ms.set_seed(seed)
    started = time.perf_counter()
    training = Training(task.build(), task.middle)
    report = train(training, task, folder, form, steps, seed=seed, every=5)
    alerts = [a.code for a in report.alerts if a.severity.value == "alert"]
    losses = next(curve.values for curve in report.curves if curve.name == "loss")
    return {"network": task.name, "seed": seed, "form": form, "right": not alerts,
            "alerts": alerts, "notices": sorted({a.code for a in report.alerts} - set(alerts)),
            "loss": [float(losses[0]), float(losses[-1])],
            "steps": report.steps, "seconds": round(time.perf_counter() - started, 1)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="two networks, few faults")
    parser.add_argument("--only", choices=["origins", "others", "healthy"])
    options = parser.parse_args()
    # Operators run at once, because waiting threads spin: the same numbers in a fifth of the time.
    ms.runtime.launch_blocking()
    tasks = tuple(t for t in TASKS if t.name in ("mlp", "autoencoder")) if options.sample else TASKS
    folder = Path(tempfile.mkdtemp(prefix="isograd-watch-"))
    try:
        if options.only in (None, "origins"):
            origins(tasks, folder)
        if options.only in (None, "others"):
            others(tasks, folder)
        if options.only in (None, "healthy"):
            runs(tasks, folder, options.sample)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def origins(tasks: tuple[Task, ...], folder: Path) -> None:
    """Every third planted value eagerly, and one in each other form, on every network."""
    found = []
    names = list(NONFINITE)
    for number, task in enumerate(tasks):
        planned = [(n, "eager") for at, n in enumerate(names) if (at + number) % 3 == 0]
        planned += [
            (names[(number * 3 + at) % len(names)], form) for at, form in enumerate(FORMS[1:])
        ]
        for name, form in planned:
            if (task.name, name) in _HARMLESS or (form == "float16" and name in _NOT_IN_FLOAT16):
                continue
            key = f"{task.name}-{names.index(name)}-{form}"
            found.append(nonfinite(task, name, folder / key, form))
        write("mindspore_origins", {"rows": found})
    print(summary("origins", found))


def others(tasks: tuple[Task, ...], folder: Path) -> None:
    """All faults that are no single value."""
    found = []
    for fault in FAULTS:
        for task in tasks:
            if task.name in fault.tasks:
                key = f"{task.name}-{fault.name}".replace(" ", "-")
                found.append(illness(fault, task, folder / key))
        write("mindspore_others", {"rows": found})
    print(summary("others", found))


def runs(tasks: tuple[Task, ...], folder: Path, sample: bool) -> None:
    """Three seeds eagerly, and one in another form, of every network."""
    steps = 60 if sample else 300
    found = []
    for number, task in enumerate(tasks):
        other = ("jit", "float16", "graph")[number % 3]
        for seed, form in ((0, "eager"), (1, "eager"), (2, "eager"), (3, other)):
            found.append(healthy(task, seed, steps, folder / f"h-{task.name}-{seed}", form))
        write("mindspore_healthy", {"rows": found})
    print(summary("healthy", found))


if __name__ == "__main__":
    main()
