"""Guarantees of a framework adapter: end-to-end passes and what is recorded of them."""

from __future__ import annotations

import numpy as np
import pytest

from isograd.errors import UserCodeError
from isograd.frameworks.base import (
    FLOAT64,
    Arithmetic,
    Framework,
    Tensors,
)
from isograd.tensors import TensorKey, TensorValue
from isograd.testing.network import BATCH, FEATURES, ConformanceNetwork
from isograd.testing.values import assert_close, assert_same, call_of, differ


class PassGuarantees(ConformanceNetwork):
    """End-to-end passes and what is recorded of them."""

    @pytest.mark.parametrize("mode", ["train", "eval"])
    def test_two_passes_are_equal(
        self,
        mode: str,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """A pass leaves no trace, so a second one yields the same bits."""
        before = framework.state()
        first = framework.forward(mode, inputs, targets, backward=True)
        assert_same(framework.state(), before)
        assert_same(framework.forward(mode, inputs, targets, record=True, backward=True), first)
        assert_same(framework.forward(mode, inputs, targets, backward=True), first)

    def test_pass_names_its_results(
        self, passed: Tensors, framework: Framework, inputs: dict[str, TensorValue]
    ) -> None:
        """Outputs are numbered in the order of `tree.flatten`; gradients carry names."""
        assert passed["output.0"].shape == (BATCH, FEATURES)
        assert passed["output.1"].shape == passed["loss"].shape == ()
        gradients = {k for k in passed if k.startswith("gradient.input.")}
        assert gradients == {"gradient.input.0", "gradient.input.scale"}
        trained = {p for p in passed if p.startswith("gradient.parameter.")}
        assert {TensorKey.parameter(n).gradient for n in framework.state()} >= trained
        assert len(trained) == 8  # norm, twice and gate.linear have two, embed and first one

    def test_pass_takes_what_the_mode_says(
        self,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """Batch statistics in training mode, running statistics in evaluation mode."""
        train = framework.forward("train", inputs, targets)
        evaluation = framework.forward("eval", inputs, targets)
        assert differ(train["output.0"], evaluation["output.0"])

    def test_calls_nest(self, passed: Tensors, framework: Framework) -> None:
        """Calls come in the order of their starts, each with the call around it."""
        calls = framework.calls()
        assert (calls[0].module, calls[0].parent) == ("", None)
        for index, call in enumerate(calls[1:], 1):
            assert call.parent is not None
            assert 0 <= call.parent < index
            around = calls[call.parent].module
            assert call.module.startswith(f"{around}." if around else "")
        found = [(c.module, c.occurrence) for c in calls[1:]]
        expected = "first embed norm act twice twice drop gate gate.linear tied".split()
        assert [
            module for module, _ in found if "." not in module or module in expected
        ] == expected
        assert [o for module, o in found if module == "twice"] == [0, 1]
        assert calls[call_of(calls, "gate.linear")].parent == call_of(calls, "gate")

    def test_recorded_tensors_fit_the_calls(self, passed: Tensors, framework: Framework) -> None:
        """Shapes agree with `calls`; integers and keyword arguments are inputs too."""
        calls = framework.calls()
        for index, call in enumerate(calls):
            found = framework.recorded(index)
            shapes = [found[TensorKey.input(i)].shape for i in range(len(call.input_shapes))]
            assert tuple(shapes) == call.input_shapes
            shapes = [found[TensorKey.output(i)].shape for i in range(len(call.output_shapes))]
            assert tuple(shapes) == call.output_shapes
        tokens = framework.recorded(call_of(calls, "embed"))["input.0"]
        assert "int" in tokens.dtype
        assert calls[call_of(calls, "gate")].input_shapes[-1] == (FEATURES,)
        assert len(calls[call_of(calls, "gate")].output_shapes) == 2

    def test_recording_is_not_overwritten_in_place(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """What goes into a module in place is recorded as it was before."""
        found = framework.recorded(call_of(framework.calls(), "act"))
        assert np.any(np.less(found["input.0"].values, 0))
        np.testing.assert_array_equal(
            found["output.0"].values, np.maximum(found["input.0"].values, 0)
        )

    def test_dropout_is_neutral(self, passed: Tensors, framework: Framework) -> None:
        """Masks of two frameworks cannot agree, so dropout passes its input."""
        found = framework.recorded(call_of(framework.calls(), "drop"))
        np.testing.assert_array_equal(found["input.0"].values, found["output.0"].values)

    def test_dropout_is_measured(self, passed: Tensors, framework: Framework) -> None:
        """What dropout would do in a mode is found by experiment."""
        (site,) = framework.dropout_sites("train")
        assert site.module == "drop"
        assert site.probability == pytest.approx(0.5, abs=0.02)
        assert site.scale == pytest.approx(2.0, rel=0.01)
        (site,) = framework.dropout_sites("eval")
        assert (site.probability, site.scale) == (0.0, 1.0)

    def test_forward_leaves_no_trace(
        self,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """Attributes of the modules, modes among them, are as before a recorded pass."""
        modules = self.modules(framework)
        before = self._attributes(modules)
        framework.forward("train", inputs, targets, record=True, backward=True)
        framework.forward("eval", inputs, targets, record=True)
        assert self._attributes(modules) == before

    def test_failing_forward_leaves_no_trace(
        self, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> None:
        """Also where the network raises in the middle, and a later error names the line again."""
        framework = self._failing("forward")
        modules = self.modules(framework)
        before, state = self._attributes(modules), framework.state()
        for _ in range(2):
            with pytest.raises(UserCodeError, match=r"ValueError: on purpose at \w+\.py:\d+"):
                framework.forward("train", inputs, targets, record=True, backward=True)
        assert self._attributes(modules) == before
        assert_same(framework.state(), state)

    def test_failing_model_names_its_line(self) -> None:
        """What the model callable raises becomes one message with file and line."""
        with pytest.raises(UserCodeError, match=r"ValueError: on purpose at \w+\.py:\d+") as caught:
            self._failing("build")
        assert "on purpose" in caught.value.trace

    def test_failing_loss_names_its_line(
        self, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> None:
        """The same for the loss."""
        framework = self._failing("loss")
        with pytest.raises(UserCodeError, match=r"the loss .* on purpose at \w+\.py:\d+"):
            framework.forward("train", inputs, targets)

    def test_float64_is_computed_in_float64(
        self,
        passed: Tensors,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """The reference of every comparison, near the native result and unlike it."""
        self._needs_arithmetics()
        found = framework.forward("train", inputs, targets, backward=True, arithmetic=FLOAT64)
        assert set(found) == set(passed)
        for key, value in found.items():
            assert value.dtype == "float64", key
        assert_close(found, passed, 1e-4)
        assert differ(found["output.0"], passed["output.0"])

    @pytest.mark.parametrize(
        "arithmetic",
        [
            Arithmetic(alternative_kernels=True),
            Arithmetic(input_noise=True, seed=1),
            Arithmetic(operator_noise=True, seed=2),
            Arithmetic(operator_noise=True, biased=True, seed=3),
        ],
        ids=["kernels", "inputs", "operators", "biased"],
    )
    def test_noise_is_small_and_reproducible(
        self,
        arithmetic: Arithmetic,
        passed: Tensors,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """Simulated rounding moves results a little, the same way each time."""
        self._needs_arithmetics()
        found = framework.forward("train", inputs, targets, backward=True, arithmetic=arithmetic)
        again = framework.forward("train", inputs, targets, backward=True, arithmetic=arithmetic)
        assert_same(found, again)
        assert_close(found, passed, 1e-4)
        if not arithmetic.alternative_kernels:
            assert any(differ(found[key], passed[key]) for key in passed)
        assert_same(framework.forward("train", inputs, targets, backward=True), passed)
