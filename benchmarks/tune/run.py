"""isograd's search against random search on standard functions, 60 trials each.

    python benchmarks/tune/run.py [--sample]

Prints a table in Markdown; a cell is the median over 20 seeds (--sample: 3) of the least value.
The functions are those of Surjanovic and Bingham's Virtual Library of Simulation Experiments,
shifted so that no sampler finds the least value at a range's middle.
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import optuna

from isograd.tune.model import Direction
from isograd.tune.search import make_sampler
from isograd.tune.space import Kind, Parameter, suggest_all
from isograd.tune.study import Objective, Sampler, Study

Function = Callable[[Sequence[float]], float]
SHIFT = 0.3
TRIALS = 60


def sphere(x: Sequence[float]) -> float:
    return sum(v * v for v in x)


def ellipsoid(x: Sequence[float]) -> float:
    return sum(10 ** (3 * i / (len(x) - 1)) * v * v for i, v in enumerate(x))


def rosenbrock(x: Sequence[float]) -> float:
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(x))


def rastrigin(x: Sequence[float]) -> float:
    return sum(v * v - 10 * math.cos(2 * math.pi * v) + 10 for v in x)


def ackley(x: Sequence[float]) -> float:
    n = len(x)
    first = -20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / n))
    return first - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / n) + 20 + math.e


def griewank(x: Sequence[float]) -> float:
    product = math.prod(math.cos(v / math.sqrt(i + 1)) for i, v in enumerate(x))
    return 1 + sum(v * v for v in x) / 4000 - product


def styblinski_tang(x: Sequence[float]) -> float:
    return sum(v**4 - 16 * v * v + 5 * v for v in x) / 2


def branin(x: Sequence[float]) -> float:
    a, b = x
    bend = b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


def six_hump_camel(x: Sequence[float]) -> float:
    a, b = x
    return (4 - 2.1 * a * a + a**4 / 3) * a * a + a * b + (-4 + 4 * b * b) * b * b


def beale(x: Sequence[float]) -> float:
    a, b = x
    parts = ((1.5, 1), (2.25, 2), (2.625, 3))
    return sum((c - a + a * b**power) ** 2 for c, power in parts)


def levy(x: Sequence[float]) -> float:
    w = [1 + (v - 1) / 4 for v in x]
    inner = sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1])
    last = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return math.sin(math.pi * w[0]) ** 2 + inner + last


def learning_rates(x: Sequence[float]) -> float:
    """Rate and decay on a scale of decades, as trainings have them."""
    return (x[0] + 2.5) ** 2 + 0.3 * (x[1] + 4) ** 2 + (2.0 if x[0] > -1 else 0.0)


#: Name, function, range of every coordinate, number of coordinates.
FUNCTIONS: tuple[tuple[str, Function, tuple[float, float], int], ...] = (
    ("sphere", sphere, (-5, 5), 5),
    ("ellipsoid", ellipsoid, (-5, 5), 5),
    ("rosenbrock", rosenbrock, (-2, 2), 3),
    ("rastrigin", rastrigin, (-5, 5), 3),
    ("ackley", ackley, (-8, 8), 4),
    ("griewank", griewank, (-50, 50), 4),
    ("styblinski-tang", styblinski_tang, (-5, 5), 4),
    ("branin", branin, (-5, 12), 2),
    ("six-hump camel", six_hump_camel, (-2, 2), 2),
    ("beale", beale, (-4, 4), 2),
    ("levy", levy, (-8, 8), 4),
    ("learning rates", learning_rates, (-6, 0), 2),
)


def least(
    function: Function, span: tuple[float, float], size: int, sampler: Sampler, seed: int
) -> float:
    """The least value of one search."""
    parameters = tuple(Parameter(f"x{i}", Kind.FLOAT, *span) for i in range(size))
    objective = Objective("value", Direction.MINIMIZE)
    here = Path()
    plan = Study("benchmark", here, (objective,), parameters, here, here, sampler=sampler)
    study = optuna.create_study(sampler=make_sampler(replace(plan, seed=seed), seed))
    for _ in range(TRIALS):
        trial = study.ask()
        chosen = suggest_all(parameters, trial)
        study.tell(trial, function([float(value or 0) - SHIFT for value in chosen.values()]))
    return study.best_value


def main() -> None:
    """Print the table."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seeds = range(3 if "--sample" in sys.argv else 20)
    print("| function | isograd tune | random search | better |\n|---|---|---|---|")
    better = 0
    for name, function, span, size in FUNCTIONS:
        found = {
            sampler: statistics.median(least(function, span, size, sampler, seed) for seed in seeds)
            for sampler in (Sampler.TPE, Sampler.RANDOM)
        }
        is_better = found[Sampler.TPE] < found[Sampler.RANDOM]
        better += is_better
        row = f"{found[Sampler.TPE]:.4g} | {found[Sampler.RANDOM]:.4g}"
        print(f"| {name} ({size}) | {row} | {'yes' if is_better else 'no'} |", flush=True)
    print(f"\nBetter on {better} of {len(FUNCTIONS)}; {len(seeds)} seeds, {TRIALS} trials each.")


if __name__ == "__main__":
    main()
