"""Each schedule sets the same rates and momenta as torch's, step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("mindspore")

import mindspore as ms

from isograd import runtime
from isograd.runtime import training_optimizers, training_schedules

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "step": lambda m, o: m.StepLR(o, 3, gamma=0.5),
    "milestones": lambda m, o: m.MultiStepLR(o, [2, 5, 5, 9], gamma=0.5),
    "exponential": lambda m, o: m.ExponentialLR(o, 0.9),
    "constant": lambda m, o: m.ConstantLR(o, factor=0.5, total_iters=4),
    "linear": lambda m, o: m.LinearLR(o, start_factor=0.1, total_iters=6),
    "polynomial": lambda m, o: m.PolynomialLR(o, total_iters=8, power=2.0),
    "cosine": lambda m, o: m.CosineAnnealingLR(o, T_max=7, eta_min=0.01),
    "restarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 4, T_mult=2),
    "lambda": lambda m, o: m.LambdaLR(o, [lambda n: 0.9**n, lambda n: 1 / (n + 1)]),
    "multiplicative": lambda m, o: m.MultiplicativeLR(o, lambda n: 0.95),
    "triangular": lambda m, o: m.CyclicLR(o, 0.01, 0.1, step_size_up=4),
    "triangular2": lambda m, o: m.CyclicLR(o, 0.01, 0.1, 3, 5, mode="triangular2"),
    "exp_range": lambda m, o: m.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.95),
    "one_cycle": lambda m, o: m.OneCycleLR(o, max_lr=0.3, total_steps=25),
    "three_phase": lambda m, o: m.OneCycleLR(
        o,
        max_lr=[0.3, 0.2],
        epochs=5,
        steps_per_epoch=5,
        three_phase=True,
        anneal_strategy="linear",
    ),
    "warm-up and cosine": lambda m, o: m.SequentialLR(
        o, [m.LinearLR(o, 0.1, total_iters=3), m.CosineAnnealingLR(o, 10)], milestones=[3]
    ),
    "three in a row": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o, 0.1), m.StepLR(o, 2), m.ExponentialLR(o, 0.9)], milestones=[4, 12]
    ),
    "chained": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1), m.ExponentialLR(o, 0.9)]),
}


def optimizers() -> tuple[Any, Any]:
    ours = [ms.Parameter(ms.Tensor([0.0]), name=name) for name in "ab"]
    theirs = [torch.nn.Parameter(torch.zeros(1)) for _ in "ab"]

    def groups(several: list[Any]) -> list[dict[str, Any]]:
        return [{"params": [several[0]]}, {"params": [several[1]], "lr": 0.5}]

    return (
        training_optimizers.SGD(groups(ours), lr=0.1, momentum=0.9),
        torch.optim.SGD(groups(theirs), lr=0.1, momentum=0.9),
    )


def settings(optimizer: Any) -> list[float]:
    groups = optimizer.param_groups
    return [group[name] for group in groups for name in ("lr", "momentum")]


@pytest.mark.parametrize("name", CASES)
def test_rates_follow_torch(name: str) -> None:
    port, original = optimizers()
    ours = CASES[name](runtime, port)
    theirs = CASES[name](torch.optim.lr_scheduler, original)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(24):
            assert settings(port) == pytest.approx(settings(original), rel=1e-12), step
            assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-12)
            ours.step()
            theirs.step()


@pytest.mark.parametrize("options", [{}, {"mode": "max", "cooldown": 2}, {"threshold_mode": "abs"}])
def test_plateau_follows_torch(options: dict[str, Any]) -> None:
    port, original = optimizers()
    ours = training_schedules.ReduceLROnPlateau(port, patience=1, factor=0.5, **options)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(original, patience=1, factor=0.5, **options)
    for value in (3.0, 2.0, 2.5, 2.4, 2.6, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        ours.step(value)
        theirs.step(value)
        assert settings(port) == settings(original)


def test_plateau_lowers_a_group_that_was_added_later() -> None:
    port, original = optimizers()
    ours = training_schedules.ReduceLROnPlateau(port, patience=0, min_lr=0.03)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(original, patience=0, min_lr=0.03)
    port.add_param_group({"params": [ms.Parameter(ms.Tensor([0.0]), name="c")], "lr": 0.2})
    original.add_param_group({"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.2})
    for value in (1.0, 2.0, 3.0):
        ours.step(value)
        theirs.step(value)
        assert settings(port) == settings(original)


def test_plateau_refuses_a_later_group_without_a_least_rate() -> None:
    port, _ = optimizers()
    schedule = training_schedules.ReduceLROnPlateau(port, patience=0, min_lr=[0.01, 0.02])
    port.add_param_group({"params": [ms.Parameter(ms.Tensor([0.0]), name="c")]})
    schedule.step(1.0)
    with pytest.raises(RuntimeError, match="min_lrs"):
        schedule.step(2.0)


@pytest.mark.parametrize("name", ["cosine", "step", "warm-up and cosine", "one_cycle", "lambda"])
def test_state_goes_on_where_it_was(name: str) -> None:
    port, _ = optimizers()
    first = CASES[name](runtime, port)
    for _ in range(5):
        first.step()
    again, _ = optimizers()
    second = CASES[name](runtime, again)
    again.load_state_dict(port.state_dict())
    second.load_state_dict(first.state_dict())
    for _ in range(6):
        first.step()
        second.step()
        assert settings(port) == settings(again)


def test_schedules_of_others_ask_whether_a_step_asks_for_rates() -> None:
    """`if not self._get_lr_called_within_step: warnings.warn(…)`, in many public `get_lr`."""
    found = []
    for module, optimizer in zip(
        (training_schedules, torch.optim.lr_scheduler), optimizers(), strict=True
    ):
        asked = []

        class Own(module.LRScheduler):  # type: ignore[misc, name-defined]
            def get_lr(self, asked: list[bool] = asked) -> list[float]:
                asked.append(self._get_lr_called_within_step)
                return [0.5 * group["lr"] for group in self.optimizer.param_groups]

        schedule = Own(optimizer)
        optimizer.step()
        schedule.step()
        schedule.get_lr()
        found.append((asked, settings(optimizer)))
    assert found[0] == found[1]
    assert found[0][0] == [True, True, False]
