"""What watching costs: `python benchmarks/watch/cost.py [--sample] [--only PART]`.

Forms are interleaved in one process: blocks of steps in turn, so that all see the same machine.
The time is the process's CPU time, or on a GPU (`--device cuda`, which runs torch's part alone) the
wall's; of each form the median over its blocks is quoted as a ratio to the plain step.  Writes
benchmarks/watch/results/cost.json.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from results import write

import isograd

Step = Callable[[], None]
Clock = Callable[[], float]
Form = Callable[[], contextlib.AbstractContextManager[Any]]


def interleaved(
    step: Step, forms: dict[str, Form], blocks: int, steps: int, clock: Clock = time.process_time
) -> dict[str, Any]:
    """Seconds per step of each form by a clock: the median, and its ratio to that of `plain`.

    The ratio of the least times as well: other work on the machine only adds to a time.
    """
    found: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(blocks):
        for name, form in forms.items():
            with contextlib.redirect_stderr(io.StringIO()), form():
                step()
                for _ in range(steps):
                    started = clock()
                    step()
                    found[name].append(clock() - started)
    plain, least = statistics.median(found["plain"]), min(found["plain"])
    return {
        name: {"seconds": round(statistics.median(times), 4),
               "ratio": round(statistics.median(times) / plain, 3),
               "ratio_of_least": round(min(times) / least, 3)}
        for name, times in found.items()
    }  # fmt: skip


def folders(root: Path) -> Iterator[Path]:
    number = 0
    while True:
        number += 1
        yield root / f"run-{number}"


def torch_cost(
    root: Path,
    blocks: int,
    steps: int,
    size: int,
    msprobe: Path | None = None,
    device: str = "cpu",
) -> dict[str, Any]:
    import torch

    sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "resnet50"))
    from net_torch import build

    torch.set_num_threads(1)
    torch.manual_seed(0)
    batch, clock = (8, time.process_time) if device == "cpu" else (64, _settled)
    model = build().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    draw = torch.Generator(device).manual_seed(0)
    fresh = folders(root)
    trained = [(model, optimizer)]

    def step() -> None:
        model, optimizer = trained[-1]
        x = torch.randn(batch, 3, size, size, generator=draw, device=device)
        y = torch.randint(0, 100, (batch,), generator=draw, device=device)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    def watch(first: int, every: int) -> Form:
        return lambda: isograd.watch(
            model, next(fresh), optimizer=optimizer, first=first, every=every
        )

    forms: dict[str, Form] = {
        "plain": contextlib.nullcontext,
        "watch": watch(0, 0),
        "watch, modules every step": watch(0, 1),
        "detect_anomaly": lambda: torch.autograd.detect_anomaly(check_nan=True),
    }
    if device == "cpu":  # what it writes of such a batch is gigabytes a step
        forms["isograd.record"] = lambda: isograd.record(model, next(fresh), optimizer=optimizer)
    if msprobe is not None:
        other = build().to(device)
        twin = other, torch.optim.SGD(other.parameters(), lr=0.01, momentum=0.9)
        monitor_by_msprobe(*twin, msprobe, root)

        @contextlib.contextmanager
        def monitored() -> Iterator[None]:
            trained.append(twin)
            yield
            trained.pop()

        forms["msprobe's monitor"] = monitored
    found = interleaved(step, forms, blocks, steps, clock)
    found["steps"] = blocks * steps
    inputs = torch.zeros(batch, 3, size, size, device=device)
    found["replay"] = replay_cost(model, root / "replay", inputs, found["plain"]["seconds"], clock)
    return found


def _settled() -> float:
    """The time on the wall once the GPU has done all that it was given."""
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def monitor_by_msprobe(model: Any, optimizer: Any, installed: Path, root: Path) -> None:
    """Let msprobe's monitor write statistics of modules, gradients and parameters every step.

    installed: a folder with mindstudio-probe and what it needs (`pip install --target`), which is
    searched last. Its hooks cannot be taken off, so that the network must be one of its own.
    """
    sys.path.append(str(installed))
    os.environ["MONITOR_OUTPUT_DIR"] = str(root / "msprobe")
    from msprobe.pytorch import TrainerMon  # type: ignore[import-not-found,unused-ignore]

    settings = {
        "targets": {}, "all_xy": True, "xy_distribution": True, "wg_distribution": True,
        "param_distribution": True, "mv_distribution": False, "format": "csv",
        "ops": ["min", "max", "mean", "norm", "nans"],
    }  # fmt: skip
    path = root / "monitor.json"
    path.write_text(json.dumps(settings))
    with contextlib.redirect_stdout(io.StringIO()):
        monitor = TrainerMon(str(path), params_have_main_grad=False)
        monitor.set_monitor(model, optimizer=optimizer, grad_acc_steps=1)


def replay_cost(
    model: Any, folder: Path, inputs: Any, plain_s: float, clock: Clock
) -> dict[str, Any]:
    """A step in whose third stage a NaN arises, from the optimizer's call on: replay and update.

    inputs: shape (batch, 3, size, size), a tensor whose shape and device the step's inputs have.
    """
    import torch

    class Spoilt(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module) -> None:
            super().__init__()
            self.inner, self.is_bad = inner, False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.inner(x)
            return y + (y * 0).log() * 0 if self.is_bad else y

    spoilt = model.layer3 = Spoilt(model.layer3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with (
        contextlib.redirect_stderr(io.StringIO()),
        isograd.watch(model, folder, optimizer=optimizer, first=0, every=0) as watched,
    ):
        for bad in (False, True):
            spoilt.is_bad = bad
            x = torch.randn_like(inputs)
            y = torch.randint(0, 100, inputs.shape[:1], device=inputs.device)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            started = clock()
            optimizer.step()
            spent = clock() - started
    assert any(alert.code == "loss.nonfinite" for alert in watched.alerts)
    origin = isograd.watch(folder).first_nonfinite or {}
    return {"seconds": round(spent, 3), "ratio": round(spent / plain_s, 2),
            "operator": origin.get("operator"), "module": origin.get("module")}  # fmt: skip


def mindspore_cost(root: Path, blocks: int, steps: int, size: int) -> dict[str, Any]:
    import mindspore as ms
    from mindspore import nn
    from mindspore_faults import Training
    from run_mindspore import step_of

    class Wide(nn.Cell):
        """Convolutions and dense layers of some size, so that a step is no trifle."""

        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.SequentialCell(
                [nn.Conv2d(3 if n == 0 else 48, 48, 3, pad_mode="same") for n in range(8)]
            )
            self.head = nn.Dense(48, 10)

        def construct(self, x: Any) -> Any:
            return self.head(self.parts(x).mean((2, 3)))

    ms.set_seed(0)
    ms.runtime.launch_blocking()  # otherwise MindSpore's threads spin, and their time is no work
    draw, fresh = np.random.default_rng(0), folders(root)
    found: dict[str, Any] = {}
    for form in ("eager", "jit"):
        model = Wide()
        optimizer = nn.Adam(model.trainable_params(), 1e-4)
        run = step_of(Training(model, "parts"), optimizer, form)

        def step(run: Any = run) -> None:
            x = draw.standard_normal((8, 3, size, size)).astype(np.float32)
            y = ms.Tensor(draw.integers(0, 10, 8).astype(np.int32))
            run(ms.Tensor(x), y, ms.Tensor(1.0)).asnumpy()

        def watch(first: int, every: int, model: Any = model, optimizer: Any = optimizer) -> Form:
            return lambda: isograd.watch(
                model, next(fresh), optimizer=optimizer, first=first, every=every
            )

        forms: dict[str, Form] = {
            "plain": contextlib.nullcontext,
            "watch": watch(0, 0),
            "watch, modules every step": watch(0, 1),
        }
        found[form] = interleaved(step, forms, blocks, steps)
    return found


def memory_growth(root: Path, steps: int) -> dict[str, Any]:
    """Resident memory over a long watched training of a small network."""
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters())
    sizes = {}
    with contextlib.redirect_stderr(io.StringIO()), isograd.watch(model, root / "long", every=20):
        for step in range(steps):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(
                model(torch.randn(16, 16)), torch.randint(0, 4, (16,))
            )
            loss.backward()
            optimizer.step()
            if step + 1 in (steps // 4, steps):
                sizes[step + 1] = _resident_mb()
    return {"resident_mb": sizes}


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 1e6, 1)


def opening(root: Path, steps: int, modules: int) -> dict[str, Any]:
    """A run of many steps and modules: writing it, and opening and reading it in a new process."""
    import subprocess

    from isograd.runs.information import RunState, describe_run
    from isograd.runs.writer import RunWriter

    writer = RunWriter(root / "large", describe_run("large", "watch"))
    draw = np.random.default_rng(0)
    values = draw.random(modules)
    names = [f"output/layer{n}.conv/abs_mean" for n in range(modules)]
    started = time.perf_counter()
    for step in range(steps):
        writer.scalars(step, {"loss": 1 / (step + 1), "learning_rate": 1e-3})
        writer.statistics(
            step, dict(zip(names, (values * (1 + step / steps)).tolist(), strict=True))
        )
    writer.close(RunState.COMPLETE)
    written = time.perf_counter() - started
    code = (
        "import sys, time, resource; started = time.process_time(); import isograd; "
        "report = isograd.watch(sys.argv[1]); report.to_json(); "
        "from isograd.watch.document import document; document(report); "
        "print(time.process_time() - started, "
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root / "large")],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, megabytes = (float(part) for part in done.stdout.split())
    return {"steps": steps, "modules": modules, "write_s": round(written, 1),
            "open_cpu_s": round(seconds, 2), "peak_mb": round(megabytes)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--only", choices=["torch", "replay", "mindspore", "folder"])
    parser.add_argument("--blocks", type=int, default=6, help="of each form, 4 steps (default 6)")
    parser.add_argument("--edge", type=int, default=48, help="of MindSpore's pictures (default 48)")
    parser.add_argument("--msprobe", type=Path, help="a folder with mindstudio-probe installed")
    parser.add_argument("--device", default="cpu", help="of torch's network: cuda, 224 pixels")
    options = parser.parse_args()
    # With AVX-512 convolutions of MindSpore 2.10 are the slow reference implementation.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    root = Path(tempfile.mkdtemp(prefix="isograd-cost-"))
    blocks, steps = (1, 3) if options.sample else (options.blocks, 4)
    is_gpu = options.device != "cpu"
    only, size = ("torch", 224) if is_gpu else (options.only, 64)
    found: dict[str, Any] = {}
    try:
        if only in (None, "folder"):
            large = (2000, 50) if options.sample else (100_000, 200)
            found["folder"] = opening(root, *large)
            found["memory"] = memory_growth(root, 200 if options.sample else 2000)
        if only in (None, "torch"):
            found["torch"] = torch_cost(root, blocks, steps, size, options.msprobe, options.device)
        if only == "replay":
            found["torch"] = torch_cost(root, 1, 1, 64)
        if only in (None, "mindspore"):
            found["mindspore"] = mindspore_cost(
                root, blocks, steps, 16 if options.sample else options.edge
            )
        for key, value in found.items():
            print(key, value)
        part = options.device if is_gpu else only
        write(f"cost_{part}" if part else "cost", found)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
