"""The optimizers of compiled steps where they step by recorded gradients, beside torch's."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

import mindspore as ms
import torch

from isograd.runtime import training_beside
from isograd.runtime.training_beside import RecordingAdam

#: Each with settings, by its name in torch.
OPTIMIZERS = [
    pytest.param("SGD", {"lr": 0.1}, id="SGD"),
    pytest.param(
        "SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "dampening": 0.2}, id="momentum"
    ),
    pytest.param("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, id="nesterov"),
    pytest.param("Adam", {"lr": 0.1}, id="Adam"),
    pytest.param("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}, id="amsgrad"),
    pytest.param("AdamW", {"lr": 0.1}, id="AdamW"),
    pytest.param("RMSprop", {"lr": 0.1, "momentum": 0.5}, id="RMSprop"),
    pytest.param("Adagrad", {"lr": 0.1, "lr_decay": 0.1}, id="Adagrad"),
    pytest.param("Adadelta", {"lr": 1.0}, id="Adadelta"),
    pytest.param("Adamax", {"lr": 0.1}, id="Adamax"),
]


class Both:
    """Three parameters in both frameworks; two of them have no gradient in some rounds."""

    def __init__(self) -> None:
        self.theirs = [torch.nn.Parameter(torch.arange(4.0) / 3 - k) for k in range(3)]
        self.ours = [
            ms.Parameter(ms.Tensor(part.detach().numpy().copy()), name=f"p{k}")
            for k, part in enumerate(self.theirs)
        ]

    def step(self, theirs: Any, ours: Any, rounds: range) -> None:
        for number in rounds:
            theirs.zero_grad()
            ours.zero_grad()
            for k in range(3):
                if k == 0 or (number + k) % 3:
                    gradient = np.sin(np.arange(4) * (number + 1) + k).astype("f4")
                    self.theirs[k].grad = torch.tensor(gradient)
                    self.ours[k].grad = ms.Tensor(gradient)
            theirs.step()
            ours.step()

    def compare(self) -> None:
        for theirs, ours in zip(self.theirs, self.ours, strict=True):
            np.testing.assert_allclose(ours.asnumpy(), theirs.detach().numpy(), atol=3e-6)


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_a_parameter_without_gradient_stays(name: str, settings: dict[str, Any]) -> None:
    both = Both()
    theirs = getattr(torch.optim, name)(both.theirs, **settings)
    ours = getattr(training_beside, f"Recording{name}")(both.ours, **settings)
    both.step(theirs, ours, range(5))
    both.compare()
    again = getattr(training_beside, f"Recording{name}")(both.ours, **settings)
    again.load_state_dict(ours.state_dict())
    both.step(theirs, again, range(5, 9))
    both.compare()
    steps = {
        k: float(own["step"]) for k, own in theirs.state_dict()["state"].items() if "step" in own
    }
    if steps:
        found = again.state_dict()["state"]
        assert {k: float(own["step"]) for k, own in found.items()} == steps


@pytest.mark.parametrize(("name", "settings"), OPTIMIZERS)
def test_the_state_of_the_beginning_forgets_all_steps(name: str, settings: dict[str, Any]) -> None:
    """A search for a learning rate gives back what it began with."""
    both = Both()
    theirs = getattr(torch.optim, name)(both.theirs, **settings)
    ours = getattr(training_beside, f"Recording{name}")(both.ours, **settings)
    first = copy.deepcopy(theirs.state_dict()), copy.deepcopy(ours.state_dict())
    both.step(theirs, ours, range(4))
    theirs.load_state_dict(first[0])
    ours.load_state_dict(first[1])
    both.step(theirs, ours, range(4, 7))
    both.compare()


def test_a_compiled_step_behind_it_is_refused() -> None:
    both = Both()
    ours = RecordingAdam(both.ours)
    both.step(torch.optim.Adam(both.theirs), ours, range(2))
    with pytest.raises(RuntimeError, match="had no gradient in a step"):
        _ = ours.parameters
