"""The entry of `isograd tune`: read the study, search, and say what was found."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isograd.errors import UsageError
from isograd.progress import Progress, SilentProgress
from isograd.tune.model import Check, Choice, TuneReport

if TYPE_CHECKING:
    from isograd.tune.search import Search
    from isograd.tune.study import Study


def tune(
    study: str | Path,
    *,
    trials: int | None = None,
    jobs: int = 1,
    storage: str | None = None,
    seed: int | None = None,
    same_as: str | Path | None = None,
    verify: str | Path | None = None,
    engine: str = "processes",
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> TuneReport:
    """Search the hyper-parameters of a study file until its number of trials has ended.

    trials, storage, seed: instead of the file's.  trials counts those of earlier calls too; 0
    reports them and runs none.  jobs: trials at a time.  same_as: a study, report or trial folder
    whose best hyper-parameters are tried first.  verify: a case that checks the port in the end.
    engine: "processes" here, or "dask" for the workers of a scheduler.
    Raises UsageError for a study that is wrong and for a program that cannot be started.
    """
    from isograd.tune.search import Search
    from isograd.tune.storage import require_optuna
    from isograd.tune.study_file import read_study

    require_optuna()
    begun = time.monotonic()
    listener = progress or SilentProgress()
    plan = _changed(read_study(Path(study)), trials, storage, seed)
    search = Search(plan, listener)
    notes = _prepared(search, same_as)
    if search.wanted > search.finished():
        if engine == "dask":
            from isograd.tune.on_dask import run_on_dask

            run_on_dask(plan, jobs, scheduler, listener)
        else:
            search.run(jobs)
    from isograd.tune.results import summarised

    report = summarised(plan, search.optuna_study)
    check = None if verify is None else _verified(Path(verify))
    return replace(
        report, check=check, notes=(*notes, *report.notes), elapsed_s=time.monotonic() - begun
    )


def _changed(plan: Study, trials: int | None, storage: str | None, seed: int | None) -> Study:
    if trials is not None:
        plan = replace(plan, trials=trials)
    if storage is not None:
        plan = replace(plan, storage=storage)
    return plan if seed is None else replace(plan, seed=seed)


def _prepared(search: Search, same_as: str | Path | None) -> tuple[str, ...]:
    """Take up what earlier processes left, and put what is known before what is drawn."""
    notes = []
    recovered = search.recover()
    if recovered:
        notes.append(f"{recovered} trials of a search that was ended are tried again")
    if not search.is_fresh:
        return tuple(notes)
    known = _with_history(search)
    if known:
        notes.append(f"{known} earlier trials are read from MindInsight's lineage files")
    starts: list[Mapping[str, Choice]] = list(search.study.given)
    if same_as is not None:
        from isograd.tune.transfer import best_of

        best, left_out = best_of(Path(same_as), search.study.parameters)
        starts.insert(0, best)
        notes.append(f"the first trial has the hyper-parameters of {same_as}")
        if left_out:
            notes.append(f"not searched here: {', '.join(left_out)} of {same_as}")
    for start in starts:
        search.optuna_study.enqueue_trial(_checked(search.study, start))
    return tuple(notes)


def _checked(plan: Study, start: Mapping[str, Choice]) -> dict[str, Any]:
    from isograd.tune.ranges import suggestion

    known = {parameter.name: parameter for parameter in plan.parameters}
    for name, value in start.items():
        if name not in known and not plan.function:
            raise UsageError(
                f"{plan.file}: the start names {name}, which is no hyper-parameter"
                + suggestion(name, known),
                "Mend [[start]].",
            )
        if name in known and not known[name].holds(value):
            raise UsageError(
                f"{plan.file}: the start {name} = {value!r} is outside of its range",
                "Widen the range, or start elsewhere.",
            )
    return dict(start)


def _with_history(search: Search) -> int:
    """Add MindOptimizer's trials to the study; how many were complete."""
    from isograd.tune.history import known_trials

    found = known_trials(search.study)
    search.optuna_study.add_trials(found)
    return len(found)


def _verified(case: Path) -> Check:
    """Whether the chosen settings mean the same in both frameworks: verify's stage training."""
    from isograd.api import verify

    report = verify(case)
    training = [stage for stage in report.stages if stage.stage.value == "training"]
    verdict = training[0].verdict.value if training else "skipped"
    return Check(str(case), report.verdict.value, verdict)
