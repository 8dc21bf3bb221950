"""Isolated replay: one unit on both sides, judged tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isograd.errors import UserCodeError, WorkerError
from isograd.frameworks.base import CallInfo, ReplayRequest, Shift, Tensors, in_slots
from isograd.model import Stage
from isograd.noise.envelope import (
    ISOLATED_VARIANTS,
    Measured,
    compare,
    measured,
)
from isograd.pairing.layout import match_slots
from isograd.tensors import Role, TensorKey, TensorValue, gradients_of_parameters, keyed
from isograd.verify.places import (
    Places,
    Slots,
    added_up,
    count_of,
    in_port_slots,
    is_inside,
    joined_slots,
    lacking,
    makes_own,
    of_other_sizes,
)
from isograd.verify.session import Session
from isograd.verify.unit_result import TensorResult, UnitResult, with_misshapen
from isograd.verify.units import Unit, last_descendant
from isograd.worker.asking import Pending
from isograd.worker.protocols import Passes
from isograd.worker.requests import UnitMeasured, UnitRequest


@dataclass
class Replayer:
    """Replays units of one recorded pass on both sides.

    borrowed: parameters that a module's own code reads though another module holds them.
    """

    session: Session
    mode: str
    backward: bool
    reference_calls: tuple[CallInfo, ...]
    port_calls: tuple[CallInfo, ...]
    threshold: float
    borrowed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    _ahead: Any = None

    def run(
        self, units: Sequence[Unit], on_progress: Callable[[int, Unit], None]
    ) -> Iterator[UnitResult]:
        """Replay units one after the other; the reference measures the next one meanwhile."""
        for number, unit in enumerate(units):
            on_progress(number, unit)
            if self._ahead is None:
                self._ahead = self._begin(unit)
            answer = _fetched(self._ahead)
            self._ahead = self._begin(units[number + 1]) if number + 1 < len(units) else None
            yield self._judge(unit, answer.request, measured(answer.errors))

    def run_aside(self, unit: Unit) -> UnitResult:
        """Replay one more unit while `run` is under way."""
        self.settle()
        answer = self._begin(unit).answer()
        return self._judge(unit, answer.request, measured(answer.errors))

    def settle(self) -> None:
        """Fetch the answer to a question that was asked ahead, so that others can be asked."""
        if self._ahead is not None:
            self._ahead = _fetched(self._ahead)

    def _begin(self, unit: Unit) -> Pending[UnitMeasured]:
        return self.session.reference.begin(
            Passes.measure_unit, self._question(unit), ISOLATED_VARIANTS
        )

    def _question(self, unit: Unit) -> UnitRequest:
        module = self.reference_calls[unit.reference].module
        pinned = {self.reference_calls[pin].module for pin, _ in unit.pins}
        first, _ = self.session.infos()
        inside = [
            p
            for p in first.values()
            if is_inside(p.module, module) and not any(is_inside(p.module, m) for m in pinned)
        ]
        paired = [p for p in inside if self.session.pair_of(p.name) is not None]
        parameters = [p.name for p in paired if p.trainable and p.tied_to is None]
        parameters += [n for n in self._borrowed(module, pinned) if n not in parameters]
        moving = ("running_mean", "running_var")
        buffers = [p.name for p in paired if p.is_buffer and p.attribute in moving]
        ours, theirs = self.reference_calls, self.port_calls
        return UnitRequest(
            unit.reference,
            tuple(reference for reference, _ in unit.pins),
            tuple(parameters) if self.backward else (),
            tuple(buffers) if self.mode == "train" else (),
            self.backward,
            lacking(ours[unit.reference].output_shapes, theirs[unit.port].output_shapes),
            tuple(
                of_other_sizes(ours[pin].input_shapes, theirs[port].input_shapes)
                for pin, port in unit.pins
            ),
        )

    def _borrowed(self, module: str, pinned: Collection[str]) -> list[str]:
        """Paired parameters of other modules that the code of a unit reads: a tied table."""
        found: list[str] = []
        for reader, names in self.borrowed.items():
            if is_inside(reader, module) and not any(is_inside(reader, m) for m in pinned):
                found += [n for n in names if n not in found and self.session.pair_of(n)]
        return found

    def _judge(
        self, unit: Unit, request: ReplayRequest, reference: dict[str, Measured]
    ) -> UnitResult:
        own = self.session.port
        places = self._places(unit, request, reference)
        reference = places.joined(reference)
        port_request = self._port_request(unit, request, places)
        backward_failure = ""
        try:
            try:
                answer = own.ask(Passes.replay, port_request)
            except UserCodeError as error:
                if not self.backward:
                    return UnitResult(unit, failure=error.what)
                backward_failure = error.what
                answer = own.ask(Passes.replay, forward_only(port_request))
        except UserCodeError as error:
            return UnitResult(unit, failure=error.what)
        except WorkerError as error:
            return UnitResult(unit, failure=error.what, crashed=True)
        found = self.named(answer, places)
        tensors = tuple(self._compare(unit, reference, found, places, bool(backward_failure)))
        # A hypothesis is tried on the reference, where their gradients are apart.
        found = {k: v for k, v in found.items() if k not in places.joined_keys()}
        return UnitResult(
            unit,
            tensors,
            backward_failure=backward_failure,
            requests=(request, port_request),
            port=with_misshapen(found, answer, reference),
            places=places,
            reference=reference,
        )

    def _places(self, unit: Unit, request: ReplayRequest, reference: dict[str, Measured]) -> Places:
        theirs = self.session.port.ask(Passes.recorded, unit.port)
        outputs = [
            reference[TensorKey.output(i)].values for i in range(count_of(reference, "output"))
        ]
        own_inputs = [v.values for v in request.inputs if v is not None]
        pin_inputs: list[Slots] = []
        pin_outputs: list[Slots] = []
        for number, (_, port) in enumerate(unit.pins):
            child = self.session.port.ask(Passes.recorded, port)
            seen = count_of(reference, f"input_of.{number}")
            ours = [reference[TensorKey.input_of_pin(number, i)].values for i in range(seen)]
            pin_inputs.append(match_slots(ours, _values(child, "input")))
            given = [v.values for v in request.pin_outputs[number] if v is not None]
            pin_outputs.append(match_slots(given, _values(child, "output")))
        inputs = match_slots(own_inputs, _values(theirs, "input"))
        results = match_slots(outputs, _values(theirs, "output"))
        return Places(
            inputs,
            results,
            pin_inputs,
            pin_outputs,
            [v.shape for k, v in keyed(dict(sorted(theirs.items()))) if k.is_plain(Role.OUTPUT)],
            makes_own(len(own_inputs), self.port_calls[unit.port].input_shapes, inputs),
            tuple(
                makes_own(
                    count_of(reference, f"input_of.{number}"),
                    self.port_calls[port].input_shapes,
                    pin_inputs[number],
                )
                for number, (_, port) in enumerate(unit.pins)
            ),
            joined_slots(own_inputs, inputs),
            tuple(
                joined_slots(
                    [
                        reference[TensorKey.input_of_pin(number, i)].values
                        for i in range(count_of(reference, f"input_of.{number}"))
                    ],
                    slots,
                )
                for number, slots in enumerate(pin_inputs)
            ),
            makes_own(len(outputs), self.port_calls[unit.port].output_shapes, results),
            tuple(
                joined_slots(
                    [v.values for v in request.pin_outputs[number] if v is not None], slots
                )
                for number, slots in enumerate(pin_outputs)
            ),
            tuple(
                makes_own(
                    sum(v is not None for v in request.pin_outputs[number]),
                    self.port_calls[port].output_shapes,
                    pin_outputs[number],
                )
                for number, (_, port) in enumerate(unit.pins)
            ),
        )

    def _port_request(self, unit: Unit, request: ReplayRequest, places: Places) -> ReplayRequest:
        calls = self.port_calls
        pins = [port for _, port in unit.pins]
        return ReplayRequest(
            unit.port,
            tuple(pins),
            in_port_slots(request.inputs, places.inputs, len(calls[unit.port].input_shapes)),
            tuple(
                in_port_slots(values, slots, len(calls[pin].output_shapes))
                for values, slots, pin in zip(
                    request.pin_outputs, places.pin_outputs, pins, strict=True
                )
            ),
            in_port_slots(
                request.output_cotangents, places.outputs, len(calls[unit.port].output_shapes)
            ),
            tuple(
                in_port_slots(added_up(values, joins), slots, len(calls[pin].input_shapes))
                for values, slots, pin, joins in zip(
                    request.pin_cotangents,
                    places.pin_inputs,
                    pins,
                    places.pin_joins,
                    strict=False,
                )
            ),
            tuple(self.session.port_names(request.parameters)),
            tuple(self.session.port_names(request.buffers)),
            request.backward,
        )

    def named(self, answer: Tensors, places: Places) -> Tensors:
        """The port's answer to a replay under the reference's names and in its layouts.

        answer: the port's shapes, any dtypes.
        returns: the reference's shapes, the same dtypes.
        """
        port = places.as_reference(answer)
        gradients = gradients_of_parameters(answer)
        for name, value in self.session.as_reference(gradients, summed=True).items():
            port[TensorKey.parameter(name).gradient] = value
        buffers = {k.name: v for k, v in keyed(answer) if k.role is Role.BUFFER}
        for name, value in self.session.as_reference(buffers).items():
            port[TensorKey.buffer(name)] = value
        return port

    def _compare(
        self,
        unit: Unit,
        reference: dict[str, Measured],
        port: Tensors,
        places: Places,
        no_gradients: bool,
    ) -> Iterator[TensorResult]:
        for key, expected in keyed(reference):
            if no_gradients and key.is_gradient:
                continue
            if key not in port and places.is_made_inside(key):
                continue
            yield self._result(unit, key, expected, port.get(key), places)

    def _result(
        self,
        unit: Unit,
        key: TensorKey,
        expected: Measured,
        found: TensorValue | None,
        places: Places,
    ) -> TensorResult:
        stage, position, what = self._describe(unit, key)
        if found is None:
            if key.is_gradient:
                zero = np.zeros(expected.values.shape, np.float32)
                found = TensorValue(zero, "float32")
            else:
                why = places.why_missing(key, expected)
                lacks = key.is_plain(Role.INPUT_OF_PIN)
                return TensorResult(stage, unit, position, what, None, why, key=key, lacks=lacks)
        if found.shape != expected.values.shape:
            problem = f"shape {found.shape} instead of {expected.values.shape}"
            return TensorResult(stage, unit, position, what, None, problem, key=key)
        comparison = compare(what, expected, found)
        shift = None
        if stage is not Stage.TRAINING and comparison.exceeds(self.threshold):
            shift = self._shift(unit, key, expected, found)
        return TensorResult(
            stage, unit, position, what, comparison, shift=shift, key=key, dtype=expected.dtype
        )

    def _shift(
        self, unit: Unit, key: TensorKey, expected: Measured, found: TensorValue
    ) -> Shift | None:
        if key.slot is None or not np.issubdtype(expected.values.dtype, np.floating):
            return None
        with np.errstate(invalid="ignore"):
            error = np.subtract(found.values, expected.values)
            error = np.nan_to_num(error, nan=0.0, posinf=0.0, neginf=0.0)
        value = TensorValue(error.astype(np.float32), "float32")
        values = [None] * key.slot + [value]
        if key.pin is not None:
            where = "gradient.output" if key.is_gradient else "input"
            return Shift(unit.pins[key.pin][0], where, values)
        return Shift(unit.reference, "gradient.input" if key.is_gradient else "output", values)

    def _describe(self, unit: Unit, key: TensorKey) -> tuple[Stage, float, str]:
        calls = self.reference_calls
        end = last_descendant(calls, unit.reference) + (0.5 if unit.pins else 0.0)
        if key.pin is not None:
            call = unit.pins[key.pin][0]
            if key.is_gradient:
                return Stage.BACKWARD, -call, f"gradient of the output of {calls[call].module}"
            return Stage.FORWARD, call - 0.5, f"input {key.slot} of {calls[call].module}"
        if key.is_plain(Role.OUTPUT):
            return Stage.FORWARD, end, f"output {key.slot}"
        if key.role is Role.INPUT:
            return Stage.BACKWARD, -unit.reference, f"gradient of input {key.slot}"
        last = key.name.rpartition(".")[2]
        if key.role is Role.BUFFER:
            return Stage.TRAINING, end, last
        return Stage.BACKWARD, -unit.reference, f"gradient of {last}"


def _fetched(ahead: Pending[UnitMeasured] | UnitMeasured) -> UnitMeasured:
    return ahead if isinstance(ahead, UnitMeasured) else ahead.answer()


def forward_only(request: ReplayRequest) -> ReplayRequest:
    return ReplayRequest(
        request.call, request.pins, request.inputs, request.pin_outputs, buffers=request.buffers
    )


def _values(tensors: Tensors, word: str) -> list[Any]:
    return [value.values for value in in_slots(tensors, word)]
