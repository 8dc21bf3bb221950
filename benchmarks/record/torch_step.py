"""One process that times plain, recorded and fully recorded training steps of torch in turn."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "resnet50"
sys.path.insert(0, str(EXAMPLE))


def make_step() -> tuple[torch.nn.Module, Callable[[], torch.Tensor]]:
    """ResNet-50 with batch 8 of 64 px: forward, backward and SGD."""
    import net_torch

    torch.manual_seed(0)
    model = net_torch.build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(8, 3, 64, 64), torch.randint(0, 1000, (8,))

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = net_torch.loss(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, step


def time_plain(step: Callable[[], torch.Tensor], count: int) -> list[float]:
    """Seconds of each step."""
    elapsed_s = []
    for _ in range(count):
        start_s = time.perf_counter()
        step()
        elapsed_s.append(time.perf_counter() - start_s)
    return elapsed_s


def time_isograd(
    model: torch.nn.Module, step: Callable[[], torch.Tensor], count: int, folder: Path, tensors: str
) -> tuple[list[float], float]:
    """Seconds of each step, writing what is still queued at the end included, and MB per step.

    tensors: as for `isograd.record`, or nothing for statistics of every second step.
    """
    import isograd

    shutil.rmtree(folder, ignore_errors=True)
    elapsed_s = []
    steps = None if tensors else slice(0, None, 2)
    with isograd.record(model, folder, tensors=tensors or "statistics", steps=steps) as recorder:
        for _ in range(count):
            start_s = time.perf_counter()
            recorder.step(step())
            elapsed_s.append(time.perf_counter() - start_s)
        last_s = time.perf_counter()
    drain_s = (time.perf_counter() - last_s) / count
    size_bytes = sum(path.stat().st_size for path in max((folder / "steps").iterdir()).iterdir())
    shutil.rmtree(folder)
    return [seconds + drain_s for seconds in elapsed_s], size_bytes / 1e6


def time_msprobe(
    model: torch.nn.Module, step: Callable[[], torch.Tensor], count: int, folder: Path, task: str
) -> tuple[list[float], float]:
    """Seconds of each step and MB per step; its settings for whole modules, level L0."""
    from msprobe.pytorch import PrecisionDebugger

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = folder / "config.json"
    part = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    settings = {"task": task, "dump_path": str(folder / "dump"), "rank": [], "step": [],
                "level": "L0", task: part}  # fmt: skip
    config.write_text(json.dumps(settings))
    debugger = PrecisionDebugger(config_path=str(config))
    elapsed_s = []
    for _ in range(count):
        start_s = time.perf_counter()
        debugger.start(model)
        step()
        debugger.stop()
        debugger.step()
        elapsed_s.append(time.perf_counter() - start_s)
    size_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    shutil.rmtree(folder)
    return elapsed_s, size_bytes / 1e6 / count


def main() -> None:
    """Print one JSON object: seconds and MB per step of each mode, and the peak RSS."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--modes", nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    model, step = make_step()
    time_plain(step, 3)
    elapsed_s: dict[str, list[float]] = {mode: [] for mode in arguments.modes}
    megabytes = dict.fromkeys(arguments.modes, 0.0)
    for _ in range(arguments.rounds):
        for mode in arguments.modes:
            if mode == "plain":
                elapsed_s[mode] += time_plain(step, arguments.steps)
                continue
            tool, _, what = mode.partition(":")
            run = time_msprobe if tool == "msprobe" else time_isograd
            seconds, megabytes[mode] = run(model, step, arguments.steps, arguments.folder, what)
            elapsed_s[mode] += seconds[1:]  # the first step also makes folders
    result = {
        "median_s": {mode: statistics.median(seconds) for mode, seconds in elapsed_s.items()},
        "all_s": elapsed_s,
        "megabytes": megabytes,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
