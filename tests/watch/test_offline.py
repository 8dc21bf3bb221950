"""Runs that others wrote, and runs beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import isograd
from isograd.errors import IsogradError, RunError
from isograd.runs.information import RunState, describe_run
from isograd.runs.writer import RunWriter
from isograd.watch.document import document
from isograd.watch.model import WatchReport, WatchVerdict


def codes(report: WatchReport) -> set[str]:
    return {alert.code for alert in report.alerts if alert.severity.value == "alert"}


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        pytest.param([2.0 / (1 + n) + 0.5 for n in range(40)], set(), id="healthy"),
        pytest.param([2.0, 1.9, float("nan"), 1.8], {"loss.nonfinite"}, id="nan"),
        pytest.param([2.0, 1.9, *[1.8] * 12], {"loss.constant"}, id="constant"),
        pytest.param([2.0, 8.0, 64.0, 512.0, 4e3], {"loss.diverging"}, id="diverging"),
    ],
)
def test_a_log_of_losses(tmp_path: Path, losses: list[float], expected: set[str]) -> None:
    lines = [f"epoch: 1 step: {n + 1}, loss is {loss}" for n, loss in enumerate(losses)]
    (tmp_path / "train.log").write_text("\n".join(lines))
    report = isograd.watch(tmp_path / "train.log")
    assert codes(report) == expected
    assert report.steps == len(losses)


def test_a_series_of_checkpoints(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    frozen, moving = draw.standard_normal((4, 4)), draw.standard_normal((4, 4))
    for step in (2, 10, 100, 200, 300, 400):
        moving = moving + 1e-3 * draw.standard_normal((4, 4))
        np.savez(tmp_path / f"net-{step}.npz", **{"a.weight": frozen, "b.weight": moving})
    report = isograd.watch(tmp_path)
    (alert,) = [a for a in report.alerts if a.code == "weight.unchanged"]
    assert alert.tensor == "a.weight"
    np.savez(tmp_path / "net-500.npz", **{"c.weight": frozen})
    with pytest.raises(RunError, match=r"net-500.npz: has no tensor 'a.weight'"):
        isograd.watch(tmp_path)


def test_a_dump_names_the_first_operator(tmp_path: Path) -> None:
    values = {
        ("Conv2D", "Default_net_conv1_Conv2D-op1", 1000): ([1.0, 2.0], [1.0, 0.0]),
        ("Log", "Default_net_head-Dense_Log-op2", 2000): ([1.0, 0.0], [0.0, -np.inf]),
        ("Mul", "Default_net_head-Dense_Mul-op3", 3000): ([0.0, -np.inf], [0.0, np.nan]),
    }
    for (kind, name, time), (given, made) in values.items():
        for side, array in (("input", given), ("output", made)):
            file = f"{kind}.{name}.0.0.{time + 1000000}.{side}.0.DefaultFormat.float32.npy"
            np.save(tmp_path / file, np.array(array, np.float32))
    report = isograd.watch(tmp_path)
    assert report.first_nonfinite is not None
    assert report.first_nonfinite["operator"] == "Log"
    assert report.first_nonfinite["kind"] == "inf"
    assert report.needs_action


def test_statistics_of_msprobe(tmp_path: Path) -> None:
    def tensor(high: float) -> dict[str, object]:
        return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": high,
                "Min": 0.0, "Mean": high, "Norm": high}  # fmt: skip

    data = {
        "Module.conv1.Conv2d.forward.0": {"input_args": [tensor(1)], "output": [tensor(2)]},
        "Functional.exp.0.forward": {"input_args": [tensor(99)], "output": [tensor(float("inf"))]},
    }
    (tmp_path / "dump.json").write_text(json.dumps({"task": "statistics", "data": data}))
    origin = isograd.watch(tmp_path).first_nonfinite
    assert origin is not None
    assert origin["operator"] == "exp"


def test_the_monitor_of_msprobe(tmp_path: Path) -> None:
    folder = tmp_path / "rank_0"
    folder.mkdir()
    rows = ["vpp_stage,step,module_name,scope,min,max,mean,norm,nans"]
    for step in range(6):
        norm = "nan" if step == 4 else "0.5"
        rows += [f"0,{step},a.weight,reduced,-1,1,0,0.4,False",
                 f"0,{step},b.weight,reduced,-1,1,0,{norm},{step == 4}"]  # fmt: skip
    (folder / "weight_grad_step0-5.csv").write_text("\n".join([*rows, "0,6,a.wei"]))
    report = isograd.watch(tmp_path)
    (alert,) = [a for a in report.alerts if a.code == "gradient.nonfinite"]
    assert (alert.first_step, alert.tensor) == (4, "b.weight")


def run(
    folder: Path,
    factor: float = 1.0,
    seed: int = 0,
    names: tuple[str, ...] = ("weight", "bias"),
    overflows: int = 0,
) -> Path:
    draw = np.random.default_rng(seed)
    writer = RunWriter(folder, describe_run(folder.name, "watch"))
    for step in range(30 + overflows):
        at = max(0, step - overflows)
        noise = 1 + 0.02 * draw.standard_normal()
        scalars = {"loss": noise * 2 * np.exp(-at / 30), "scale": 1024.0}
        writer.scalars(step, {**scalars, "overflow": float(step < overflows)})
        grown = noise * (factor if at >= 10 else 1.0) * np.exp(-at / 5)
        writer.statistics(
            step, {f"gradient/bn.{names[0]}/norm": grown, f"gradient/bn.{names[1]}/norm": noise}
        )
    writer.close(RunState.COMPLETE)
    return folder


def test_a_port_within_the_spread_of_the_seeds(tmp_path: Path) -> None:
    references = [run(tmp_path / f"torch{seed}", seed=seed) for seed in range(3)]
    port = run(tmp_path / "port", seed=9, names=("gamma", "beta"), overflows=8)
    report = isograd.watch(port, against=references)
    assert report.verdict is WatchVerdict.HEALTHY
    assert any("2 series" in note for note in report.notes)


def test_a_port_that_departs(tmp_path: Path) -> None:
    reference = run(tmp_path / "torch")
    port = run(tmp_path / "port", factor=5.0, names=("gamma", "beta"))
    (alert,) = isograd.watch(port, against=reference).alerts
    assert (alert.code, alert.first_step, alert.tensor) == ("reference.departs", 10, "bn.gamma")


def _with_rounding(folder: Path, seed: int) -> Path:
    """A run whose bias before a normalisation has gradients of rounding alone."""
    draw = np.random.default_rng(seed)
    writer = RunWriter(folder, describe_run(folder.name, "watch"))
    for step in range(20):
        spread = float(np.exp(0.1 * draw.standard_normal()))
        writer.scalars(step, {"loss": 2.0 + seed / 10})
        writer.statistics(
            step,
            {
                "gradient/stem.weight/norm": spread,
                "gradient/head.weight/norm": 1.0 + seed / 100,
                "gradient/stem.bias/norm": 1e-8 * 40.0 ** (seed == 9),
            },
        )
    writer.close(RunState.COMPLETE)
    return folder


def test_rounding_is_no_departure(tmp_path: Path) -> None:
    references = [_with_rounding(tmp_path / f"torch{seed}", seed) for seed in range(4)]
    report = isograd.watch(_with_rounding(tmp_path / "port", 9), against=references)
    assert [alert.tensor for alert in report.alerts] == []


def test_one_run_of_another_seed_shows_no_spread(tmp_path: Path) -> None:
    reference = run(tmp_path / "torch", seed=1)
    usual = isograd.watch(run(tmp_path / "usual", factor=5.0), against=reference)
    assert [alert.code for alert in usual.alerts] == []
    assert any("a factor of 10 or more count; give 4 or more" in note for note in usual.notes)
    wrong = isograd.watch(run(tmp_path / "wrong", factor=20.0), against=reference)
    assert [alert.code for alert in wrong.alerts] == ["reference.departs"]


def _within(folder: Path, prefix: str, whole: float, factor: float = 1.0) -> Path:
    """A network that is watched alone, or as a part of another whose output is the loss."""
    writer = RunWriter(folder, describe_run(folder.name, "watch"))
    dot = "." * bool(prefix)
    for step in range(10):
        writer.scalars(step, {"loss": 2.0})
        writer.statistics(
            step,
            {
                f"gradient/{prefix}{dot}stem.weight/norm": factor,
                f"weight/{prefix}{dot}head.weight/norm": 3.0,
                f"output/{prefix}{dot}stem/abs_mean": 0.5,
                f"output/{prefix}/abs_mean": 0.3,
                "output//abs_mean": whole,
            },
        )
    writer.close(RunState.COMPLETE)
    return folder


@pytest.mark.parametrize("is_port", [True, False])
def test_a_network_within_another(tmp_path: Path, is_port: bool) -> None:
    inner = _within(tmp_path / "inner", "_backbone", whole=2.0)
    alone = _within(tmp_path / "alone", "", whole=0.3)
    port, reference = (inner, alone) if is_port else (alone, inner)
    report = isograd.watch(port, against=reference)
    assert report.verdict is WatchVerdict.HEALTHY, report.alerts
    assert any("4 series" in note for note in report.notes)
    assert any("'_backbone' in" in note for note in report.notes)
    wrong = _within(tmp_path / "wrong", "_backbone", whole=2.0, factor=5.0)
    (alert,) = isograd.watch(wrong, against=alone).alerts
    assert (alert.code, alert.tensor) == ("reference.departs", "_backbone.stem.weight")


def _shuffled(folder: Path, factor: float) -> Path:
    """A run whose batches, and with them its gradients, are others from step 10 on."""
    writer = RunWriter(folder, describe_run(folder.name, "watch"))
    for step in range(20):
        by = factor if step >= 10 else 1.0
        writer.scalars(step, {"loss": 2.0 * by**0.1})
        writer.statistics(step, {"gradient/stem.weight/norm": by})
    writer.close(RunState.COMPLETE)
    return folder


def test_losses_that_jump_apart_are_said(tmp_path: Path) -> None:
    reference = _shuffled(tmp_path / "torch", 1.0)
    report = isograd.watch(_shuffled(tmp_path / "port", 3.0), against=reference)
    assert [alert.first_step for alert in report.alerts] == [10]
    assert any("until step 10 and differ there at once" in note for note in report.notes)


def test_the_first_alert_by_step_is_named(tmp_path: Path) -> None:
    port = run(tmp_path / "port", factor=5.0)
    late = {"code": "gradient.zero", "severity": "alert", "first_step": 25, "last_step": 29}
    rest = {"count": 5, "module": "", "tensor": "", "value": 0.0, "limit": None, "source": ""}
    line = json.dumps({**late, **rest, "message": "zero", "advice": ""})
    (port / "alerts.jsonl").write_text(line + "\n")
    report = isograd.watch(port, against=run(tmp_path / "torch"))
    assert (
        "reference.departs at step 10 is the first of 2 alerts" in document(report).outcome.sentence
    )


def test_a_reference_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(IsogradError, match="nothere does not exist"):
        isograd.watch(run(tmp_path / "port"), against=tmp_path / "nothere")


def test_runs_of_different_networks(tmp_path: Path) -> None:
    reference = run(tmp_path / "a", names=("one", "two"))
    port = run(tmp_path / "b", names=("three", "four"))
    with pytest.raises(RunError, match="none of its parameters corresponds to the reference's"):
        isograd.watch(port, against=reference)


def test_a_rank_that_starts_elsewhere(tmp_path: Path) -> None:
    for rank, norm in enumerate((1.0, 1.0, 1.1)):
        writer = RunWriter(tmp_path / f"rank_{rank}", describe_run("a", "watch"))
        for step in range(3):
            writer.scalars(step, {"loss": 1.0 / (step + 1)})
            writer.statistics(step, {"weight/a.weight/norm": norm, "gradient/a.weight/norm": 0.5})
        writer.close(RunState.COMPLETE)
    (alert,) = isograd.watch(tmp_path).alerts
    assert alert.code == "rank.starts_apart"
    assert "rank_2" in alert.message


def test_tensorboard_events(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from isograd.compare.files.logs import read_series

    isograd.watch(run(tmp_path / "a"), tensorboard=tmp_path / "events")
    _, series = read_series(tmp_path / "events")
    assert len(series["loss"]) == 30
    assert isograd.watch(tmp_path / "events").steps == 30


def test_a_run_without_a_step(tmp_path: Path) -> None:
    RunWriter(tmp_path / "a", describe_run("a", "watch")).close(RunState.COMPLETE)
    with pytest.raises(RunError, match=r"no step was recorded. The optimizer never stepped"):
        isograd.watch(tmp_path / "a")
