"""A trial that is a command line: hyper-parameters go in, a value and a log come out."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from isograd.runs.reader import Run, find_runs
from isograd.tune.model import Choice, TrialState
from isograd.tune.outcome import TrialOutcome, failed
from isograd.tune.process import last_words, started, wait
from isograd.tune.study import Origin, Pruner, Study
from isograd.tune.values import series_of, value_of

if TYPE_CHECKING:
    import optuna

_FIELD = re.compile(r"\{\{|\}\}|\{(\w+)\}")
#: A word that is one hyper-parameter, behind `--name=` or `name=` or alone.
_ARGUMENT = re.compile(r"([^{}\s]+=)?\{(\w+)\}")
_OPTION = re.compile(r"--?[A-Za-z][^={}]*")
_SHIM = Path(__file__).parent / "shim"
#: Alerts of `isograd watch` after which a training does not recover by itself.
HOPELESS = frozenset(("weight.nonfinite",))


def run_command(
    study: Study, trial: optuna.trial.Trial, params: Mapping[str, Choice], folder: Path
) -> TrialOutcome:
    """Run the command with these hyper-parameters and find its values."""
    listener = _Listener(study, trial, folder)
    command = command_line(study, params, trial.number, folder)
    with started(command, study.working_folder, _environment(study, params, folder), folder) as run:
        status, reason = wait(run, listener.look, study.trial_limit_s)
    if status is None:
        is_pruned = listener.is_pruned
        return TrialOutcome(TrialState.PRUNED if is_pruned else TrialState.FAILED, None, reason)
    is_exit = any(objective.origin is Origin.EXIT for objective in study.objectives)
    if status != 0 and not is_exit:
        said = last_words(folder)
        return failed(f"exit status {status}" + (f": {said}" if said else ""))
    values = [value_of(objective, folder, status) for objective in study.objectives]
    return judged(study, values, "the trial's folder and log hold")


def judged(study: Study, values: list[float | None], where: str) -> TrialOutcome:
    """A complete trial, if every objective has a finite value."""
    found = []
    for objective, value in zip(study.objectives, values, strict=True):
        if value is None:
            return failed(f"{where} no value named {objective.name!r}")
        if not math.isfinite(value):
            return failed(f"{objective.name} is {value}")
        found.append(value)
    return TrialOutcome(TrialState.COMPLETE, tuple(found))


def command_line(
    study: Study, params: Mapping[str, Choice], number: int, folder: Path
) -> list[str]:
    """The words of the command; an argument of a hyper-parameter that does not exist is left out.

    Words are split before the values are put in, so that no value becomes several words.  Beside
    other text a hyper-parameter that does not exist is an empty text.
    """
    known: dict[str, object] = {**params, "trial": number, "folder": str(folder)}

    def filled(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else str(known.get(match[1], ""))

    kept: list[str] = []
    for word in shlex.split(study.command):
        alone = _ARGUMENT.fullmatch(word)
        if alone is None or alone[2] in known:
            kept.append(word)
        elif not alone[1] and kept and _OPTION.fullmatch(kept[-1]):
            kept.pop()  # the option whose value would have been this word
    words = [_FIELD.sub(filled, word) for word in kept]
    return _watched(words, folder) if study.is_watched else words


def _watched(words: list[str], folder: Path) -> list[str]:
    """The same Python script under `isograd watch`, in the same interpreter."""
    for index, word in enumerate(words):
        if word.endswith(".py"):
            interpreter = words[:index] or [sys.executable]
            watch = ["-m", "isograd", "watch", "--out", str(folder / "run"), word]
            return [*interpreter, *watch, "--", *words[index + 1 :]]
    return words


def _environment(study: Study, params: Mapping[str, Choice], folder: Path) -> dict[str, str]:
    """What the script may read: MindInsight's variable, the trial's folder, and HyperConfig."""
    import os

    config = {"params": dict(params), "summary_dir": str(folder), "custom_lineage_data": {}}
    path = os.environ.get("PYTHONPATH", "")
    return {
        "MINDINSIGHT_HYPER_CONFIG": json.dumps(config),
        "ISOGRAD_TRIAL_FOLDER": str(folder),
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": f"{_SHIM}{os.pathsep}{path}" if path else str(_SHIM),
        **study.environment,
    }


@dataclass
class _Listener:
    """Looks at a trial that runs: reports its values to the pruner, and reads watch's alerts."""

    study: Study
    trial: optuna.trial.Trial
    folder: Path
    is_pruned: bool = False
    reported: set[int] = field(default_factory=set)

    def look(self) -> str:
        """Why the trial should be stopped; empty while it should go on."""
        reason = self._hopeless() or self._pruned()
        self.is_pruned = bool(reason)
        return reason

    def _hopeless(self) -> str:
        for folder in find_runs(self.folder, 2):
            for alert in Run(folder).alerts():
                if alert.get("code") in HOPELESS:
                    step = alert.get("first_step", alert.get("step"))
                    return f"watch: {alert['code']} at step {step}, which cannot recover"
        return ""

    def _pruned(self) -> str:
        if self.study.pruner is Pruner.NONE:
            return ""
        for step, value in series_of(self.study.objectives[0], self.folder):
            if step in self.reported or not math.isfinite(value):
                continue
            self.reported.add(step)
            self.trial.report(value, step)
            if self.trial.should_prune():
                name = self.study.objectives[0].name
                return f"pruner {self.study.pruner.value}: {name} is {value:g} at step {step}"
        return ""
