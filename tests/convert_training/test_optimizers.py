"""Each optimizer makes torch's steps: with groups, without a gradient, and after a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("mindspore")

import mindspore as ms

from isograd.runtime import training_lbfgs, training_optimizers

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
    """The same parameters and optimizer on both sides: two of real numbers, one of complex ones."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.random = np.random.default_rng(0)
        values = self.drawn()
        self.ours = [ms.Parameter(ms.Tensor(v.copy()), name=f"p{i}") for i, v in enumerate(values)]
        self.theirs = [torch.nn.Parameter(torch.from_numpy(v.copy())) for v in values]
        self.port = getattr(training_optimizers, name)(self._groups(self.ours), **options)
        self.original = getattr(torch.optim, name)(self._groups(self.theirs), **options)

    @staticmethod
    def _groups(parameters: list[Any]) -> list[dict[str, Any]]:
        return [{"params": parameters[::2]}, {"params": [parameters[1]], "lr": 0.05}]

    def drawn(self) -> list[Any]:
        first, second, real, imaginary = (
            self.random.normal(size=shape).astype(np.float32)
            for shape in ((3, 4), (4,), (2, 3), (2, 3))
        )
        return [first, second, real + np.complex64(1j) * imaginary]

    def step(self, *, missing: bool = False) -> None:
        given = zip(self.ours, self.theirs, self.drawn(), strict=True)
        for number, (mine, other, gradient) in enumerate(given):
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
        again.drawn()
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
    assert [group["params"] for group in ours["param_groups"]] == [[0, 1], [2]]
    for number, kept in theirs["state"].items():
        mine = ours["state"][number]["exp_avg"].asnumpy()
        np.testing.assert_allclose(mine, kept["exp_avg"].numpy(), rtol=1e-6)


@pytest.mark.parametrize("given", [[], [{"params": [0]}, {"params": [0]}]])
def test_wrong_groups_are_refused(given: list[Any]) -> None:
    parameter = ms.Parameter(ms.Tensor([0.0]), name="p")
    groups = [{"params": [parameter for _ in group["params"]]} for group in given]
    with pytest.raises(ValueError, match="param"):
        training_optimizers.SGD(groups, lr=0.1)


VALLEY = [
    {"lr": 0.3, "max_iter": 4},
    {"lr": 0.1, "history_size": 2},
    {"max_iter": 5, "line_search_fn": "strong_wolfe"},
    {"max_iter": 12, "max_eval": 9, "line_search_fn": "strong_wolfe", "history_size": 3},
]


@pytest.mark.parametrize("options", VALLEY)
def test_lbfgs_asks_as_often_and_goes_where_torch_goes(options: dict[str, Any]) -> None:
    start = np.linspace(-1.2, 1.3, 6).astype(np.float32)

    def rosenbrock(place: Any) -> tuple[float, np.ndarray[Any, Any]]:
        place = np.asarray(place, dtype=np.float64)
        bend = place[1:] - place[:-1] ** 2
        slope = np.zeros_like(place)
        slope[1:] += 2 * bend
        slope[:-1] -= 4 * bend * place[:-1] + 0.02 * (1 - place[:-1])
        return float((bend**2 + 0.01 * (1 - place[:-1]) ** 2).sum()), slope.astype(np.float32)

    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    ours = ms.Parameter(ms.Tensor(start.copy()), name="place")
    asked = [0, 0]

    def their_loss() -> Any:
        asked[0] += 1
        loss, slope = rosenbrock(theirs.detach())
        theirs.grad = torch.from_numpy(slope)
        return torch.tensor(loss)

    def our_loss() -> Any:
        asked[1] += 1
        loss, slope = rosenbrock(ours.asnumpy())
        ours.grad = ms.Tensor(slope)
        return ms.Tensor(loss)

    original = torch.optim.LBFGS([theirs], **options)
    port = training_lbfgs.LBFGS([ours], **options)
    for _ in range(3):
        first, second = original.step(their_loss), port.step(our_loss)
        assert float(first) == pytest.approx(float(second), rel=1e-4)
    assert asked[0] == asked[1]
    np.testing.assert_allclose(ours.asnumpy(), theirs.detach().numpy(), rtol=1e-3, atol=1e-4)


def test_lbfgs_says_what_it_needs() -> None:
    parts = [ms.Parameter(ms.Tensor([float(n)]), name=f"p{n}") for n in range(2)]
    with pytest.raises(ValueError, match="parameter groups"):
        training_lbfgs.LBFGS([{"params": [parts[0]]}, {"params": [parts[1]]}])
    with pytest.raises(ValueError, match="closure"):
        training_lbfgs.LBFGS(parts).step()
