"""isograd's search against random search on two real trainings, 60 trials each.

    python benchmarks/tune/trainings.py [--sample] [--only torch|mindspore]

The trainings are those of examples/tune: a small network on scikit-learn's digits, in torch and in
MindSpore.  Prints a table in Markdown; a cell is the median of the least loss on held-out digits
over 20 seeds (--sample: 2 in torch and 1 in MindSpore).
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import optuna

import isograd.tune
from isograd.tune.model import Direction
from isograd.tune.search import make_sampler
from isograd.tune.space import Kind, Parameter, suggest_all
from isograd.tune.study import Objective, Sampler, Study

Training = Callable[..., float]
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--only", choices=sorted(SEEDS))
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print("| training | seeds | isograd tune | random search | better |\n|---|---|---|---|---|")
    for framework, full in SEEDS.items():
        if given.only not in (None, framework):
            continue
        train = training(framework)
        seeds = range(SAMPLE_SEEDS[framework] if given.sample else full)
        found: dict[Sampler, list[float]] = {Sampler.TPE: [], Sampler.RANDOM: []}
        for seed in seeds:
            for sampler, losses in found.items():
                losses.append(least(train, sampler, seed))
            print(framework, seed, *(losses[-1] for losses in found.values()), file=sys.stderr)
        tpe, random = (statistics.median(losses) for losses in found.values())
        row = f"{len(seeds)} | {tpe:.4g} | {random:.4g} | {'yes' if tpe < random else 'no'}"
        print(f"| digits in {framework} | {row} |", flush=True)
    print(f"\n{TRIALS} trials each; the least cross entropy on 597 digits that were held out.")


if __name__ == "__main__":
    main()
