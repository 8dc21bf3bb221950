"""Study files: isograd's TOML and MindOptimizer's YAML, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from isograd.errors import UsageError
from isograd.tune.model import Direction
from isograd.tune.space import Kind, Parameter
from isograd.tune.study import Objective, Origin, Pruner, Sampler
from isograd.tune.study_file import read_study

STUDY = """
[study]
trials = 12
direction = "maximize"
pruner = "median"

[objective]
command = "python train.py --lr {lr} --layers {layers}"
value = { name = "accuracy", from = "log", pattern = 'acc=([0-9.]+)' }

[parameters]
lr = { low = 1e-5, high = 0.1, log = true }
layers = { low = 1, high = 8 }
optimizer = ["sgd", "adam"]
momentum = { low = 0.0, high = 0.99, when = { optimizer = "sgd" } }
"""

# As in MindInsight's documentation of MindOptimizer.
MINDOPTIMIZER = """
command: python train.py
summary_base_dir: ./summary
tuner:
  name: gp
  args: { method: ucb }
target:
  group: metric
  name: accuracy
  goal: maximize
parameters:
  learning_rate: { bounds: [0.0001, 0.001], type: float, source: system_defined }
  batch_size: { choice: [32, 64, 128], source: system_defined }
  decay_step: { bounds: [10, 20], type: int, source: user_defined }
"""


def write(tmp_path: Path, text: str, name: str = "study.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_study_in_toml(tmp_path: Path) -> None:
    study = read_study(write(tmp_path, STUDY))
    assert (study.name, study.trials, study.pruner) == ("study", 12, Pruner.MEDIAN)
    assert study.sampler is Sampler.TPE
    pattern = "acc=([0-9.]+)"
    objective = Objective("accuracy", Direction.MAXIMIZE, Origin.LOG, pattern=pattern)
    assert study.objectives == (objective,)
    assert study.parameters == (
        Parameter("lr", Kind.FLOAT, 1e-5, 0.1, is_log=True),
        Parameter("layers", Kind.INT, 1.0, 8.0),
        Parameter("optimizer", Kind.CATEGORICAL, choices=("sgd", "adam")),
        Parameter("momentum", Kind.FLOAT, 0.0, 0.99, condition={"optimizer": ("sgd",)}),
    )


def test_a_configuration_of_mindoptimizer(tmp_path: Path) -> None:
    study = read_study(write(tmp_path, MINDOPTIMIZER, "config.yaml"))
    assert study.objectives == (Objective("accuracy", Direction.MAXIMIZE),)
    assert study.folder == tmp_path / "summary"
    rate, size, step = study.parameters
    assert (rate.kind, rate.low) == (Kind.FLOAT, 0.0001)
    assert 0.00099 < rate.high < 0.001, "MindOptimizer's bounds exclude the upper one"
    assert size.choices == (32, 64, 128)
    assert (step.kind, step.low, step.high) == (Kind.INT, 10, 19)


def test_mindoptimizer_minimizes_where_no_goal_is_given(tmp_path: Path) -> None:
    text = MINDOPTIMIZER.replace("  goal: maximize\n", "")
    study = read_study(write(tmp_path, text, "config.yaml"))
    assert study.objectives[0].direction is Direction.MINIMIZE


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param("[objective]", "[objektive]", "objektive is not known", id="misspelt-table"),
        pytest.param("trials", "trails", "did you mean trials?", id="misspelt-key"),
        pytest.param('"median"', '"mean"', "pruner: 'mean' is unknown", id="unknown-pruner"),
        pytest.param("{lr}", "{rl}", "{rl}, which is no hyper-parameter", id="template"),
        pytest.param("1e-5", "0.0", "needs low above 0", id="log-of-zero"),
        pytest.param("low = 1,", "low = 9,", "low 9 is above high 8", id="empty-range"),
        pytest.param("low = 1,", "", "low is missing or no number", id="no-low"),
        pytest.param('"sgd", "adam"', "", "choices is no list, or is empty", id="no-choices"),
        pytest.param('optimizer = "sgd"', 'solver = "sgd"', "does not come before", id="when"),
        pytest.param("(", "", "has no group for the number", id="no-group"),
        pytest.param("trials = 12", "trials = 0", "no integer of 1 or more", id="no-trials"),
        pytest.param("[study]", "[study", "is no TOML", id="no-toml"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = STUDY.replace(before, after, 1)
    if before == "(":
        text = text.replace("[0-9.]+)", "[0-9.]+", 1)
    with pytest.raises(UsageError) as caught:
        read_study(write(tmp_path, text))
    assert message in str(caught.value)
    assert "?." not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param("goal: maximize", "goal: maximise", "did you mean maximize?", id="goal"),
        pytest.param("type: int, ", "", "bounds need the type int or float", id="no-type"),
        pytest.param("[10, 20]", "[20, 10]", "low < high", id="order"),
        pytest.param("command", "comand", "did you mean command?", id="misspelt-key"),
        pytest.param("[10, 20]", "!!python/object/apply:os.system [ls]", "no YAML", id="object"),
    ],
)
def test_what_is_wrong_with_mindoptimizers_is_named(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    text = MINDOPTIMIZER.replace(before, after, 1)
    with pytest.raises(UsageError) as caught:
        read_study(write(tmp_path, text, "config.yaml"))
    assert message in str(caught.value)
