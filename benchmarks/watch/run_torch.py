"""Planted faults and healthy runs in torch: `python benchmarks/watch/run_torch.py [--sample]`.

On a GPU with `--device cuda`, where a label outside ends the process, and is left out.  Writes
benchmarks/watch/results/torch_{faults,healthy}.json.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

from results import summary, write
from torch_faults import BAD_STEP, FAULTS, NONFINITE, Fault, Plant, Training, line_of
from torch_networks import TASKS, Task, planted

import isograd

STEPS = 14
NOTICES = frozenset({"optimizer.decay"})


def make(task: Task, seed: int, rate: float = 1e-3) -> Training:
    torch.manual_seed(seed)
    model = task.build()
    return Training(task, model, torch.optim.Adam(model.parameters(), lr=rate))


def train(training: Training, folder: Path, steps: int, seed: int, every: int = 1) -> Any:
    """Run a training under watch and read its report, also where its script raises."""
    draw = torch.Generator().manual_seed(1000 + seed)
    quiet = io.StringIO()
    watched = isograd.watch(training.model, folder, optimizer=training.optimizer, every=every)
    with contextlib.redirect_stderr(quiet), contextlib.suppress(IndexError, RuntimeError), watched:
        for step in range(steps):
            one_step(training, step, *training.task.batch(draw))
    return isograd.watch(folder)


def one_step(training: Training, step: int, x: torch.Tensor, y: torch.Tensor) -> None:
    if training.change_batch is not None:
        x, y = training.change_batch(step, x, y)
    output = training.model(x)
    loss = training.task.loss(output, y)
    if training.change_loss is not None:
        loss = training.change_loss(step, output, loss)
    if training.zero_grad:
        training.optimizer.zero_grad()
    scaler = training.scaler
    if scaler is not None:
        scaler.scale(loss).backward()
        scaler.step(training.optimizer)
        scaler.update()
    else:
        loss.backward()
        for _ in range(training.updates):
            training.optimizer.step()
    if training.at_step is not None:
        training.at_step(step)


def nonfinite(task: Task, name: str, folder: Path, compiled: bool) -> dict[str, Any]:
    """Plant an operator that makes NaN or Inf; compare the origin with the truth."""
    spoil, operators, phase = NONFINITE[name]
    training = make(task, 0)
    plant = planted(training.model, task.middle, lambda inner: Plant(inner, spoil))
    if compiled:
        plant.inner.forward = torch.compile(plant.inner.forward, backend="eager")

    def at_step(step: int) -> None:
        plant.is_bad = step + 1 == BAD_STEP

    training.at_step = at_step
    origin = train(training, folder, STEPS, 0).first_nonfinite or {}
    right = {
        "step": origin.get("step") == BAD_STEP,
        "phase": origin.get("phase") == phase,
        "module": origin.get("module") == task.middle,
        "operator": origin.get("operator") in operators,
        "line": str(origin.get("where")).endswith(line_of(spoil)),
    }
    return {
        "network": task.name, "fault": name, "compiled": compiled, "right": all(right.values()),
        "parts": right,
        "found": {k: origin.get(k) for k in ("phase", "module", "operator", "where")},
    }  # fmt: skip


def nan_in_batch(task: Task, folder: Path) -> dict[str, Any]:
    training = make(task, 0)

    def change(step: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        if step == BAD_STEP:
            x = x.clone()
            x.view(-1)[3] = float("nan")
        return x, y

    training.change_batch = change
    origin = train(training, folder, STEPS, 0).first_nonfinite or {}
    right = origin.get("step") == BAD_STEP and origin.get("phase") == "data"
    return {"network": task.name, "fault": "NaN in a batch", "compiled": False, "right": right,
            "found": {k: origin.get(k) for k in ("step", "phase", "operator")}}  # fmt: skip


def illness(fault: Fault, task: Task, folder: Path) -> dict[str, Any]:
    """Plant another fault; is the right rule among the alerts within five steps?"""
    training = make(task, 0, 1e-3 if "rate" not in fault.name else 3e-3)
    fault.plant(training)
    steps = 30 if fault.begins > 10 or "scale" in fault.name else STEPS
    report = train(training, folder, steps, 0)
    found = {
        alert.code: alert.first_step
        for alert in report.alerts
        if alert.severity.value == "alert" or alert.code in NOTICES
    }
    times = [step for code, step in found.items() if code in fault.code]
    # A rule that asks for several steps in a row cannot speak before them.
    right = bool(times) and min(times) <= fault.begins + 5
    return {"network": task.name, "fault": fault.name, "right": right, "found": found,
            "late": bool(times) and not right}  # fmt: skip


def healthy(task: Task, seed: int, steps: int, folder: Path, scaled: bool) -> dict[str, Any]:
    training = make(task, seed)
    if scaled:
        training.scaler = torch.amp.GradScaler(
            training.device.type, init_scale=2.0**120, growth_interval=50
        )
    started = time.perf_counter()
    report = train(training, folder, steps, seed, every=5)
    alerts = [a.code for a in report.alerts if a.severity.value == "alert"]
    losses = next(curve.values for curve in report.curves if curve.name == "loss")
    return {"network": task.name, "seed": seed, "scaled": scaled, "right": not alerts,
            "alerts": alerts, "notices": sorted({a.code for a in report.alerts} - set(alerts)),
            "loss": [float(losses[0]), float(losses[-1])], "steps": report.steps,
            "seconds": round(time.perf_counter() - started, 1)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="two networks, few faults")
    parser.add_argument("--only", choices=["faults", "healthy"])
    parser.add_argument("--device", default="cpu", help="cuda: all but labels outside, which end")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tasks = tuple(task.on(options.device) for task in (TASKS[:2] if options.sample else TASKS))
    folder = Path(tempfile.mkdtemp(prefix="isograd-watch-"))
    try:
        if options.only != "healthy":
            faults(tasks, folder, options.sample, options.device)
        if options.only != "faults":
            runs(tasks, folder, options.sample, options.device)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def named(name: str, device: str) -> str:
    return name if device == "cpu" else f"{name}_{device}"


def faults(tasks: tuple[Task, ...], folder: Path, sample: bool, device: str) -> None:
    origins: list[dict[str, Any]] = []
    for number, task in enumerate(tasks):
        for place, name in enumerate(NONFINITE):
            if (place + number) % 3 == 0 or sample:
                origins.append(nonfinite(task, name, folder / f"{task.name}-{place}", False))
        name = list(NONFINITE)[number % len(NONFINITE)]
        origins.append(nonfinite(task, name, folder / f"{task.name}-c", True))
        if task.batch(torch.Generator())[0].is_floating_point():
            origins.append(nan_in_batch(task, folder / f"{task.name}-n"))
    others = [
        illness(fault, task, folder / f"{task.name}-{fault.name}".replace(" ", "-"))
        for fault in FAULTS
        for task in tasks
        if task.name in fault.tasks and not (device != "cpu" and fault.ends_gpu)
    ]
    write(named("torch_faults", device), {"origins": origins, "others": others})
    print(summary("origins", origins))
    print(summary("others", others))


def runs(tasks: tuple[Task, ...], folder: Path, sample: bool, device: str) -> None:
    found = [
        healthy(
            task, seed, 60 if sample else 300, folder / f"h-{task.name}-{seed}-{scaled}", scaled
        )
        for task in tasks
        for seed, scaled in ((0, False), (1, False), (2, False), (3, True))
    ]
    write(named("torch_healthy", device), {"runs": found})
    print(summary("healthy", found))
    print(json.dumps([one for one in found if not one["right"]], indent=1))


if __name__ == "__main__":
    main()
