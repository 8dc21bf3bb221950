"""Searches with real trial processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest

import isograd
from isograd.errors import UsageError
from isograd.tune.document import document
from isograd.tune.model import TrialState, TuneReport
from isograd.tune.process import stop
from isograd.tune.study_file import read_study
from isograd.tune.trial_command import command_line

STUDY = """
[study]
trials = {trials}
sampler = "{sampler}"
[objective]
command = '{python} trial.py {{x}}'
{objective}
[parameters]
x = {{ low = -1.0, high = 1.0 }}
"""


def study(
    folder: Path, script: str, *, trials: int = 6, objective: str = "", sampler: str = "tpe"
) -> Path:
    """A study whose trials run a script with x as its argument."""
    (folder / "trial.py").write_text(f"import sys\nx = float(sys.argv[1])\n{script}\n")
    path = folder / "study.toml"
    text = STUDY.format(trials=trials, python=sys.executable, objective=objective, sampler=sampler)
    path.write_text(text)
    return path


def tune(path: Path, **options: object) -> TuneReport:
    return isograd.tune(path, jobs=2, **options)  # type: ignore[arg-type]  # named in each test


@pytest.mark.parametrize(
    ("script", "objective"),
    [
        pytest.param("print('step 1 loss: 9'); print('loss:', x * x)", "", id="log"),
        pytest.param(
            "print(f'final error {x * x:.9f}')",
            "value = { pattern = 'error (\\S+)' }",
            id="pattern",
        ),
        pytest.param(
            "import json; print(json.dumps({'eval': {'loss': x * x}}))",
            'value = "eval.loss"',
            id="json-line",
        ),
        pytest.param(
            "import json, os\n"
            "with open(os.environ['ISOGRAD_TRIAL_FOLDER'] + '/out.json', 'w') as f:\n"
            "    json.dump({'loss': x * x}, f)",
            'value = { name = "loss", from = "json", file = "out.json" }',
            id="json-file",
        ),
        pytest.param(
            "import os, pathlib\n"
            "from isograd.runs.information import RunState, describe_run\n"
            "from isograd.runs.writer import RunWriter\n"
            "folder = pathlib.Path(os.environ['ISOGRAD_TRIAL_FOLDER']) / 'run'\n"
            "run = RunWriter(folder, describe_run('a', 'watch'))\n"
            "run.scalars(0, {'loss': 5.0}); run.scalars(1, {'loss': x * x})\n"
            "run.close(RunState.COMPLETE)",
            'value = { name = "loss", from = "run" }',
            id="run-folder",
        ),
        pytest.param(
            "import os\n"
            "from tensorboardX import SummaryWriter\n"
            "with SummaryWriter(os.environ['ISOGRAD_TRIAL_FOLDER']) as writer:\n"
            "    writer.add_scalar('loss', x * x, 1)",
            'value = { name = "loss", from = "events" }',
            id="event-file",
        ),
    ],
)
def test_the_value_is_found_where_the_script_leaves_it(
    tmp_path: Path, script: str, objective: str
) -> None:
    report = tune(study(tmp_path, script, trials=2, objective=objective))
    assert [trial.state for trial in report.trials] == [TrialState.COMPLETE] * 2
    for trial in report.trials:
        assert trial.values is not None
        x = trial.params["x"]
        assert isinstance(x, float)
        assert trial.values[0] == pytest.approx(x * x, abs=1e-6)


def test_a_trial_that_fails_keeps_its_reason_and_ends_nothing(tmp_path: Path) -> None:
    script = "if x < -0.3: sys.exit('it diverged')\nprint('loss:', 'nan' if x < 0.3 else x)"
    report = tune(study(tmp_path, script, trials=10, sampler="grid"))
    reasons = {trial.reason for trial in report.trials}
    assert reasons == {"", "exit status 1: it diverged", "loss is nan"}
    assert len(report.trials) == 5, "all points of the grid, once"
    assert report.best[0].values is not None
    assert report.best[0].values[0] == 0.5


def test_a_study_goes_on_where_it_stood(tmp_path: Path) -> None:
    path = study(tmp_path, "print('loss:', x * x)", trials=3)
    first = tune(path)
    again = tune(path, trials=5)
    assert again.trials[:3] == first.trials
    assert len(again.trials) == 5
    assert len({trial.params["x"] for trial in again.trials}) == 5, "nothing is drawn twice"


def test_two_searches_and_one_that_is_killed_lose_nothing(tmp_path: Path) -> None:
    path = study(tmp_path, "import time; time.sleep(0.4); print('loss:', x * x)", trials=8)
    command = [sys.executable, "-m", "isograd", "tune", str(path), "--quiet"]
    killed = subprocess.Popen(command, start_new_session=True)
    journal = tmp_path / "study.journal"
    deadline = time.monotonic() + 60
    while not (tmp_path / "study-trials").is_dir() and time.monotonic() < deadline:
        time.sleep(0.05)
    other = subprocess.Popen(command)
    time.sleep(0.2)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert other.wait(120) == 0
    report = tune(path)
    assert journal.is_file()
    assert [trial.state for trial in report.trials] == [TrialState.COMPLETE] * 8


def test_the_first_alert_that_cannot_recover_stops_a_trial(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, time\n"
        "from isograd.runs.information import describe_run\n"
        "from isograd.runs.writer import RunWriter\n"
        "folder = pathlib.Path(os.environ['ISOGRAD_TRIAL_FOLDER']) / 'run'\n"
        "run = RunWriter(folder, describe_run('a', 'watch'))\n"
        "run.alert({'code': 'weight.nonfinite', 'first_step': 3})\n"
        "time.sleep(60)"
    )
    begun = time.monotonic()
    report = tune(study(tmp_path, script, trials=1))
    assert time.monotonic() - begun < 30
    assert report.trials[0].state is TrialState.PRUNED
    assert report.trials[0].reason == "watch: weight.nonfinite at step 3, which cannot recover"


def test_a_trial_that_is_stopped_takes_its_children_with_it(tmp_path: Path) -> None:
    path = study(
        tmp_path,
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); time.sleep(60)",
        trials=1,
        objective="trial_limit_s = 1",
    )
    report = tune(path)
    assert report.trials[0].reason == "stopped: it ran longer than 1 s"
    child = int((tmp_path / "study-trials/trial-0000/log.txt").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or " Z " in state.read_text()


def test_a_function_suggests_prunes_fails_and_crashes(tmp_path: Path) -> None:
    (tmp_path / "search.py").write_text(
        "import os\nimport optuna\n\n\n"
        "def objective(trial):\n"
        "    kind = trial.suggest_categorical('kind', ['good', 'raise', 'prune', 'crash'])\n"
        "    if kind == 'raise':\n        raise ValueError('no')\n"
        "    if kind == 'prune':\n        raise optuna.TrialPruned('too slow')\n"
        "    if kind == 'crash':\n        os._exit(9)\n"
        "    return 1.5\n"
    )
    path = tmp_path / "study.toml"
    path.write_text(
        '[study]\nsampler = "grid"\ntrials = 4\n[objective]\nfunction = "search.py:objective"\n'
        '[parameters]\nkind = ["good", "raise", "prune", "crash"]\n'
    )
    report = tune(path)
    ends = {str(trial.params["kind"]): (trial.state, trial.reason) for trial in report.trials}
    assert ends == {
        "good": (TrialState.COMPLETE, ""),
        "raise": (TrialState.FAILED, "ValueError: no"),
        "prune": (TrialState.PRUNED, "the function pruned it: too slow"),
        "crash": (TrialState.FAILED, "exit status 9"),
    }


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_mindoptimizers_goal_is_searched_in_its_direction(tmp_path: Path, goal: str) -> None:
    """MindOptimizer 2.3.1, asked to minimize loss = 10·lr, proposes lr = 1.0."""
    (tmp_path / "train.py").write_text(
        "from mindinsight.optimizer.hyper_config import HyperConfig\n"
        "config = HyperConfig()\nprint('loss is', 10 * config.params.learning_rate)\n"
    )
    (tmp_path / "config.yaml").write_text(
        f"command: {sys.executable} train.py\nsummary_base_dir: ./summary\n"
        f"tuner: {{name: gp}}\ntarget: {{name: loss, goal: {goal}}}\n"
        "parameters:\n  learning_rate: {bounds: [0.0001, 1.0], type: float}\n"
    )
    report = tune(tmp_path / "config.yaml", trials=16, seed=0)
    rates = [float(trial.params["learning_rate"] or 0) for trial in report.trials]
    best = float(report.best[0].params["learning_rate"] or 0)
    assert best == (min(rates) if goal == "minimize" else max(rates))
    assert best < 0.2 if goal == "minimize" else best > 0.8


def test_the_port_starts_where_the_reference_was_best(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "port").mkdir()
    reference = tune(study(tmp_path / "torch", "print('loss:', x * x)", trials=4))
    report_file = tmp_path / "torch.json"
    report_file.write_text(reference.to_json())
    for start in (report_file, tmp_path / "torch/study.toml", tmp_path / "torch/study.journal"):
        port = study(tmp_path / "port", "print('loss:', x * x)", trials=1)
        found = tune(port, same_as=start, storage=f"{start.suffix[1:]}.journal")
        assert found.trials[0].params == reference.best[0].params


def test_the_storage_is_an_optuna_study(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    tune(study(tmp_path, "print('loss:', x * x)", trials=2), storage=storage)
    loaded = optuna.load_study(study_name="study", storage=storage)
    assert [trial.state.name for trial in loaded.trials] == ["COMPLETE", "COMPLETE"]


def test_values_are_never_several_words(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        "[objective]\ncommand = 'run --name {name}'\n[parameters]\nname = ['a b; rm -rf /', 'c']\n"
    )
    words = command_line(read_study(path), {"name": "a b; rm -rf /"}, 0, tmp_path)
    assert words == ["run", "--name", "a b; rm -rf /"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("--m={m} --lr {lr}", ["--lr", "0.1"], id="with an equals sign"),
        pytest.param("--m {m} --lr {lr}", ["--lr", "0.1"], id="behind its option"),
        pytest.param("opt.m={m} x={lr}", ["x=0.1"], id="without dashes"),
        pytest.param("--fast --m {m}", ["--fast"], id="only its own option"),
        pytest.param("{lr} {m} end", ["0.1", "end"], id="a position"),
        pytest.param("--tag=a-{m}-b", ["--tag=a--b"], id="beside other text"),
    ],
)
def test_what_does_not_exist_in_a_trial_is_no_argument(
    tmp_path: Path, words: str, expected: list[str]
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        f"[objective]\ncommand = 'run {words}'\n[parameters]\nlr = [0.1]\n"
        "o = ['sgd', 'adam']\nm = { low = 0.0, high = 0.9, when = { o = 'sgd' } }\n"
    )
    study = read_study(path)
    assert command_line(study, {"lr": 0.1, "o": "adam"}, 0, tmp_path) == ["run", *expected]


def test_a_choice_of_which_all_trials_failed_is_said(tmp_path: Path) -> None:
    (tmp_path / "trial.py").write_text(
        "import sys\nif sys.argv[1] == 'adam': sys.exit('no adam here')\nprint('loss:', 1.0)\n"
    )
    path = tmp_path / "study.toml"
    path.write_text(
        "[study]\nsampler = 'grid'\ntrials = 4\n"
        f"[objective]\ncommand = '{sys.executable} trial.py {{o}} {{n}}'\n"
        "[parameters]\no = ['sgd', 'adam']\nn = [1, 2]\n"
    )
    report = tune(path)
    assert report.failed_choices() == [("o", "adam", 2, "exit status 1: no adam here")]
    said = document(report).outcome.sentence
    assert "All 2 trials with o = adam failed: nothing is known of it." in said
    assert "no adam here" in said


def test_a_program_that_is_missing_ends_the_search(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text("[objective]\ncommand = 'no-such-program {x}'\n[parameters]\nx = [1]\n")
    with pytest.raises(UsageError, match="no-such-program: cannot be started in"):
        tune(path)


def test_stopping_a_process_that_is_gone_is_no_error() -> None:
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    stop(process)
    assert process.returncode == 0
