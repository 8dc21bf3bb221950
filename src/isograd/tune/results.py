"""What a study has found so far, as a report."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from isograd.errors import UsageError
from isograd.tune.journal import check_journal
from isograd.tune.model import Direction, Trial, TrialState, TuneReport
from isograd.tune.search import trials_wanted
from isograd.tune.storage import REASON, RETRIED, RUN, require_optuna, storage_address
from isograd.tune.study import Objective, Study

if TYPE_CHECKING:
    import optuna

#: Complete trials below which no importance is computed.
_FEWEST_TRIALS = 4
#: Complete trials of which fANOVA is computed: its time grows with their square, 14 s at 1,000.
_MOST_TRIALS = 128


def summarised(plan: Study, study: optuna.study.Study) -> TuneReport:
    """The report of all trials that have ended, in their order."""
    frozen = [
        one
        for one in study.get_trials(deepcopy=False)
        if one.state.is_finished() and RETRIED not in one.user_attrs
    ]
    trials = tuple(_trial(one) for one in frozen)
    by_number = {trial.number: trial for trial in trials}
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    best = tuple(by_number[one.number] for one in study.best_trials) if complete else ()
    importance, method = _importance(study, len(complete))
    return TuneReport(
        study=plan.name,
        directions=tuple(objective.direction for objective in plan.objectives),
        objectives=tuple(objective.name for objective in plan.objectives),
        trials=trials,
        best=best,
        importance=importance,
        importance_method=method,
        storage=storage_address(plan),
        wanted=trials_wanted(plan),
    )


def _trial(one: optuna.trial.FrozenTrial) -> Trial:
    states = {"COMPLETE": TrialState.COMPLETE, "PRUNED": TrialState.PRUNED}
    elapsed = None if one.duration is None else one.duration.total_seconds()
    state = states.get(one.state.name, TrialState.FAILED)
    return Trial(
        number=one.number,
        state=state,
        params=dict(one.params),
        values=tuple(one.values) if state is TrialState.COMPLETE and one.values else None,
        elapsed_s=elapsed,
        reason=str(one.user_attrs.get(REASON, "")),
        run=str(one.user_attrs.get(RUN, "")),
    )


def _importance(study: optuna.study.Study, complete: int) -> tuple[dict[str, float], str]:
    """Shares by fANOVA (Hutter and others, ICML 2014), of the first objective of several."""
    if complete < _FEWEST_TRIALS:
        return {}, f"not computed: fewer than {_FEWEST_TRIALS} complete trials"
    from optuna import importance

    several = len(study.directions) > 1
    study, part = _thinned(study)
    target = (lambda trial: trial.values[0]) if several else None
    evaluator: importance.BaseImportanceEvaluator
    try:
        evaluator = importance.FanovaImportanceEvaluator(seed=0)
        method = "fANOVA"
    except ImportError:
        evaluator = importance.PedAnovaImportanceEvaluator()
        method = "PED-ANOVA (fANOVA needs scikit-learn)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = importance.get_param_importances(study, evaluator=evaluator, target=target)
    except (ValueError, RuntimeError) as error:
        return {}, f"not computed: {error}"
    return {str(name): float(share) for name, share in found.items()}, method + part


def _thinned(study: optuna.study.Study) -> tuple[optuna.study.Study, str]:
    """A study of evenly chosen complete trials where there are many, and what to say of it."""
    import optuna

    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    if len(complete) <= _MOST_TRIALS:
        return study, ""
    places = [number * len(complete) // _MOST_TRIALS for number in range(_MOST_TRIALS)]
    part = optuna.create_study(directions=study.directions)
    part.add_trials([complete[place] for place in places])
    return part, f" of {_MOST_TRIALS} of {len(complete):,} complete trials, evenly chosen"


def reports_of_journal(path: Path) -> list[TuneReport]:
    """The reports of all studies in a journal file; UsageError where it is none."""
    require_optuna()
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    check_journal(path)
    try:
        storage = JournalStorage(JournalFileBackend(str(path)))
        names = optuna.get_all_study_names(storage)
        studies = [optuna.load_study(study_name=name, storage=storage) for name in names]
    except Exception as error:  # the backend raises whatever a foreign file makes of it
        raise UsageError(f"{path}: is no journal of studies ({error})", "Name another.") from error
    if not studies:
        raise UsageError(f"{path}: holds no study", "Name another.")
    return [summarised(_plan_of(path, study), study) for study in studies]


def _plan_of(path: Path, study: optuna.study.Study) -> Study:
    """What can be known of the study file from its storage."""
    names = [f"value {number}" for number in range(len(study.directions))]
    objectives = tuple(
        Objective(name if len(names) > 1 else "value", Direction(direction.name.lower()))
        for name, direction in zip(names, study.directions, strict=True)
    )
    count = len(study.get_trials(deepcopy=False))
    home = path.parent
    return Study(
        study.study_name, path, objectives, (), home, home, trials=count, storage=path.name
    )
