"""One study file for the reference's script and the port's, and a search on Dask's workers."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import optuna
import pytest

import isograd
from isograd.tune.model import TrialState
from isograd.tune.results import summarised
from isograd.tune.study_file import read_study

EXAMPLE = Path(__file__).parents[2] / "examples" / "tune"


@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_the_same_yaml_runs_the_reference_and_the_port(
    tmp_path: Path, framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    shutil.copy(EXAMPLE / framework / "train.py", tmp_path)
    shutil.copy(EXAMPLE / "study.yaml", tmp_path)
    report = isograd.tune(tmp_path / "study.yaml", trials=1, seed=0)
    (trial,) = report.trials
    assert trial.state is TrialState.COMPLETE, trial.reason
    assert set(trial.params) == {"learning_rate", "momentum", "weight_decay", "batch_size"}
    assert trial.values is not None
    assert 0 < trial.values[0] < 2.5, "random guessing among ten digits has 2.30"


def test_the_workers_of_dask_share_a_study(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "trial.py").write_text("import sys\nprint('loss:', float(sys.argv[1]) ** 2)\n")
    path = tmp_path / "study.toml"
    path.write_text(
        "[study]\ntrials = 6\n[objective]\n"
        f"command = '{sys.executable} trial.py {{x}}'\n"
        "[parameters]\nx = { low = -1.0, high = 1.0 }\n"
    )
    report = isograd.tune(path, jobs=2, engine="dask")
    assert [trial.state for trial in report.trials] == [TrialState.COMPLETE] * 6
    assert len({trial.params["x"] for trial in report.trials}) == 6, "the workers draw differently"
    assert isograd.tune(path, trials=0).trials == report.trials


def test_importance_of_many_trials_is_that_of_a_part(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        "[objective]\ncommand = 'true {x} {y}'\n"
        "[parameters]\nx = { low = 0.0, high = 1.0 }\ny = { low = 0.0, high = 1.0 }\n"
    )
    plan = read_study(path)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(
        lambda trial: trial.suggest_float("x", 0, 1) + 0.01 * trial.suggest_float("y", 0, 1),
        n_trials=300,
    )
    report = summarised(plan, study)
    assert "128 of 300 complete trials" in report.importance_method
    assert report.importance["x"] > 0.95
