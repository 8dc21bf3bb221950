"""A trial that is a Python function `file.py:objective(trial)`, in a process of its own.

The process opens the study's storage itself, so that the function has a real Optuna trial: it may
suggest, report and prune.  A crash ends the trial and nothing else.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isograd.errors import IsogradError
from isograd.tune.model import Choice, TrialState
from isograd.tune.outcome import TrialOutcome, failed
from isograd.tune.process import last_words, started, wait
from isograd.tune.study import Study

if TYPE_CHECKING:
    import optuna

_RESULT = "result.json"
_TASK = "task.json"


def run_function(
    study: Study, trial: optuna.trial.Trial, params: Mapping[str, Choice], folder: Path
) -> TrialOutcome:
    """Call the study's function in another process and read what it returned."""
    from isograd.tune.trial_command import judged

    task = {
        "function": study.function,
        "study": str(study.file.resolve()),
        "trial": trial._trial_id,
        "working_folder": str(study.working_folder),
    }
    (folder / _TASK).write_text(json.dumps(task), encoding="utf-8")
    command = [sys.executable, "-m", "isograd.tune.trial_function", str(folder)]
    environment = {**study.environment, "ISOGRAD_TRIAL_FOLDER": str(folder)}
    with started(command, study.working_folder, environment, folder) as process:
        status, reason = wait(process, lambda: "", study.trial_limit_s)
    if status is None:
        return failed(reason)
    try:
        found = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = last_words(folder)
        return failed(f"exit status {status}" + (f": {said}" if said else ""))
    if found["state"] != TrialState.COMPLETE.value:
        return TrialOutcome(TrialState(found["state"]), None, found["reason"])
    values = [None if value is None else float(value) for value in found["values"]]
    if len(values) != len(study.objectives):
        return failed(f"the function returned {len(values)} values, not {len(study.objectives)}")
    return judged(study, values, "the function's result holds")


def main(folder: Path) -> int:
    """Run one trial in this process; the result is written to its folder."""
    task = json.loads((folder / _TASK).read_text(encoding="utf-8"))
    result = _called(task)
    (folder / _RESULT).write_text(json.dumps(result), encoding="utf-8")
    return 0


def _called(task: Mapping[str, Any]) -> dict[str, Any]:
    import optuna

    from isograd.frameworks.user_code import load_callable
    from isograd.tune.storage import open_study
    from isograd.tune.study_file import read_study

    try:
        function = load_callable(task["function"], task["working_folder"], "objective.function")
        study = open_study(read_study(Path(task["study"])))
        returned = function(optuna.trial.Trial(study, int(task["trial"])))
    except optuna.TrialPruned as pruned:
        reason = f"the function pruned it{f': {pruned}' if str(pruned) else ''}"
        return {"state": TrialState.PRUNED.value, "reason": reason}
    except IsogradError as error:
        return {"state": TrialState.FAILED.value, "reason": str(error)}
    except Exception as error:
        import traceback

        traceback.print_exc()
        return {
            "state": TrialState.FAILED.value,
            "reason": f"{type(error).__name__}: {error}"[:500],
        }
    values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    numbers = [None if value is None else float(value) for value in values]
    # Text, since JSON has neither NaN nor infinity.
    return {
        "state": TrialState.COMPLETE.value,
        "values": [None if number is None else str(number) for number in numbers],
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
