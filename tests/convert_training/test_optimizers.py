"""Each optimizer makes torch's steps: with groups, without a gradient, and after a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("mindspore")

import mindspore as ms

from isograd.knowledge.composites import training_optimizers

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "betas": (0.5, 0.999), "weight_decay": 0.1, "eps": 1e-4}),
    ("Adam", {"lr": 0.01, "amsgrad": True}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"lr": 0.5, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.01, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.01, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {"lr": 0.1, "t0": 3.0, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.01}),
]
STEPS = 12


class Pair:
    """The same parameters and optimizer on both sides."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.random = np.random.default_rng(0)
        values = [self.random.normal(size=shape).astype(np.float32) for shape in ((3, 4), (4,))]
        self.ours = [ms.Parameter(ms.Tensor(v.copy()), name=f"p{i}") for i, v in enumerate(values)]
        self.theirs = [torch.nn.Parameter(torch.from_numpy(v.copy())) for v in values]
        self.port = getattr(training_optimizers, name)(self._groups(self.ours), **options)
        self.original = getattr(torch.optim, name)(self._groups(self.theirs), **options)

    @staticmethod
    def _groups(parameters: list[Any]) -> list[dict[str, Any]]:
        return [{"params": [parameters[0]]}, {"params": [parameters[1]], "lr": 0.05}]

    def step(self, *, missing: bool = False) -> None:
        for number, (mine, other) in enumerate(zip(self.ours, self.theirs, strict=True)):
            gradient = self.random.normal(size=other.shape).astype(np.float32)
            is_there = not (missing and number)
            mine.grad = ms.Tensor(gradient) if is_there else None
            other.grad = torch.from_numpy(gradient) if is_there else None
        self.port.step()
        self.original.step()

    def check(self) -> None:
        for mine, other in zip(self.ours, self.theirs, strict=True):
            np.testing.assert_allclose(mine.asnumpy(), other.detach().numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps_follow_torch(name: str, options: dict[str, Any]) -> None:
    pair = Pair(name, options)
    for number in range(STEPS):
        pair.step(missing=number in (0, 4))
        pair.check()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_state_goes_on_where_it_was(name: str, options: dict[str, Any]) -> None:
    pair, again = Pair(name, options), Pair(name, options)
    for _ in range(3):
        pair.step()
        again.random.normal(size=(3, 4)), again.random.normal(size=(4,))
    for mine, other in zip(pair.ours, again.ours, strict=True):
        other.set_data(ms.Tensor(mine.asnumpy()))
    again.port.load_state_dict(pair.port.state_dict())
    for _ in range(3):
        pair.step()
        again.step()
    for mine, other in zip(pair.ours, again.ours, strict=True):
        np.testing.assert_array_equal(mine.asnumpy(), other.asnumpy())


def test_state_dict_has_torchs_shape() -> None:
    pair = Pair("Adam", {"lr": 0.01})
    pair.step()
    ours, theirs = pair.port.state_dict(), pair.original.state_dict()
    assert set(ours["state"]) == set(theirs["state"])
    assert set(ours["state"][0]) == set(theirs["state"][0])
    assert [group["params"] for group in ours["param_groups"]] == [[0], [1]]


@pytest.mark.parametrize("given", [[], [{"params": [0]}, {"params": [0]}]])
def test_wrong_groups_are_refused(given: list[Any]) -> None:
    parameter = ms.Parameter(ms.Tensor([0.0]), name="p")
    groups = [{"params": [parameter for _ in group["params"]]} for group in given]
    with pytest.raises(ValueError, match="param"):
        training_optimizers.SGD(groups, lr=0.1)
