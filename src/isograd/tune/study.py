"""What a study file says: the objective, its hyper-parameters, and how they are searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from isograd.tune.model import Direction
from isograd.tune.space import Parameter


class Origin(str, Enum):
    """Where a trial leaves its value."""

    AUTO = "auto"
    RUN = "run"
    EVENTS = "events"
    JSON = "json"
    LOG = "log"
    EXIT = "exit"


class Reduction(str, Enum):
    """Which of a series of values counts."""

    LAST = "last"
    LEAST = "min"
    GREATEST = "max"
    MEAN = "mean"


@dataclass(frozen=True)
class Objective:
    """One value that is searched for.

    name: the scalar, tag, key or word that it has where the trial leaves it.
    file: the trial's file that holds it, relative to the trial's folder; empty for what is usual.
    pattern: of a log, a regular expression whose first group is the number.
    """

    name: str
    direction: Direction
    origin: Origin = Origin.AUTO
    reduction: Reduction = Reduction.LAST
    file: str = ""
    pattern: str = ""


class Sampler(str, Enum):
    """Optuna's samplers that a study file can name."""

    TPE = "tpe"
    RANDOM = "random"
    GRID = "grid"
    CMAES = "cmaes"
    GAUSSIAN_PROCESS = "gp"
    QMC = "qmc"
    NSGA2 = "nsga2"


class Pruner(str, Enum):
    """Optuna's pruners that a study file can name."""

    NONE = "none"
    MEDIAN = "median"
    PERCENTILE = "percentile"
    HALVING = "halving"
    HYPERBAND = "hyperband"


@dataclass(frozen=True)
class Study:
    """A whole study file.

    command: the trial's command line with {NAME} for each hyper-parameter; or function: a callable
    `file.py:name` that takes an Optuna trial and returns the value.  Exactly one is given.
    folder: where trials leave their folders.  working_folder: where the command runs.
    trial_limit_s: seconds after which a trial is stopped.  is_watched: whether the command's Python
    script runs under `isograd watch`.  lineage: folders of MindInsight's summary files whose trials
    are known already.  given: hyper-parameters to try first.
    """

    name: str
    file: Path
    objectives: tuple[Objective, ...]
    parameters: tuple[Parameter, ...]
    folder: Path
    working_folder: Path
    command: str = ""
    function: str = ""
    trials: int = 30
    sampler: Sampler = Sampler.TPE
    pruner: Pruner = Pruner.NONE
    seed: int = 0
    storage: str = ""
    trial_limit_s: float | None = None
    is_watched: bool = False
    lineage: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    given: tuple[Mapping[str, bool | int | float | str | None], ...] = ()
