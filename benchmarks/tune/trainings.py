"""isograd's search against random search on two real trainings, 60 trials each.

    python benchmarks/tune/trainings.py [--sample] [--only torch|mindspore] [--jobs N] [--out FILE]

The trainings are those of examples/tune: a small network on scikit-learn's digits, in torch and in
MindSpore.  Prints a table in Markdown; a cell is the median of the least loss on held-out digits
over 20 seeds (--sample: 2 in torch and 1 in MindSpore).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import multiprocessing
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import optuna

import isograd.tune
from isograd.tune.model import Direction
from isograd.tune.search import make_sampler
from isograd.tune.space import Kind, Parameter, suggest_all
from isograd.tune.study import Objective, Sampler, Study

Training = Callable[..., float]
#: Framework, seed, and the least losses of isograd and of random search.
Row = tuple[str, int, float, float]
HERE = Path(__file__).parents[2] / "examples" / "tune"
TRIALS = 60
#: Seeds by framework: MindSpore compiles each trial's network, 20 seeds take it an hour.
SEEDS = {"torch": 20, "mindspore": 20}
SAMPLE_SEEDS = {"torch": 2, "mindspore": 1}
PARAMETERS = (
    Parameter("learning_rate", Kind.FLOAT, 1e-4, 1.0, is_log=True),
    Parameter("momentum", Kind.FLOAT, 0.0, 0.99),
    Parameter("weight_decay", Kind.FLOAT, 1e-6, 1e-1, is_log=True),
    Parameter("batch_size", Kind.INT, 16, 128),
)


def training(framework: str) -> Training:
    """The function `train` of an example's script."""
    sys.path.insert(0, str(Path(isograd.tune.__file__).parent / "shim"))
    path = HERE / framework / "train.py"
    spec = importlib.util.spec_from_file_location(f"train_{framework}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    train: Training = module.train
    return train


def least(train: Training, sampler: Sampler, seed: int) -> float:
    """The least loss of one search; a loss that is not finite fails its trial."""
    here = Path()
    plan = Study(
        "benchmark", here, (Objective("loss", Direction.MINIMIZE),), PARAMETERS, here, here,
        sampler=sampler,
    )  # fmt: skip
    study = optuna.create_study(sampler=make_sampler(replace(plan, seed=seed), seed))
    for _ in range(TRIALS):
        trial = study.ask()
        loss = train(**suggest_all(PARAMETERS, trial))
        if math.isfinite(loss):
            study.tell(trial, loss)
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return study.best_value


def both(job: tuple[str, int]) -> Row:
    """The least losses of isograd's and of random search with one seed."""
    framework, seed = job
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    train = training(framework)
    searched = least(train, Sampler.TPE, seed)
    return framework, seed, searched, least(train, Sampler.RANDOM, seed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--only", choices=sorted(SEEDS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON lines: one per seed; kept ones are not run")
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out and given.out.is_file() else []
    rows = [tuple(json.loads(line)) for line in lines]
    wanted = [
        (framework, seed)
        for framework, full in SEEDS.items()
        if given.only in (None, framework)
        for seed in range(SAMPLE_SEEDS[framework] if given.sample else full)
    ]
    left = [job for job in wanted if job not in {row[:2] for row in rows}]
    # A process for each seed: what MindSpore compiles it keeps, 9 MB for every trial.
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(both, left, chunksize=1):
            rows.append(row)
            print(*row, file=sys.stderr, flush=True)
            if given.out is not None:
                with given.out.open("a") as stream:
                    stream.write(json.dumps(row) + "\n")
    print(table([row for row in rows if row[:2] in wanted]))


def table(rows: Sequence[Row]) -> str:
    """The medians as Markdown."""
    text = "| training | seeds | isograd tune | random search | better |\n|---|---|---|---|---|\n"
    for framework in sorted({row[0] for row in rows}, reverse=True):
        mine = [row for row in rows if row[0] == framework]
        tpe, random = (statistics.median(row[place] for row in mine) for place in (2, 3))
        shown = f"{len(mine)} | {tpe:.4g} | {random:.4g} | {'yes' if tpe < random else 'no'}"
        text += f"| digits in {framework} | {shown} |\n"
    return f"{text}\n{TRIALS} trials each; the least cross entropy on 597 digits held out."


if __name__ == "__main__":
    main()
