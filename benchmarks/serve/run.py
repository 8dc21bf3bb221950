"""The first page over many runs, and a chart of long curves: seconds and memory of the server.

    python benchmarks/serve/run.py [--sample]

1,000 runs (--sample: 100) of 20 scalars and 2,000 steps, and 20 runs of 100,000 steps.  Prints a
table in Markdown.  The times are those of the answers over loopback, without the browser's drawing.
"""

from __future__ import annotations

import math
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from isograd.runs.information import RunState, describe_run
from isograd.runs.writer import RunWriter


def write(folder: Path, steps: int, scalars: int) -> None:
    """One run with noisy curves that fall."""
    writer = RunWriter(folder, describe_run("benchmark", "watch", "torch", "cpu"))
    for step in range(steps):
        fall = math.exp(-step / steps)
        values = {f"scalar{number}": fall + random.random() / 10 for number in range(scalars)}
        writer.scalars(step, values)
    writer.close(RunState.COMPLETE)


def make(folder: Path, runs: int) -> None:
    """The runs: two are written, the others are copies."""
    for name, count, steps, scalars in (("run", runs, 2_000, 20), ("long", 20, 100_000, 1)):
        write(folder / f"{name}0", steps, scalars)
        for number in range(1, count):
            shutil.copytree(folder / f"{name}0", folder / f"{name}{number}")


@contextmanager
def served(folder: Path) -> Iterator[tuple[httpx.Client, str, psutil.Process]]:
    """A client of a server process, the address with the token, and the process."""
    command = [sys.executable, "-m", "isograd", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            with httpx.Client(follow_redirects=True, timeout=60) as client:
                yield client, address, psutil.Process(server.pid)
        finally:
            server.terminate()


def main() -> None:
    """Make the runs, measure, print."""
    runs = 100 if "--sample" in sys.argv else 1_000
    folder = Path(tempfile.mkdtemp(prefix="isograd-serve-"))
    try:
        make(folder, runs)
        with served(folder) as (client, address, process):
            base = address.split("/?")[0]
            begun = time.monotonic()
            client.get(address).raise_for_status()
            first = time.monotonic() - begun
            time.sleep(3)
            begun = time.monotonic()
            client.get(f"{base}/").raise_for_status()
            again = time.monotonic() - begun
            chosen = {"run": [f"long{number}" for number in range(20)], "name": "scalar0"}
            begun = time.monotonic()
            client.get(f"{base}/points", params=chosen).raise_for_status()
            curves = time.monotonic() - begun
            memory = process.memory_info().rss / 1e6
    finally:
        shutil.rmtree(folder)
    print("| what | measured |\n|---|---|")
    print(f"| first page of {runs + 20:,} runs, first time | {first:.2f} s |")
    print(f"| the same, later | {again:.2f} s |")
    print(f"| 20 curves of 100,000 steps | {curves:.2f} s |")
    print(f"| memory of the server | {memory:.0f} MB |")


if __name__ == "__main__":
    main()
