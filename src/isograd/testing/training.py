"""Guarantees of a framework adapter: optimizer steps."""

from __future__ import annotations

import numpy as np
import pytest

from isograd.errors import UserCodeError
from isograd.frameworks.base import (
    Framework,
    Tensors,
)
from isograd.tensors import TensorKey, TensorValue, tensor_value
from isograd.testing.network import ConformanceNetwork
from isograd.testing.values import assert_same, differ, trained_in, untied


class TrainingGuarantees(ConformanceNetwork):
    """Optimizer steps."""

    def test_fed_gradients_replace_the_pass(self, passed: Tensors, framework: Framework) -> None:
        """With gradients given, a step needs no inputs, and moves just what has one."""
        names = framework.start_training("one")
        trained = trained_in(passed)
        assert set(names) == set(trained)
        before = framework.state()
        gradients = {k: v for k, v in passed.items() if k.startswith("gradient.parameter.")}
        found = framework.train_step("one", before, {}, [], gradients)
        assert "loss" not in found
        for name, value in untied(before).items():
            assert differ(found[f"state.{name}"], value) == (name in trained), name
        framework.end_training()
        framework.start_training("one")
        assert_same(framework.train_step("one", before, {}, [], gradients), found)
        framework.end_training()

    def test_training_steps(
        self,
        passed: Tensors,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """A step yields the pass's loss, continues from its own state, and lowers the loss."""
        framework.start_training("one")
        losses = [
            float(framework.train_step("one", None, inputs, targets)["loss"].values)
            for _ in range(4)
        ]
        framework.end_training()
        assert losses[0] == pytest.approx(float(passed["loss"].values), rel=1e-5)
        assert losses[-1] < losses[0]

    def test_end_of_training_gives_back_the_state(
        self,
        passed: Tensors,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """After training the network is as it was before, and can be trained again alike."""
        before = framework.state()
        runs = []
        for _ in range(2):
            framework.start_training("one")
            framework.train_step("one", None, inputs, targets)
            runs.append(framework.train_step("one", None, inputs, targets))
            framework.end_training()
            assert_same(framework.state(), before)
        assert_same(runs[0], runs[1])
        again = framework.forward("train", inputs, targets, record=True, backward=True)
        assert_same(again, passed)

    def test_loading_reaches_an_optimizer_that_has_stepped(
        self,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """A given state is what the next step starts from."""
        before = framework.state()
        framework.start_training("one")
        framework.train_step("one", None, inputs, targets)
        moved = framework.train_step("one", None, inputs, targets)
        zero = {
            k: tensor_value(np.zeros_like(v.values)) for k, v in moved.items() if "gradient." in k
        }
        for name in framework.start_training("two"):
            zero[TensorKey.parameter(name).gradient] = tensor_value(
                np.zeros_like(before[name].values)
            )
        found = framework.train_step("two", before, {}, [], zero)
        assert_same({k: found[f"state.{k}"] for k in before}, before)
        framework.end_training()

    def test_failing_optimizer_names_its_line(self) -> None:
        """The same for the optimizer."""
        framework = self._failing("optimizer")
        with pytest.raises(UserCodeError, match=r"the optimizer .* on purpose at \w+\.py:\d+"):
            framework.start_training("one")
