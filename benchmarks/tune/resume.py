"""How long a study of 1,000 trials takes to go on: seconds of the whole command.

    python benchmarks/tune/resume.py [--sample]

Writes a journal of 1,000 trials (--sample: 200), then calls `isograd tune` to report them and to
run one more.  Processor time is given beside the clock, which other work on the machine slows down.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import optuna

from isograd.tune.space import suggest_all
from isograd.tune.storage import open_study
from isograd.tune.study_file import read_study

STUDY = """
[study]
trials = 1000
[objective]
command = 'echo loss: {learning_rate}'
[parameters]
learning_rate = { low = 1e-5, high = 0.1, log = true }
width = { low = 8, high = 256 }
optimizer = ["sgd", "adam"]
momentum = { low = 0.0, high = 0.99, when = { optimizer = "sgd" } }
"""


def write_trials(path: Path, count: int) -> None:
    """A study whose trials have all ended, each with the value of its learning rate."""
    plan = read_study(path)
    study = open_study(plan)
    study.sampler = optuna.samplers.RandomSampler(seed=0)
    for _ in range(count):
        trial = study.ask()
        chosen = suggest_all(plan.parameters, trial)
        study.tell(trial, float(chosen["learning_rate"] or 0))


def timed(path: Path, trials: int) -> tuple[float, float]:
    """Seconds by the clock and of the processor until the command has ended."""
    command = [sys.executable, "-m", "isograd", "tune", str(path), "--trials", str(trials)]
    begun, before = time.monotonic(), os.times()
    subprocess.run([*command, "--quiet"], check=True, capture_output=True)
    after = os.times()
    used = (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
    return time.monotonic() - begun, used


def main() -> None:
    """Print the table."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    count = 200 if "--sample" in sys.argv else 1_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(STUDY)
        write_trials(path, count)
        print("| what | s | s of the processor |\n|---|---|---|")
        for what, trials in ((f"report {count:,} trials", count), ("run one more", count + 1)):
            elapsed, used = timed(path, trials)
            print(f"| {what} | {elapsed:.2f} | {used:.2f} |", flush=True)
    print(f"\nLoad {os.getloadavg()[0]:.1f} beside it.")


if __name__ == "__main__":
    main()
