"""The search: an Optuna study in a storage that outlives the process, and its trials.

Trials run as processes, so threads are enough to start them.  A trial whose process died with the
search is found at the next start, kept as failed with the reason, and its hyper-parameters are
tried again.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from isograd.errors import IsogradError, UsageError
from isograd.progress import Progress
from isograd.tune.model import TrialState
from isograd.tune.outcome import TrialOutcome, failed
from isograd.tune.space import suggest_all
from isograd.tune.storage import OWNER, REASON, RETRIED, RUN, open_study
from isograd.tune.study import Sampler, Study

if TYPE_CHECKING:
    import optuna

#: Values of one number in a grid search.
_GRID_POINTS = 5
#: Seconds for which a running trial counts that says nothing of its process.
_NAMELESS_S = 60.0


def make_sampler(study: Study, seed: int) -> optuna.samplers.BaseSampler:
    """The sampler; UsageError where one is named that needs a package which is not installed."""
    from optuna import samplers

    try:
        if study.sampler is Sampler.TPE:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that `group` may change in a later Optuna
                return samplers.TPESampler(seed=seed, multivariate=True, group=True)
        if study.sampler is Sampler.RANDOM:
            return samplers.RandomSampler(seed=seed)
        if study.sampler is Sampler.GRID:
            return _grid_sampler(study, seed)
        if study.sampler is Sampler.CMAES:
            return samplers.CmaEsSampler(seed=seed)
        if study.sampler is Sampler.GAUSSIAN_PROCESS:
            return samplers.GPSampler(seed=seed)
        if study.sampler is Sampler.QMC:
            return samplers.QMCSampler(seed=seed)
        return samplers.NSGAIISampler(seed=seed)
    except ImportError as error:
        raise UsageError(
            f"the sampler {study.sampler.value} needs a package that is missing ({error})",
            "Install it, or choose tpe.",
        ) from error


def _grid(study: Study) -> dict[str, list[bool | int | float | str | None]]:
    return {one.name: one.grid(_GRID_POINTS) for one in study.parameters}


def _grid_sampler(study: Study, seed: int) -> optuna.samplers.BaseSampler:
    from optuna import samplers

    class Grid(samplers.GridSampler):
        """Optuna's ends `Study.optimize` after its last point, which does not run here."""

        def after_trial(self, *_: object) -> None:
            """Nothing: the search counts its trials."""

    return Grid(_grid(study), seed=seed)


def trials_wanted(study: Study) -> int:
    """How many trials end the search: the study's number, or the points of its grid if fewer."""
    if study.sampler is not Sampler.GRID:
        return study.trials
    return min(study.trials, math.prod(len(points) for points in _grid(study).values()))


class Search:
    """One process's part of a study."""

    def __init__(self, study: Study, progress: Progress) -> None:
        self.study = study
        self.optuna_study = open_study(study, progress)
        known = len(self.optuna_study.get_trials(deepcopy=False))
        # A study that goes on must not draw again what it has drawn.
        self.optuna_study.sampler = make_sampler(study, study.seed + known)
        self._progress = progress
        self._lock = threading.Lock()
        self.is_fresh = known == 0
        self.wanted = trials_wanted(study)

    def finished(self) -> int:
        """How many trials have ended, by whatever process; what is tried again counts once."""
        return sum(
            one.state.is_finished() and RETRIED not in one.user_attrs
            for one in self.optuna_study.get_trials(deepcopy=False)
        )

    def recover(self) -> int:
        """Take up trials of processes of this host that are gone; the number of them."""
        count = 0
        for one in self.optuna_study.get_trials(deepcopy=False):
            if _is_orphan(one):
                self._leave_out(one, "the search ended before the trial")
                self.optuna_study.enqueue_trial(one.params)
                count += 1
        return count

    def _leave_out(self, one: optuna.trial.FrozenTrial, reason: str) -> None:
        """End a trial that has no place in the report."""
        import optuna

        storage = self.optuna_study._storage
        for key, value in ((REASON, reason), (RETRIED, True)):
            storage.set_trial_user_attr(one._trial_id, key, value)
        self.optuna_study.tell(one.number, state=optuna.trial.TrialState.FAIL)

    def _taken_before(self, number: int) -> int:
        """How many trials below a number have ended or run, in whatever process."""
        trials = self.optuna_study.get_trials(deepcopy=False)
        return sum(one.number < number and _is_taken(one) for one in trials)

    def _elsewhere(self) -> int:
        """How many trials run in other processes."""
        return sum(
            one.state.name == "RUNNING" and _is_taken(one) and one.user_attrs.get(OWNER) != _owner()
            for one in self.optuna_study.get_trials(deepcopy=False)
        )

    def run(self, jobs: int) -> None:
        """Run trials until as many have ended as the study wants.

        Raises what a trial could not even be started for; other trials of this process end first.
        """
        begun = time.monotonic()
        self._progress.stage("search")
        with ThreadPoolExecutor(jobs) as pool:
            running: set[Future[None]] = set()
            while True:
                # Counted anew each time: other processes end trials of the same study, too.
                finished = self.finished()
                what = f"best {self._best()}, {time.monotonic() - begun:.0f} s"
                self._progress.advance(min(finished, self.wanted), self.wanted, what)
                self.recover()
                here = len(running)
                free = min(jobs - here, self.wanted - finished - self._elsewhere() - here)
                running.update(pool.submit(self._one) for _ in range(free))
                if not running:
                    return  # what is left, if anything, runs in other processes
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()

    def _best(self) -> str:
        try:
            best = self.optuna_study.best_trials
        except ValueError:
            return "–"
        return ", ".join(f"{value:.4g}" for value in best[0].values) if best else "–"

    def _one(self) -> None:
        import optuna

        with self._lock:  # a sampler belongs to one thread at a time
            trial = self.optuna_study.ask()
            trial.set_user_attr(OWNER, _owner())
            if self._taken_before(trial.number) >= self.wanted:
                # Another process has asked for the last trial at the same time.
                frozen = self.optuna_study._storage.get_trial(trial._trial_id)
                self._leave_out(frozen, "enough trials ran in other processes")
                return
            params = suggest_all(self.study.parameters, trial)
        with _trial_folder(self.study, trial.number) as folder:
            trial.set_user_attr(RUN, str(folder))
            outcome = self._outcome(trial, params, folder)
        if outcome.reason:
            trial.set_user_attr(REASON, outcome.reason)
        states = {
            TrialState.COMPLETE: optuna.trial.TrialState.COMPLETE,
            TrialState.PRUNED: optuna.trial.TrialState.PRUNED,
            TrialState.FAILED: optuna.trial.TrialState.FAIL,
        }
        with self._lock:
            self.optuna_study.tell(trial, outcome.values, states[outcome.state])

    def _outcome(
        self,
        trial: optuna.trial.Trial,
        params: dict[str, bool | int | float | str | None],
        folder: Path,
    ) -> TrialOutcome:
        from isograd.tune.trial_command import run_command
        from isograd.tune.trial_function import run_function

        if self.study.function:
            return run_function(self.study, trial, params, folder)
        try:
            return run_command(self.study, trial, params, folder)
        except UsageError:
            # The program cannot be started at all, which no other trial would change.
            self._give_up(trial)
            raise
        except IsogradError as error:
            return failed(str(error))

    def _give_up(self, trial: optuna.trial.Trial) -> None:
        import optuna

        trial.set_user_attr(REASON, "its program cannot be started")
        with self._lock:
            self.optuna_study.tell(trial, state=optuna.trial.TrialState.FAIL)


@contextmanager
def _trial_folder(study: Study, number: int) -> Iterator[Path]:
    folder = study.folder / f"trial-{number:04d}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be made ({error})", "Name another `folder` in [study]."
        ) from error
    yield folder


def _owner() -> str:
    """What a trial says of the process that runs it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_orphan(one: optuna.trial.FrozenTrial) -> bool:
    """Whether a trial's process was one of this host and is gone."""
    host, _, process = str(one.user_attrs.get(OWNER, "")).partition(":")
    is_here = one.state.name == "RUNNING" and host == socket.gethostname()
    return is_here and not _is_alive(process)


def _is_taken(one: optuna.trial.FrozenTrial) -> bool:
    """Whether a trial counts: it has ended, or seems to run somewhere."""
    if one.state.name != "RUNNING":
        return one.state.is_finished() and RETRIED not in one.user_attrs
    if OWNER in one.user_attrs:
        return not _is_orphan(one)
    # Its process has just asked for it, or was killed before it wrote its name.
    started = one.datetime_start.timestamp() if one.datetime_start is not None else 0.0
    return time.time() - started < _NAMELESS_S


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
