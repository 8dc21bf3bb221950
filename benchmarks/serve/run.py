"""The first page over many runs, charts of long curves, and TensorBoard on the same event files.

    python benchmarks/serve/run.py [--sample] [--tensorboard PROGRAM]

1,000 runs (--sample: 100) of 20 scalars and 2,000 steps, 20 runs of 100,000 steps, and 20 event
files (--sample: 4) of 20 scalars and 5,000 steps.  Prints tables in Markdown.  Times are those of
answers over loopback, and of Chromium until a chart is drawn where it is installed.  --tensorboard:
the program of an environment of its own; it gets the same event files in the same run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from isograd.runs.information import RunState, describe_run
from isograd.runs.writer import RunWriter

_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
_LIMIT_S = 300.0


def write(folder: Path, steps: int, scalars: int) -> None:
    """One run with noisy curves that fall."""
    writer = RunWriter(folder, describe_run("benchmark", "watch", "torch", "cpu"))
    for step in range(steps):
        fall = math.exp(-step / steps)
        values = {f"scalar{number}": fall + random.random() / 10 for number in range(scalars)}
        writer.scalars(step, values)
    writer.close(RunState.COMPLETE)


def make_runs(folder: Path, runs: int) -> None:
    """The runs: two are written, the others are copies."""
    for name, count, steps, scalars in (("run", runs, 2_000, 20), ("long", 20, 100_000, 1)):
        write(folder / f"{name}0", steps, scalars)
        for number in range(1, count):
            shutil.copytree(folder / f"{name}0", folder / f"{name}{number}")


def make_events(folder: Path, files: int, steps: int = 5_000) -> None:
    """Event files: one is written, the others are copies."""
    from tensorboardX import SummaryWriter

    with SummaryWriter(str(folder / "e0")) as writer:
        for step in range(steps):
            for number in range(20):
                writer.add_scalar(f"scalar{number}", math.exp(-step / steps) + number, step)
    for number in range(1, files):
        shutil.copytree(folder / "e0", folder / f"e{number}")


@contextmanager
def process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A server process that is ended afterwards."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            yield server
        finally:
            server.terminate()


@contextmanager
def served(folder: Path) -> Iterator[tuple[httpx.Client, str, psutil.Process]]:
    """A client of a server process, the address with the token, and the process."""
    command = [sys.executable, "-m", "isograd", "serve", str(folder), "--port", "0"]
    with process(command) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with httpx.Client(follow_redirects=True, timeout=60) as client:
            yield client, address, psutil.Process(server.pid)


def timed(action: Callable[[], object]) -> float:
    """Seconds of a call."""
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def drawn_in_browser(address: str, page: str) -> float | None:
    """Seconds from opening a page to its first chart; None without Chromium."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        tab = browser.new_page()
        tab.goto(address)

        def draw() -> None:
            tab.goto(page)
            tab.wait_for_selector("#charts canvas", timeout=60_000)

        draw()
        found = timed(draw)
        browser.close()
    return found


def memory_mb(server: psutil.Process) -> float:
    """Resident memory of a process and all that it started."""
    every = [server, *server.children(recursive=True)]
    return float(sum(one.memory_info().rss for one in every)) / 1e6


def measure_runs(folder: Path, runs: int) -> None:
    """Print what the pages of run folders take."""
    make_runs(folder, runs)
    with served(folder) as (client, address, server):
        base = address.split("/?")[0]
        first = timed(lambda: client.get(address).raise_for_status())
        time.sleep(3)
        again = timed(lambda: client.get(f"{base}/").raise_for_status())
        names = [("run", f"long{number}") for number in range(20)]
        chosen = httpx.QueryParams([*names, ("name", "scalar0")])
        curves = timed(lambda: client.get(f"{base}/points", params=chosen).raise_for_status())
        part = chosen.merge({"from": "40000", "to": "41000"})
        zoomed = timed(lambda: client.get(f"{base}/points", params=part).raise_for_status())
        chart = drawn_in_browser(address, f"{base}/curves?{chosen}")
        memory = memory_mb(server)
    print("| what | measured |\n|---|---|")
    print(f"| first page of {runs + 20:,} runs, first time | {first:.2f} s |")
    print(f"| the same, later | {again:.2f} s |")
    print(f"| 20 curves of 100,000 steps, the answer | {curves:.2f} s |")
    print(f"| 1,000 steps of these | {zoomed:.2f} s |")
    if chart is not None:
        print(f"| page with these curves in Chromium until drawn | {chart:.2f} s |")
    print(f"| memory of the server | {memory:.0f} MB |", flush=True)


def until(answer: Callable[[], bool]) -> float:
    """Seconds until a server gives what is asked for."""
    begun = time.monotonic()
    while time.monotonic() - begun < _LIMIT_S:
        try:
            if answer():
                return time.monotonic() - begun
        except (httpx.HTTPError, ValueError):
            pass
        time.sleep(0.05)
    return math.nan


def measure_events(folder: Path, files: int, tensorboard: str) -> None:
    """Print what event files take, beside TensorBoard where a program is given."""
    make_events(folder, files)
    size = sum(path.stat().st_size for path in folder.rglob("*tfevents*")) / 1e6
    rows = []
    begun = time.monotonic()
    with served(folder) as (client, address, server):
        client.get(address)
        base = address.split("/?")[0]

        def has_curve() -> bool:
            (run, *_) = client.get(f"{base}/runs").json()
            asked = {"run": run, "name": "scalar0"}
            return bool(client.get(f"{base}/points", params=asked).json()[0]["steps"])

        until(has_curve)
        rows.append(("isograd serve", time.monotonic() - begun, memory_mb(server)))
    if tensorboard:
        port = random.randrange(20_000, 30_000)
        command = [tensorboard, "--logdir", str(folder), "--port", str(port)]
        begun = time.monotonic()
        with process(command) as started, httpx.Client(timeout=60) as client:
            base = f"http://localhost:{port}/data/plugin/scalars"

            def shows() -> bool:
                asked = {"run": "e0", "tag": "scalar0"}
                found = json.loads(client.get(f"{base}/scalars", params=asked).text)
                return bool(found) and found[-1][1] >= 4_990

            until(shows)
            elapsed = time.monotonic() - begun
            rows.append(("TensorBoard", elapsed, memory_mb(psutil.Process(started.pid))))
    print(f"\n| {files} event files, {size:,.0f} MB | first curve, s | memory, MB |\n|---|---|---|")
    for name, elapsed, memory in rows:
        print(f"| {name} | {elapsed:.1f} | {memory:,.0f} |")


def main() -> None:
    """Make the files, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--tensorboard", default="")
    given = parser.parse_args()
    for measure in (
        lambda folder: measure_runs(folder, 100 if given.sample else 1_000),
        lambda folder: measure_events(folder, 4 if given.sample else 20, given.tensorboard),
    ):
        folder = Path(tempfile.mkdtemp(prefix="isograd-serve-"))
        try:
            measure(folder)
        finally:
            shutil.rmtree(folder)
    print(f"\nLoad {os.getloadavg()[0]:.1f} beside it.")


if __name__ == "__main__":
    main()
