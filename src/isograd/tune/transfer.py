"""The best hyper-parameters of another search, from which the port's search starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isograd.errors import UsageError
from isograd.tune.model import Choice
from isograd.tune.space import Parameter

_LARGEST_FILE = 64 << 20


def best_of(
    path: Path, parameters: tuple[Parameter, ...]
) -> tuple[dict[str, Choice], tuple[str, ...]]:
    """Hyper-parameters that this study searches too, and the names of those that it does not.

    path: a report of `isograd tune --json`, a study's journal file, a study file, or a run's folder
    whose `run.json` has them as `details.params`.  Raises UsageError where none are there.
    """
    found = _parameters(path)
    known = {parameter.name: parameter for parameter in parameters}
    start = {k: v for k, v in found.items() if k in known and known[k].holds(v)}
    if not start:
        raise UsageError(
            f"{path}: has none of the hyper-parameters {', '.join(known)} in their ranges",
            "Give the reference's study, its report, or a run's folder.",
        )
    return start, tuple(sorted(found.keys() - start.keys()))


def _parameters(path: Path) -> dict[str, Choice]:
    if path.is_dir():
        return _of_run(path)
    if path.suffix == ".json":
        return _of_report(path)
    return _of_storage(path)


def _json(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise UsageError(f"{path}: is larger than 64 MiB", "Give a report of isograd tune.")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{path}: cannot be read as JSON ({error})", "Give a report of `isograd tune --json`."
        ) from error


def _of_run(folder: Path) -> dict[str, Choice]:
    found = _json(folder / "run.json")
    details = found.get("details") if isinstance(found, dict) else None
    params = details.get("params") if isinstance(details, dict) else None
    return _plain(params, folder)


def _of_report(path: Path) -> dict[str, Choice]:
    found = _json(path)
    best = found.get("best") if isinstance(found, dict) else None
    if isinstance(best, list):
        best = best[0] if best else None
    return _plain(best.get("params") if isinstance(best, dict) else None, path)


def _of_storage(path: Path) -> dict[str, Choice]:
    from isograd.tune.storage import open_study
    from isograd.tune.study_file import read_study

    if not path.is_file():
        raise UsageError(f"{path} does not exist", "Give the reference's study or run.")
    if path.suffix in (".toml", ".yaml", ".yml"):
        studies = [open_study(read_study(path))]
        best = [trial for study in studies for trial in study.best_trials]
        return _plain(best[0].params if best else None, path)
    from isograd.tune.results import reports_of_journal

    found = [trial for report in reports_of_journal(path) for trial in report.best]
    return _plain(dict(found[0].params) if found else None, path)


def _plain(params: object, path: Path) -> dict[str, Choice]:
    if not isinstance(params, dict) or not params:
        raise UsageError(
            f"{path}: holds no hyper-parameters of a best trial",
            "Give the reference's study, its report, or a run's folder.",
        )
    return {
        str(name): value
        for name, value in params.items()
        if value is None or isinstance(value, (bool, int, float, str))
    }
