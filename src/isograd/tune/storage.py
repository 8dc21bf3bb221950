"""Where a study is kept, and opening it there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isograd.errors import UsageError
from isograd.progress import Progress, SilentProgress
from isograd.tune.journal import check_journal, end_last_line
from isograd.tune.study import Pruner, Study

if TYPE_CHECKING:
    import optuna

#: What a trial's user attributes are called in the storage.
REASON, RUN, OWNER, RETRIED = "reason", "run", "owner", "retried"


_SILENT = SilentProgress()


def require_optuna() -> None:
    """Raise UsageError where Optuna is not installed; keep it quiet where it is."""
    try:
        import optuna
    except ImportError as error:
        raise UsageError(
            "Optuna is not installed", "Install the extra: pip install 'isograd[tune]'."
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def storage_address(study: Study) -> str:
    """Where the study is kept: a database's URL, or a journal file beside the study file."""
    if "://" in study.storage:
        return study.storage
    return str(study.file.resolve().parent / (study.storage or f"{study.file.stem}.journal"))


def open_study(study: Study, progress: Progress = _SILENT) -> optuna.study.Study:
    """The study in its storage, made or continued; UsageError where that cannot be opened."""
    require_optuna()
    import optuna

    address = storage_address(study)
    if "://" not in address and Path(address).is_file():
        left_out = end_last_line(Path(address))
        if left_out:
            progress.note(left_out)
        check_journal(Path(address))
    try:
        return optuna.create_study(
            storage=_storage(address),
            study_name=study.name,
            directions=[objective.direction.value for objective in study.objectives],
            load_if_exists=True,
            pruner=_pruner(study.pruner),
        )
    except Exception as error:  # storages raise whatever their database raises
        what = str(error).strip().splitlines() or [type(error).__name__]
        raise UsageError(
            f"{address}: the study {study.name!r} cannot be opened there ({what[0]})",
            "Name another storage, or mend this one.",
        ) from error


def _storage(address: str) -> optuna.storages.BaseStorage | str:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if "://" in address:
        return address
    Path(address).parent.mkdir(parents=True, exist_ok=True)
    return JournalStorage(JournalFileBackend(address))


def _pruner(pruner: Pruner) -> optuna.pruners.BasePruner:
    from optuna import pruners

    made: dict[Pruner, type[optuna.pruners.BasePruner]] = {
        Pruner.NONE: pruners.NopPruner,
        Pruner.MEDIAN: pruners.MedianPruner,
        Pruner.HALVING: pruners.SuccessiveHalvingPruner,
        Pruner.HYPERBAND: pruners.HyperbandPruner,
    }
    return pruners.PercentilePruner(25.0) if pruner is Pruner.PERCENTILE else made[pruner]()
