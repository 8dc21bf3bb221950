"""Measures what recording costs, against the plain step of the same process, and prints a table.

python benchmarks/record/run.py [--msprobe-python PATH] [--folder PATH] [--without-mindspore]

Each process takes its modes in turn, so that other load falls on all of them; every ratio is that
of the medians within one process.  Peak RSS comes from a process of its own per mode.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "src"


def run_worker(python: str, script: str, *arguments: object) -> dict[str, Any]:
    """Run a measuring process and return what it measured."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "GLOG_v": "3"}
    done = subprocess.run(
        [python, str(HERE / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"{script} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return result


def disk_rate_mb_per_s(folder: Path) -> float:
    """Rate at which 2 GB reach the disk, synced."""
    block = np.random.default_rng(0).bytes(1 << 25)
    path = folder / "rate"
    start_s = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(64):
            file.write(block)
        os.fsync(file.fileno())
    elapsed_s = time.perf_counter() - start_s
    path.unlink()
    return 64 * len(block) / 1e6 / elapsed_s


def rows_of(name: str, result: dict[str, Any], peaks: dict[str, float]) -> list[str]:
    """Table rows of one process."""
    plain_s = result["median_s"]["plain"]
    rows = []
    for mode, median_s in result["median_s"].items():
        peak = f"{peaks[mode]:.0f}" if mode in peaks else ""
        rows.append(
            f"| {name} | {mode.replace(':', ' ')} | {median_s:.3f} | {median_s / plain_s:.2f} "
            f"| {result['megabytes'][mode]:.2f} | {peak} |"
        )
    return rows


def growth(folder: Path) -> str:
    """Cost of statistics around step 5 and step 50, each against unrecorded steps between."""
    result = run_worker(
        sys.executable, "torch_step.py", "--modes", "alternating",
        "--rounds", 1, "--steps", 61, "--folder", folder,
    )  # fmt: skip
    seconds = np.array(result["all_s"]["alternating"]).reshape(-1, 2)  # unrecorded, recorded
    ratios = seconds[:, 1] / seconds[:, 0]
    early, late = float(np.median(ratios[:5])), float(np.median(ratios[-5:]))
    return f"Statistics cost {early:.2f} × around step 5 and {late:.2f} × around step 55."


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--msprobe-python", help="an interpreter that has torch and msprobe")
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder by default")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--without-mindspore", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        measure(arguments, Path(folder))


def measure(arguments: argparse.Namespace, folder: Path) -> None:
    """Run every process in turn."""
    target = folder / "recording"
    modes = ["plain", "isograd:statistics", "isograd:full"]
    common = ("--folder", target, "--rounds", arguments.rounds)
    rates = [disk_rate_mb_per_s(folder)]
    torch = run_worker(sys.executable, "torch_step.py", "--modes", *modes, *common)
    rates.append(disk_rate_mb_per_s(folder))
    short = ("--folder", target, "--rounds", 1)
    peaks = {
        mode: run_worker(sys.executable, "torch_step.py", "--modes", mode, *short)["peak_megabytes"]
        for mode in modes
    }
    rows = rows_of("torch", torch, peaks)
    notes = [growth(target)]
    rate = float(np.median(rates))
    full_mb, plain_s = torch["megabytes"]["isograd:full"], torch["median_s"]["plain"]
    notes.append(
        f"The disk takes {rate:.0f} MB/s, so {full_mb:.0f} MB take {full_mb / rate:.2f} s, "
        f"{full_mb / rate / plain_s:.1f} × the plain step."
    )
    versions = [f"torch {torch['version']} ({torch['threads']} threads)"]
    if arguments.msprobe_python:
        for task in ("statistics", "tensor"):  # its debugger keeps the first task of a process
            probe = run_worker(
                arguments.msprobe_python, "torch_step.py", "--modes", "plain", f"msprobe:{task}",
                "--folder", target, "--rounds", 2, "--steps", 4,
            )  # fmt: skip
            rows += rows_of("torch, msprobe's environment", probe, {})
    if not arguments.without_mindspore and importlib.util.find_spec("mindspore"):
        sea = run_worker(sys.executable, "mindspore_step.py", "--modes", *modes[:2], *common)
        rows += rows_of("MindSpore PyNative", sea, {})
        seconds = sea["processor_s"]
        ratio = seconds["isograd:statistics"] / seconds["plain"]
        notes.append(f"MindSpore's processor time: {ratio:.2f} × (the wall clock is noisier).")
        versions.append(f"mindspore {sea['version']}")
    print(
        f"ResNet-50, batch 8, 64 px, forward + backward + SGD; {machine()}; {', '.join(versions)}"
    )
    print("\n| framework | mode | median step, s | ratio | MB/step | peak RSS, MB |")
    print("|---|---|---|---|---|---|")
    print("\n".join(rows) + "\n")
    print("\n".join(notes))


def machine() -> str:
    """Processor, cores, load and Python."""
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    load = os.getloadavg()[0]
    return (
        f"{names[0]}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}"
    )


if __name__ == "__main__":
    main()
