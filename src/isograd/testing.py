"""The conformance tests that every framework adapter passes; needs pytest.

A subclass names one small network that exercises what real networks trip an adapter with, and
the adapter; see `FrameworkConformance`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from isograd.errors import CaseError, UserCodeError
from isograd.frameworks.base import (
    FLOAT64,
    NATIVE,
    Arithmetic,
    CallInfo,
    Framework,
    ReplayRequest,
    SideSpec,
    Tensors,
)
from isograd.tensors import Array, TensorValue, tensor_value

_BATCH = 6
_FEATURES = 4


class FrameworkConformance:
    """What isograd relies on, for every framework.

    A subclass gives `open` and `side`.  The network of `side` takes `x` of shape (6, 4), whole
    numbers `tokens` below 7 of shape (6,), and `scale` of shape (4,) by keyword, and returns a
    dictionary of `logits` (6, 4) and a scalar `mean`.  Its parts are named

    - ``first``: a linear layer without bias; ``tied``: another with the same weight,
    - ``embed``: a table of 7 rows, for the tokens,
    - ``norm``: a batch normalisation with running statistics,
    - ``act``: a ReLU, in place where the framework has that,
    - ``twice``: a linear layer that is called twice,
    - ``drop``: a dropout of one half,
    - ``gate``: a user's module with a keyword argument, that returns a tuple; it holds
      ``gate.linear``.

    Its keyword `fail` makes it raise ValueError("on purpose"): "build" in the model callable,
    "forward" in ``gate``, "loss" in the loss, "optimizer" in the optimizer.

    Guarantees: state is copied in and out, and refused where it does not fit; a pass leaves no
    trace in the network, also when it raises, and two passes are bit-identical; recorded calls
    nest; a replay of any call with its children's results given yields what was recorded, and
    gradients of the same function; training works on its own state; errors of the user's code
    name its line.
    """

    #: Whether the arithmetics other than NATIVE are obeyed.
    has_arithmetics = True
    #: Relative tolerance of equal computations in another grouping, in float32.
    tolerance = 1e-5

    def open(self) -> Framework:
        """A fresh adapter."""
        raise NotImplementedError

    def side(self) -> SideSpec:
        """The network described above, with its loss and optimizer."""
        raise NotImplementedError

    def modules(self, framework: Any) -> dict[str, Any]:
        """The live modules by name, to see whether anything stays patched."""
        return dict(framework._model.named_modules())

    @pytest.fixture
    def framework(self) -> Framework:
        """An adapter that has built the network."""
        framework = self.open()
        framework.build(self.side(), 0)
        return framework

    @pytest.fixture
    def inputs(self) -> dict[str, TensorValue]:
        """Two arguments by position and one by keyword."""
        generator = np.random.default_rng(5)
        return {
            "0": tensor_value(generator.standard_normal((_BATCH, _FEATURES)).astype(np.float32)),
            "1": tensor_value(np.array([0, 1, 2, 6, 6, 3], np.int64)),
            "scale": tensor_value(generator.uniform(0.5, 2.0, _FEATURES).astype(np.float32)),
        }

    @pytest.fixture
    def targets(self) -> list[TensorValue]:
        """What the loss compares the logits with."""
        drawn = np.random.default_rng(6).standard_normal((_BATCH, _FEATURES))
        return [tensor_value(drawn.astype(np.float32))]

    @pytest.fixture
    def passed(
        self,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> Tensors:
        """The results of a recorded pass in training mode with gradients."""
        return framework.forward("train", inputs, targets, record=True, backward=True)

    def test_describes_itself(self, framework: Framework) -> None:
        """`describe` says what a report shows of a side."""
        found = framework.describe()
        assert set(found) >= {"framework", "framework_version", "python_version", "device"}
        assert all(isinstance(text, str) for text in found.values())

    def test_structure(self) -> None:
        """`build` lists modules, parameters, buffers and ties by the framework's own names."""
        structure = self.open().build(self.side(), 0)
        modules = {m.name: m for m in structure.modules}
        assert set(modules) >= set("first embed norm act twice drop gate gate.linear tied".split())
        assert modules["twice"].library
        assert not modules["gate"].library
        assert modules["gate"].where is not None
        parameters = {p.name: p for p in structure.parameters}
        by_place = {(p.module, p.attribute): p for p in structure.parameters}
        first = next(p for p in structure.parameters if p.module == "first")
        tied = next(p for p in structure.parameters if p.module == "tied")
        assert (first.tied_to, tied.tied_to) == (None, first.name)
        assert first.trainable
        assert first.shape == (_FEATURES, _FEATURES)
        assert first.dtype == "float32"
        assert len(parameters) == len(by_place) == len(structure.parameters)
        statistics = [p for p in structure.parameters if p.module == "norm" and not p.trainable]
        assert len(statistics) >= 2

    def test_build_is_reproducible(self) -> None:
        """The seed decides the weights."""
        states = []
        for seed in (0, 0, 1):
            framework = self.open()
            framework.build(self.side(), seed)
            states.append(framework.state())
        _same(states[0], states[1])
        assert any(_differ(states[0][name], states[2][name]) for name in states[0])

    def test_state_round_trip(self, framework: Framework) -> None:
        """What `load_state` gets, `state` gives, and neither shares memory with the network."""
        before = framework.state()
        fresh = _moved(before)
        framework.load_state(fresh)
        found = framework.state()
        _same(found, fresh)
        for value in fresh.values():
            np.copyto(value.values, 0)
        _same(framework.state(), found)

    def test_load_state_refuses_unknown_names(self, framework: Framework) -> None:
        """A name that the network lacks is an error, not ignored."""
        with pytest.raises(CaseError, match=r"has no tensor 'nothing' of shape \(2,\)"):
            framework.load_state({"nothing": tensor_value(np.zeros(2, np.float32))})

    def test_load_state_refuses_wrong_shapes(self, framework: Framework) -> None:
        """A shape that would have to be broadcast is an error."""
        name = next(iter(framework.state()))
        with pytest.raises(CaseError, match=re.escape(repr(name))):
            framework.load_state({name: tensor_value(np.zeros((1, 1), np.float32))})

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
        _same(framework.state(), before)
        _same(framework.forward(mode, inputs, targets, record=True, backward=True), first)
        _same(framework.forward(mode, inputs, targets, backward=True), first)

    def test_pass_names_its_results(
        self, passed: Tensors, framework: Framework, inputs: dict[str, TensorValue]
    ) -> None:
        """Outputs are numbered in the order of `tree.flatten`; gradients carry names."""
        assert passed["output.0"].shape == (_BATCH, _FEATURES)
        assert passed["output.1"].shape == passed["loss"].shape == ()
        gradients = {k for k in passed if k.startswith("gradient.input.")}
        assert gradients == {"gradient.input.0", "gradient.input.scale"}
        trained = {p for p in passed if p.startswith("gradient.parameter.")}
        assert {f"gradient.parameter.{n}" for n in framework.state()} >= trained
        assert len(trained) == 7  # norm, twice and gate.linear have two, embed one, first shares

    def test_pass_takes_what_the_mode_says(
        self,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """Batch statistics in training mode, running statistics in evaluation mode."""
        train = framework.forward("train", inputs, targets)
        evaluation = framework.forward("eval", inputs, targets)
        assert _differ(train["output.0"], evaluation["output.0"])

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
        assert [module for module, _ in found if "." not in module or module in expected] == expected
        assert [o for module, o in found if module == "twice"] == [0, 1]
        assert calls[_index(calls, "gate.linear")].parent == _index(calls, "gate")

    def test_recorded_tensors_fit_the_calls(self, passed: Tensors, framework: Framework) -> None:
        """Shapes agree with `calls`; integers and keyword arguments are inputs too."""
        calls = framework.calls()
        for index, call in enumerate(calls):
            found = framework.recorded(index)
            shapes = [found[f"input.{i}"].shape for i in range(len(call.input_shapes))]
            assert tuple(shapes) == call.input_shapes
            shapes = [found[f"output.{i}"].shape for i in range(len(call.output_shapes))]
            assert tuple(shapes) == call.output_shapes
        tokens = framework.recorded(_index(calls, "embed"))["input.0"]
        assert "int" in tokens.dtype
        assert calls[_index(calls, "gate")].input_shapes[-1] == (_FEATURES,)
        assert len(calls[_index(calls, "gate")].output_shapes) == 2

    def test_recording_is_not_overwritten_in_place(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """What goes into a module in place is recorded as it was before."""
        found = framework.recorded(_index(framework.calls(), "act"))
        assert (found["input.0"].values < 0).any()
        np.testing.assert_array_equal(
            found["output.0"].values, np.maximum(found["input.0"].values, 0)
        )

    def test_dropout_is_neutral(self, passed: Tensors, framework: Framework) -> None:
        """Masks of two frameworks cannot agree, so dropout passes its input."""
        found = framework.recorded(_index(framework.calls(), "drop"))
        np.testing.assert_array_equal(found["input.0"].values, found["output.0"].values)

    def test_dropout_is_measured(self, passed: Tensors, framework: Framework) -> None:
        """What dropout would do in a mode is found by experiment."""
        (site,) = framework.dropout_sites("train")
        assert site.module == "drop"
        assert site.probability == pytest.approx(0.5, abs=0.02)
        assert site.scale == pytest.approx(2.0, rel=0.01)
        (site,) = framework.dropout_sites("eval")
        assert (site.probability, site.scale) == (0.0, 1.0)

    @pytest.mark.parametrize("pinning", ["nothing", "children"])
    def test_replay_reproduces_every_call(
        self, pinning: str, passed: Tensors, framework: Framework
    ) -> None:
        """Every call alone yields what was recorded, with and without its children given."""
        calls = framework.calls()
        for index in range(len(calls)):
            pins = _children(calls, index) if pinning == "children" else ()
            request = ReplayRequest(index, pins, (), ((),) * len(pins))
            found = framework.replay(request)
            _close(found, _outputs(framework.recorded(index)), self.tolerance)
            for number, pin in enumerate(pins):
                own = framework.recorded(pin)
                for slot in range(len(calls[pin].input_shapes)):
                    seen = found[f"input_of.{number}.{slot}"]
                    _close({"": seen}, {"": own[f"input.{slot}"]}, self.tolerance)

    def test_replay_takes_given_inputs(self, passed: Tensors, framework: Framework) -> None:
        """Given tensors replace recorded ones, slot by slot."""
        index = _index(framework.calls(), "tied")
        own = framework.recorded(index)
        doubled = tensor_value(own["input.0"].values * np.float32(2))
        found = framework.replay(ReplayRequest(index, (), (doubled,), ()))
        expected = tensor_value(own["output.0"].values * np.float32(2))
        _close(found, {"output.0": expected}, self.tolerance)

    def test_replay_uses_given_results(self, passed: Tensors, framework: Framework) -> None:
        """A pinned call is not computed: its given result reaches what follows."""
        calls = framework.calls()
        pins = (_index(calls, "gate"),)
        zero = tensor_value(np.zeros((_BATCH, _FEATURES), np.float32))
        request = ReplayRequest(0, pins, (), ((zero, None),))
        found = framework.replay(request)
        assert not found["output.0"].values.any()
        _close({"": found["output.1"]}, {"": passed["output.1"]}, self.tolerance)

    def test_replay_tells_calls_of_one_module_apart(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """Only the pinned one of two calls of a module is given."""
        calls = framework.calls()
        second = _index(calls, "twice", 1)
        given = tensor_value(np.full((_BATCH, _FEATURES), 7, np.float32))
        drop = _index(calls, "drop")
        request = ReplayRequest(0, (second, drop), (), ((given,), (None,)))
        found = framework.replay(request)
        np.testing.assert_array_equal(found["input_of.1.0"].values, given.values)
        own = framework.recorded(second)
        _close({"": found["input_of.0.0"]}, {"": own["input.0"]}, self.tolerance)

    def test_replay_hands_out_buffers(self, passed: Tensors, framework: Framework) -> None:
        """Running statistics as the call leaves them, while the network keeps its own."""
        before = framework.state()
        index = _index(framework.calls(), "norm")
        names = tuple(n for n in before if n.startswith("norm.") and "mean" in n)
        found = framework.replay(ReplayRequest(index, (), (), (), buffers=names))
        assert names
        assert _differ(found[f"buffer.{names[0]}"], before[names[0]])
        _same(framework.state(), before)

    def test_replayed_gradients_agree_with_the_pass(
        self, passed: Tensors, framework: Framework, targets: list[TensorValue]
    ) -> None:
        """The whole network replayed, fed the loss's gradient, yields the pass's gradients."""
        outputs: list[TensorValue | None] = [passed["output.0"], passed["output.1"]]
        loss = framework.loss(outputs, targets)
        _close({"loss": passed["loss"]}, {"loss": loss["loss"]}, self.tolerance)
        parameters = tuple(_trained(passed))
        given = (loss["gradient.output.0"], loss["gradient.output.1"])
        request = ReplayRequest(0, (), (), (), given, (), parameters, (), True)
        found = framework.replay(request)
        expected = {k: v for k, v in passed.items() if k.startswith("gradient.parameter.")}
        _close(found, expected, 10 * self.tolerance)
        _close({"": found["gradient.input.0"]}, {"": passed["gradient.input.0"]}, 1e-4)

    def test_replayed_gradients_agree_with_differences(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """With children pinned, gradients are those of the code between them."""
        calls = framework.calls()
        for index in range(len(calls)):
            self._check_gradients(framework, calls, index)

    def _check_gradients(
        self, framework: Framework, calls: tuple[CallInfo, ...], index: int
    ) -> None:
        pins = _children(calls, index)
        own = framework.recorded(index)
        generator = np.random.default_rng(index)
        arithmetic = FLOAT64 if self.has_arithmetics else NATIVE
        dtype = np.float64 if self.has_arithmetics else np.float32
        step = 1e-6 if self.has_arithmetics else 2e-3

        def drawn(tensors: Tensors, word: str) -> tuple[TensorValue | None, ...]:
            slots = _slots(tensors, word)
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
        directional = sum(
            _dot(found[f"gradient.input.{i}"], s) for i, s in enumerate(shifts) if s is not None
        )
        for number, group in enumerate(pin_shifts):
            directional += sum(
                _dot(found[f"gradient.pin.{number}.{i}"], s)
                for i, s in enumerate(group)
                if s is not None
            )

        def value(sign: float) -> float:
            request = dataclasses.replace(
                base,
                inputs=_shifted(_slots(own, "input"), shifts, sign * step),
                pin_outputs=tuple(
                    _shifted(_slots(framework.recorded(p), "output"), group, sign * step)
                    for p, group in zip(pins, pin_shifts, strict=True)
                ),
                backward=False,
            )
            result = framework.replay(request, arithmetic)
            total = sum(
                _dot(result[f"output.{i}"], c) for i, c in enumerate(cotangents) if c is not None
            )
            for number, group in enumerate(pin_cotangents):
                total += sum(
                    _dot(result[f"input_of.{number}.{i}"], c)
                    for i, c in enumerate(group)
                    if c is not None
                )
            return total

        measured = (value(1.0) - value(-1.0)) / (2 * step)
        allowed = 1e-6 if self.has_arithmetics else 2e-2
        assert measured == pytest.approx(directional, rel=allowed, abs=allowed), calls[index]

    def test_replay_leaves_no_trace(self, passed: Tensors, framework: Framework) -> None:
        """Modes, state and attributes of the modules are as before, and so is the next pass."""
        modules = self.modules(framework)
        before = _attributes(modules)
        state = framework.state()
        calls = framework.calls()
        for index in range(len(calls)):
            pins = _children(calls, index)
            framework.replay(ReplayRequest(index, pins, (), ((),) * len(pins), backward=True))
        assert _attributes(modules) == before
        _same(framework.state(), state)

    def test_forward_leaves_no_trace(
        self,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """Attributes of the modules, modes among them, are as before a recorded pass."""
        modules = self.modules(framework)
        before = _attributes(modules)
        framework.forward("train", inputs, targets, record=True, backward=True)
        framework.forward("eval", inputs, targets, record=True)
        assert _attributes(modules) == before

    def test_failing_forward_leaves_no_trace(
        self, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> None:
        """Also where the network raises in the middle, and a later error names the line again."""
        framework = self._failing("forward")
        modules = self.modules(framework)
        before, state = _attributes(modules), framework.state()
        for _ in range(2):
            with pytest.raises(UserCodeError, match=r"ValueError: on purpose at \w+\.py:\d+"):
                framework.forward("train", inputs, targets, record=True, backward=True)
        assert _attributes(modules) == before
        _same(framework.state(), state)

    def _failing(self, where: str) -> Framework:
        framework = self.open()
        side = self.side()
        framework.build(dataclasses.replace(side, model_kwargs={"fail": where}), 0)
        return framework

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

    def test_failing_optimizer_names_its_line(self) -> None:
        """The same for the optimizer."""
        framework = self._failing("optimizer")
        with pytest.raises(UserCodeError, match=r"the optimizer .* on purpose at \w+\.py:\d+"):
            framework.start_training("one")

    def test_fed_gradients_replace_the_pass(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """With gradients given, a step needs no inputs, and moves just what has one."""
        names = framework.start_training("one")
        trained = _trained(passed)
        assert set(names) == set(trained)
        before = framework.state()
        gradients = {k: v for k, v in passed.items() if k.startswith("gradient.parameter.")}
        found = framework.train_step("one", before, {}, [], gradients)
        assert "loss" not in found
        for name, value in before.items():
            assert _differ(found[f"state.{name}"], value) == (name in trained), name
        framework.end_training()
        framework.start_training("one")
        _same(framework.train_step("one", before, {}, [], gradients), found)
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
            _same(framework.state(), before)
        _same(runs[0], runs[1])
        again = framework.forward("train", inputs, targets, record=True, backward=True)
        _same(again, passed)

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
            zero[f"gradient.parameter.{name}"] = tensor_value(np.zeros_like(before[name].values))
        found = framework.train_step("two", before, {}, [], zero)
        _same({k: found[f"state.{k}"] for k in before}, before)
        framework.end_training()

    def test_functions_are_traced(self, passed: Tensors, framework: Framework) -> None:
        """The functions between modules are noted with their results, and nothing stays wrapped."""
        index = _index(framework.calls(), "gate")
        pins = _children(framework.calls(), index)
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
        _close(found, passed, 1e-4)
        assert _differ(found["output.0"], passed["output.0"])

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
        _same(found, again)
        _close(found, passed, 1e-4)
        if not arithmetic.alternative_kernels:
            assert any(_differ(found[key], passed[key]) for key in passed)
        _same(framework.forward("train", inputs, targets, backward=True), passed)

    def test_shifts_reach_what_follows(
        self,
        passed: Tensors,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """A shift of one call's tensors moves the end of the pass; a shift of nothing does not."""
        self._needs_arithmetics()
        index = _index(framework.calls(), "twice", 1)
        amount = tensor_value(np.full((_BATCH, _FEATURES), 0.5, np.float32))
        for where in ("input", "output"):
            moved = framework.forward_shifted(
                "train", inputs, targets, True, (index, where, [amount])
            )
            assert _differ(moved["output.0"], passed["output.0"])
            still = framework.forward_shifted(
                "train", inputs, targets, True, (index, where, [None])
            )
            _same(still, passed)

    def _needs_arithmetics(self) -> None:
        if not self.has_arithmetics:
            pytest.skip("this framework only plays the port")


def _index(calls: tuple[CallInfo, ...], module: str, occurrence: int = 0) -> int:
    return next(
        i for i, c in enumerate(calls) if (c.module, c.occurrence) == (module, occurrence)
    )


def _children(calls: tuple[CallInfo, ...], index: int) -> tuple[int, ...]:
    return tuple(i for i, call in enumerate(calls) if call.parent == index)


def _slots(tensors: Tensors, word: str) -> list[TensorValue]:
    count = sum(1 for key in tensors if key.startswith(f"{word}."))
    return [tensors[f"{word}.{i}"] for i in range(count)]


def _shifted(
    values: list[TensorValue], shifts: tuple[TensorValue | None, ...], step: float
) -> tuple[TensorValue | None, ...]:
    return tuple(
        None if shift is None else tensor_value(value.values + step * shift.values)
        for value, shift in zip(values, shifts, strict=True)
    )


def _dot(first: TensorValue, second: TensorValue) -> float:
    return float(np.vdot(first.values.astype(np.float64), second.values.astype(np.float64)))


def _outputs(tensors: Tensors) -> Tensors:
    return {k: v for k, v in tensors.items() if k.startswith("output.")}


def _trained(passed: Tensors) -> list[str]:
    prefix = "gradient.parameter."
    return [k.removeprefix(prefix) for k in passed if k.startswith(prefix)]


def _moved(state: Tensors) -> Tensors:
    generator = np.random.default_rng(1)
    result = {}
    for name, value in state.items():
        drawn: Array = generator.uniform(1, 9, value.shape).astype(value.values.dtype)
        result[name] = TensorValue(drawn, value.dtype)
    return result


def _differ(first: TensorValue, second: TensorValue) -> bool:
    return not np.array_equal(first.values, second.values)


def _same(found: Tensors, expected: Tensors) -> None:
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key].dtype == value.dtype, key
        np.testing.assert_array_equal(found[key].values, value.values, err_msg=key)


def _close(found: Tensors, expected: Tensors, tolerance: float) -> None:
    for key, value in expected.items():
        assert found[key].shape == value.shape, key
        np.testing.assert_allclose(
            found[key].values, value.values, rtol=tolerance, atol=tolerance, err_msg=key
        )


def _attributes(modules: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each module holds, as far as it can be compared: names, identities, hooks, modes."""
    return {name: dict(_plain(vars(module))) for name, module in modules.items()}


def _plain(attributes: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in attributes.items():
        if isinstance(value, (bool, int, float, str)) or value is None:
            yield name, value
        elif isinstance(value, (dict, list, set)):
            yield name, len(value)
        else:
            yield name, type(value).__name__
