"""Guarantees of a framework adapter: recorded calls, run again alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from isograd.frameworks.base import (
    FLOAT64,
    NATIVE,
    CallInfo,
    Framework,
    ReplayRequest,
    Shift,
    Tensors,
    in_slots,
)
from isograd.tensors import TensorKey, TensorValue, tensor_value
from isograd.testing.network import BATCH, FEATURES, ConformanceNetwork
from isograd.testing.values import (
    assert_close,
    assert_same,
    call_of,
    children_of,
    differ,
    dot,
    outputs_of,
    shifted_by,
    trained_in,
)


class ReplayGuarantees(ConformanceNetwork):
    """Recorded calls, run again alone."""

    @pytest.mark.parametrize("pinning", ["nothing", "children"])
    def test_replay_reproduces_every_call(
        self, pinning: str, passed: Tensors, framework: Framework
    ) -> None:
        """Every call alone yields what was recorded, with and without its children given."""
        calls = framework.calls()
        for index in range(len(calls)):
            pins = children_of(calls, index) if pinning == "children" else ()
            request = ReplayRequest(index, pins, (), ((),) * len(pins))
            found = framework.replay(request)
            assert_close(found, outputs_of(framework.recorded(index)), self.tolerance)
            for number, pin in enumerate(pins):
                own = framework.recorded(pin)
                for slot in range(len(calls[pin].input_shapes)):
                    seen = found[TensorKey.input_of_pin(number, slot)]
                    assert_close({"": seen}, {"": own[TensorKey.input(slot)]}, self.tolerance)

    def test_replay_takes_given_inputs(self, passed: Tensors, framework: Framework) -> None:
        """Given tensors replace recorded ones, slot by slot."""
        index = call_of(framework.calls(), "tied")
        own = framework.recorded(index)
        doubled = tensor_value(np.multiply(own["input.0"].values, np.float32(2)))
        found = framework.replay(ReplayRequest(index, (), (doubled,), ()))
        expected = tensor_value(np.multiply(own["output.0"].values, np.float32(2)))
        assert_close(found, {"output.0": expected}, self.tolerance)

    def test_replay_uses_given_results(self, passed: Tensors, framework: Framework) -> None:
        """A pinned call is not computed: its given result reaches what follows."""
        calls = framework.calls()
        pins = (call_of(calls, "gate"),)
        zero = tensor_value(np.zeros((BATCH, FEATURES), np.float32))
        request = ReplayRequest(0, pins, (), ((zero, None),))
        found = framework.replay(request)
        assert not found["output.0"].values.any()
        assert_close({"": found["output.1"]}, {"": passed["output.1"]}, self.tolerance)

    def test_replay_tells_calls_of_one_module_apart(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """Only the pinned one of two calls of a module is given."""
        calls = framework.calls()
        second = call_of(calls, "twice", 1)
        given = tensor_value(np.full((BATCH, FEATURES), 7, np.float32))
        drop = call_of(calls, "drop")
        request = ReplayRequest(0, (second, drop), (), ((given,), (None,)))
        found = framework.replay(request)
        np.testing.assert_array_equal(found["input_of.1.0"].values, given.values)
        own = framework.recorded(second)
        assert_close({"": found["input_of.0.0"]}, {"": own["input.0"]}, self.tolerance)

    def test_replay_hands_out_buffers(self, passed: Tensors, framework: Framework) -> None:
        """Running statistics as the call leaves them, while the network keeps its own."""
        before = framework.state()
        index = call_of(framework.calls(), "norm")
        names = tuple(n for n in before if n.startswith("norm.") and "mean" in n)
        found = framework.replay(ReplayRequest(index, (), (), (), buffers=names))
        assert names
        assert differ(found[f"buffer.{names[0]}"], before[names[0]])
        assert_same(framework.state(), before)

    def test_replayed_gradients_agree_with_the_pass(
        self, passed: Tensors, framework: Framework, targets: list[TensorValue]
    ) -> None:
        """The whole network replayed, fed the loss's gradient, yields the pass's gradients."""
        outputs: list[TensorValue | None] = [passed["output.0"], passed["output.1"]]
        loss = framework.loss(outputs, targets)
        assert_close({"loss": passed["loss"]}, {"loss": loss["loss"]}, self.tolerance)
        parameters = tuple(trained_in(passed))
        given = (loss["gradient.output.0"], loss["gradient.output.1"])
        request = ReplayRequest(0, (), (), (), given, (), parameters, (), True)
        found = framework.replay(request)
        expected = {k: v for k, v in passed.items() if k.startswith("gradient.parameter.")}
        assert_close(found, expected, 10 * self.tolerance)
        assert_close({"": found["gradient.input.0"]}, {"": passed["gradient.input.0"]}, 1e-4)

    def test_replayed_gradients_agree_with_differences(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """With children pinned, gradients are those of the code between them."""
        calls = framework.calls()
        for index in range(len(calls)):
            self._check_gradients(framework, calls, index)

    def test_replay_leaves_no_trace(self, passed: Tensors, framework: Framework) -> None:
        """Modes, state and attributes of the modules are as before, and so is the next pass."""
        modules = self.modules(framework)
        before = self._attributes(modules)
        state = framework.state()
        calls = framework.calls()
        for index in range(len(calls)):
            pins = children_of(calls, index)
            framework.replay(ReplayRequest(index, pins, (), ((),) * len(pins), backward=True))
        assert self._attributes(modules) == before
        assert_same(framework.state(), state)

    def _check_gradients(
        self, framework: Framework, calls: tuple[CallInfo, ...], index: int
    ) -> None:
        pins = children_of(calls, index)
        own = framework.recorded(index)
        generator = np.random.default_rng(index)
        arithmetic = FLOAT64 if self.has_arithmetics else NATIVE
        dtype = np.float64 if self.has_arithmetics else np.float32
        step = 1e-6 if self.has_arithmetics else 2e-3

        def drawn(tensors: Tensors, word: str) -> tuple[TensorValue | None, ...]:
            slots = in_slots(tensors, word)
            return tuple(
                tensor_value(generator.standard_normal(v.shape).astype(dtype))
                if v.is_floating
                else None
                for v in slots
            )

        cotangents = drawn(own, "output")
        pin_cotangents = tuple(drawn(framework.recorded(p), "input") for p in pins)
        shifts = drawn(own, "input")
        pin_shifts = tuple(drawn(framework.recorded(p), "output") for p in pins)
        base = ReplayRequest(
            index, pins, (), ((),) * len(pins), cotangents, pin_cotangents, (), (), True
        )
        found = framework.replay(base, arithmetic)
        assert not any(np.isnan(v.values).any() for v in found.values() if v.is_floating)
        directional = _dots(found, "gradient.input", shifts)
        for number, group in enumerate(pin_shifts):
            directional += _dots(found, f"gradient.pin.{number}", group)

        def value(sign: float) -> float:
            request = dataclasses.replace(
                base,
                inputs=shifted_by(in_slots(own, "input"), shifts, sign * step),
                pin_outputs=tuple(
                    shifted_by(in_slots(framework.recorded(p), "output"), group, sign * step)
                    for p, group in zip(pins, pin_shifts, strict=True)
                ),
                backward=False,
            )
            result = framework.replay(request, arithmetic)
            total = _dots(result, "output", cotangents)
            for number, group in enumerate(pin_cotangents):
                total += _dots(result, f"input_of.{number}", group)
            return total

        measured = (value(1.0) - value(-1.0)) / (2 * step)
        allowed = 1e-6 if self.has_arithmetics else 2e-2
        assert measured == pytest.approx(directional, rel=allowed, abs=allowed), calls[index]

    def test_functions_are_traced(self, passed: Tensors, framework: Framework) -> None:
        """The functions between modules are noted with their results, and nothing stays wrapped."""
        index = call_of(framework.calls(), "gate")
        pins = children_of(framework.calls(), index)
        events = framework.trace(ReplayRequest(index, pins, (), ((),) * len(pins)))
        assert events
        expected = framework.recorded(index)["output.0"]
        assert any(
            e.value.shape == expected.shape
            and np.allclose(e.value.values, expected.values, rtol=1e-5)
            for e in events
        )
        again = framework.trace(ReplayRequest(index, pins, (), ((),) * len(pins)))
        assert [e.function for e in again] == [e.function for e in events]

    def test_shifts_reach_what_follows(
        self,
        passed: Tensors,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """A shift of one call's tensors moves the end of the pass; a shift of nothing does not."""
        self._needs_arithmetics()
        index = call_of(framework.calls(), "twice", 1)
        amount = tensor_value(np.full((BATCH, FEATURES), 0.5, np.float32))
        for where in ("input", "output"):
            moved = framework.forward_shifted(
                "train", inputs, targets, True, Shift(index, where, [amount])
            )
            assert differ(moved["output.0"], passed["output.0"])
            still = framework.forward_shifted(
                "train", inputs, targets, True, Shift(index, where, [None])
            )
            assert_same({k: v for k, v in still.items() if not k.startswith("state.")}, passed)

    def test_shifts_of_gradients_reach_what_comes_before(
        self,
        passed: Tensors,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """A shift of a gradient leaves the end of the pass and moves gradients before it."""
        self._needs_arithmetics()
        index = call_of(framework.calls(), "twice", 1)
        amount = tensor_value(np.full((BATCH, FEATURES), 0.5, np.float32))
        for where in ("gradient.input", "gradient.output"):
            moved = framework.forward_shifted(
                "train", inputs, targets, True, Shift(index, where, [amount])
            )
            assert not differ(moved["output.0"], passed["output.0"])
            keys = [k for k in passed if k.startswith("gradient.")]
            assert any(differ(moved[key], passed[key]) for key in keys)


def _dots(results: Tensors, word: str, weights: Sequence[TensorValue | None]) -> float:
    """The sum of the products of the tensors WORD.0, WORD.1 and so on with their weights."""
    pairs = enumerate(weights)
    return sum(dot(results[f"{word}.{i}"], w) for i, w in pairs if w is not None)
