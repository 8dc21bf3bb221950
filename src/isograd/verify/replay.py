"""Isolated replay: one unit on both sides, judged tensor by tensor."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isograd.errors import UserCodeError, WorkerError
from isograd.frameworks.base import CallInfo, ReplayRequest, Shift, Tensors, in_slots
from isograd.model import Stage
from isograd.noise.envelope import (
    ISOLATED_VARIANTS,
    Comparison,
    Measured,
    compare,
    measured,
)
from isograd.pairing.layout import Layout, match_slots
from isograd.tensors import Array, TensorValue
from isograd.verify.session import Session
from isograd.verify.units import Unit, last_descendant
from isograd.worker.asking import Pending
from isograd.worker.protocols import Passes
from isograd.worker.requests import UnitMeasured, UnitRequest

_SLOT = re.compile(r"(output|gradient\.input)\.(\d+)$")
_PIN_SLOT = re.compile(r"(input_of|gradient\.pin)\.(\d+)\.(\d+)$")

Slots = list[tuple[int, int, Layout]]


@dataclass(frozen=True)
class TensorResult:
    """The judgement of one tensor of one unit.

    position: where in the reference's order of calls the tensor arises.
    what: in words, for example "output" or "input of layer1.0.conv2".
    problem: why there is no comparison (a wrong shape, a call that never happened), or "".
    shift: for a forward tensor or a gradient that differs, the call, where (as in
    `Framework.forward_shifted`) and the slot that the error belongs to, with the error itself;
    None for a parameter's gradient.
    key: the tensor's name within the unit, as in `Framework`.  lacks: whether the port hands none
    to the call.
    """

    stage: Stage
    unit: Unit
    position: float
    what: str
    comparison: Comparison | None
    problem: str = ""
    shift: Shift | None = None
    key: str = ""
    lacks: bool = False

    @property
    def ratio(self) -> float:
        return self.comparison.ratio if self.comparison is not None else float("inf")


@dataclass(frozen=True)
class UnitResult:
    """The judgement of one unit; failure says why it could not be replayed.

    port: the port's tensors under the reference's names and in its layouts; reference: what they
    were judged by.
    """

    unit: Unit
    tensors: tuple[TensorResult, ...] = ()
    failure: str = ""
    crashed: bool = False
    backward_failure: str = ""
    requests: tuple[ReplayRequest, ReplayRequest] | None = None
    port: Tensors = field(default_factory=dict)
    places: Places | None = None
    reference: dict[str, Measured] = field(default_factory=dict)

    def without_unneeded(self, agreeing: Collection[int]) -> UnitResult:
        """Without inputs that calls of the port lack and agree without: positions, masks of ones.

        agreeing: the reference's calls whose units agree, replayed without these inputs.
        """
        unneeded = {
            tensor.key
            for tensor in self.tensors
            if tensor.lacks and self.unit.pins[int(tensor.key.split(".")[1])][0] in agreeing
        }
        if not unneeded:
            return self
        return replace(self, tensors=tuple(t for t in self.tensors if t.key not in unneeded))

    def brief(self) -> UnitResult:
        """The same without tensors."""
        return replace(self, requests=None, port={}, places=None, reference={})


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
            if _is_inside(p.module, module) and not any(_is_inside(p.module, m) for m in pinned)
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
            _lacking(ours[unit.reference].output_shapes, theirs[unit.port].output_shapes),
            tuple(
                _of_no_size(ours[pin].input_shapes, theirs[port].input_shapes)
                for pin, port in unit.pins
            ),
        )

    def _borrowed(self, module: str, pinned: Collection[str]) -> list[str]:
        """Paired parameters of other modules that the code of a unit reads: a tied table."""
        found: list[str] = []
        for reader, names in self.borrowed.items():
            if _is_inside(reader, module) and not any(_is_inside(reader, m) for m in pinned):
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
        outputs = [reference[f"output.{i}"].values for i in range(_count(reference, "output"))]
        own_inputs = [v.values for v in request.inputs if v is not None]
        pin_inputs: list[Slots] = []
        pin_outputs: list[Slots] = []
        for number, (_, port) in enumerate(unit.pins):
            child = self.session.port.ask(Passes.recorded, port)
            seen = _count(reference, f"input_of.{number}")
            ours = [reference[f"input_of.{number}.{i}"].values for i in range(seen)]
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
            [v.shape for k, v in sorted(theirs.items()) if k.startswith("output.")],
            _makes_own(len(own_inputs), self.port_calls[unit.port].input_shapes, inputs),
            tuple(
                _makes_own(
                    _count(reference, f"input_of.{number}"),
                    self.port_calls[port].input_shapes,
                    pin_inputs[number],
                )
                for number, (_, port) in enumerate(unit.pins)
            ),
            _joins(own_inputs, inputs),
            tuple(
                _joins(
                    [
                        reference[f"input_of.{number}.{i}"].values
                        for i in range(_count(reference, f"input_of.{number}"))
                    ],
                    slots,
                )
                for number, slots in enumerate(pin_inputs)
            ),
            _makes_own(len(outputs), self.port_calls[unit.port].output_shapes, results),
            tuple(
                _joins([v.values for v in request.pin_outputs[number] if v is not None], slots)
                for number, slots in enumerate(pin_outputs)
            ),
            tuple(
                _makes_own(
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
            _moved(request.inputs, places.inputs, len(calls[unit.port].input_shapes)),
            tuple(
                _moved(values, slots, len(calls[pin].output_shapes))
                for values, slots, pin in zip(
                    request.pin_outputs, places.pin_outputs, pins, strict=True
                )
            ),
            _moved(request.output_cotangents, places.outputs, len(calls[unit.port].output_shapes)),
            tuple(
                _moved(_together(values, joins), slots, len(calls[pin].input_shapes))
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
        """The port's answer to a replay under the reference's names and in its layouts."""
        port = places.as_reference(answer)
        gradients = {k[19:]: v for k, v in answer.items() if k.startswith("gradient.parameter.")}
        for name, value in self.session.as_reference(gradients, summed=True).items():
            port[f"gradient.parameter.{name}"] = value
        buffers = {k[7:]: v for k, v in answer.items() if k.startswith("buffer.")}
        for name, value in self.session.as_reference(buffers).items():
            port[f"buffer.{name}"] = value
        return port

    def _compare(
        self,
        unit: Unit,
        reference: dict[str, Measured],
        port: Tensors,
        places: Places,
        no_gradients: bool,
    ) -> Iterator[TensorResult]:
        for key, expected in reference.items():
            if no_gradients and key.startswith("gradient."):
                continue
            if key not in port and places.is_made_inside(key):
                continue
            yield self._result(unit, key, expected, port.get(key), places)

    def _result(
        self,
        unit: Unit,
        key: str,
        expected: Measured,
        found: TensorValue | None,
        places: Places,
    ) -> TensorResult:
        stage, position, what = self._describe(unit, key)
        if found is None:
            if key.startswith("gradient."):
                zero = np.zeros(expected.values.shape, np.float32)
                found = TensorValue(zero, "float32")
            else:
                why = places.why_missing(key, expected)
                lacks = key.startswith("input_of.")
                return TensorResult(stage, unit, position, what, None, why, key=key, lacks=lacks)
        if found.shape != expected.values.shape:
            problem = f"shape {found.shape} instead of {expected.values.shape}"
            return TensorResult(stage, unit, position, what, None, problem, key=key)
        comparison = compare(what, expected, found)
        shift = None
        if stage is not Stage.TRAINING and comparison.exceeds(self.threshold):
            shift = self._shift(unit, key, expected, found)
        return TensorResult(stage, unit, position, what, comparison, shift=shift, key=key)

    def _shift(self, unit: Unit, key: str, expected: Measured, found: TensorValue) -> Shift | None:
        if not np.issubdtype(expected.values.dtype, np.floating):
            return None
        with np.errstate(invalid="ignore"):
            error = np.subtract(found.values, expected.values)
            error = np.nan_to_num(error, nan=0.0, posinf=0.0, neginf=0.0)
        value = TensorValue(error.astype(np.float32), "float32")
        pin, slot = _PIN_SLOT.match(key), _SLOT.match(key)
        if pin:
            where = "input" if pin[1] == "input_of" else "gradient.output"
            return Shift(unit.pins[int(pin[2])][0], where, [None] * int(pin[3]) + [value])
        if slot:
            where = "output" if slot[1] == "output" else "gradient.input"
            return Shift(unit.reference, where, [None] * int(slot[2]) + [value])
        return None

    def _describe(self, unit: Unit, key: str) -> tuple[Stage, float, str]:
        calls = self.reference_calls
        end = last_descendant(calls, unit.reference) + (0.5 if unit.pins else 0.0)
        pin = _PIN_SLOT.match(key)
        if pin:
            call = unit.pins[int(pin[2])][0]
            if pin[1] == "input_of":
                name = calls[call].module
                return Stage.FORWARD, call - 0.5, f"input {pin[3]} of {name}"
            return Stage.BACKWARD, -call, f"gradient of the output of {calls[call].module}"
        slot = _SLOT.match(key)
        if slot and slot[1] == "output":
            return Stage.FORWARD, end, f"output {slot[2]}"
        if slot:
            return Stage.BACKWARD, -unit.reference, f"gradient of input {slot[2]}"
        if key.startswith("buffer."):
            return Stage.TRAINING, end, key.removeprefix("buffer.").rpartition(".")[2]
        return Stage.BACKWARD, -unit.reference, f"gradient of {key.rpartition('.')[2]}"


def with_misshapen(found: Tensors, answer: Tensors, reference: dict[str, Measured]) -> Tensors:
    """The tensors, with those of another shape as the port has them."""
    result = dict(found)
    for key in reference:
        if key not in result and key in answer and key.startswith(("output.", "input_of.")):
            result[key] = answer[key]
    return result


@dataclass(frozen=True)
class Places:
    """How the tensors of a unit correspond between the two sides.

    makes_own, pins_make_own: whether the port's call takes fewer tensors and makes the others
    itself (cosines of positions inside the attention); it is judged by what it returns.
    returns_fewer: whether the port's call returns fewer tensors (no final states); what uses them
    in the reference is judged by what it makes of them.
    joins, pin_joins: inputs that only the reference has, with one of equal values that both have:
    the port passes a tensor once which the reference passes as query, key and value.
    output_joins: the same of what pinned calls return (the last hidden state, and all of them).
    pins_return_fewer: as returns_fewer, of the pinned calls.
    """

    inputs: Slots
    outputs: Slots
    pin_inputs: list[Slots]
    pin_outputs: list[Slots]
    output_shapes: list[tuple[int, ...]]
    makes_own: bool = False
    pins_make_own: tuple[bool, ...] = ()
    joins: tuple[tuple[int, int], ...] = ()
    pin_joins: tuple[tuple[tuple[int, int], ...], ...] = ()
    returns_fewer: bool = False
    output_joins: tuple[tuple[tuple[int, int], ...], ...] = ()
    pins_return_fewer: tuple[bool, ...] = ()

    def _joined_gradients(self) -> Iterator[tuple[str, str]]:
        """Gradients by tensors that only the reference has, and those that they are added to."""
        for lacking, kept in self.joins:
            yield f"gradient.input.{lacking}", f"gradient.input.{kept}"
        for number, joins in enumerate(self.output_joins):
            for lacking, kept in joins:
                yield f"gradient.pin.{number}.{lacking}", f"gradient.pin.{number}.{kept}"

    def joined_keys(self) -> set[str]:
        """Gradients that stand for several tensors of the reference."""
        return {kept for _, kept in self._joined_gradients()}

    def joined(self, reference: dict[str, Measured]) -> dict[str, Measured]:
        """The reference's tensors, with the gradients by one that stands twice added."""
        result = dict(reference)
        for lacking, kept in self._joined_gradients():
            more, own = result.pop(lacking, None), result.get(kept)
            if more is not None and own is not None:
                result[kept] = replace(
                    own,
                    values=np.add(own.values, more.values),
                    allowed=own.allowed + more.allowed,
                )
        return result

    def is_made_inside(self, key: str) -> bool:
        """Whether the port's call makes this tensor, which the reference hands on, itself."""
        if key.startswith("output."):
            return self.returns_fewer
        pin = _PIN_SLOT.match(key)
        if pin:
            fewer = self.pins_make_own if pin[1] == "input_of" else self.pins_return_fewer
            return fewer[int(pin[2])]
        return key.startswith("gradient.input.") and self.makes_own

    def as_reference(self, answer: Tensors) -> Tensors:
        """The port's results under the reference's names and in its layouts."""
        groups = [("output", self.outputs), ("gradient.input", self.inputs)]
        for number, slots in enumerate(self.pin_inputs):
            groups.append((f"input_of.{number}", slots))
        for number, slots in enumerate(self.pin_outputs):
            groups.append((f"gradient.pin.{number}", slots))
        result: Tensors = {}
        for word, slots in groups:
            for ours, theirs, layout in slots:
                value = answer.get(f"{word}.{theirs}")
                if value is None:
                    continue
                values = value.values
                if value.shape == layout.port_shape:
                    values = layout.to_reference(values)
                result[f"{word}.{ours}"] = TensorValue(values, value.dtype)
        return result

    def why_missing(self, key: str, expected: Measured) -> str:
        """Why the port has no tensor for this one."""
        if key.startswith("output."):
            shapes = ", ".join(str(s) for s in self.output_shapes) or "none"
            return f"outputs of shape {shapes} instead of {expected.values.shape}"
        return f"no tensor of shape {expected.values.shape} reaches it in the port"


def _moved(
    values: tuple[TensorValue | None, ...], slots: Slots, count: int
) -> tuple[TensorValue | None, ...]:
    """The reference's tensors in the port's slots and layouts; None where there is none."""
    result: list[TensorValue | None] = [None] * count
    for ours, theirs, layout in slots:
        value = values[ours] if ours < len(values) else None
        if value is not None and value.shape == layout.reference_shape:
            result[theirs] = TensorValue(layout.to_port(value.values), value.dtype)
    return tuple(result)


def _fetched(ahead: Pending[UnitMeasured] | UnitMeasured) -> UnitMeasured:
    return ahead if isinstance(ahead, UnitMeasured) else ahead.answer()


def forward_only(request: ReplayRequest) -> ReplayRequest:
    return ReplayRequest(
        request.call, request.pins, request.inputs, request.pin_outputs, buffers=request.buffers
    )


def _values(tensors: Tensors, word: str) -> list[Any]:
    return [value.values for value in in_slots(tensors, word)]


def _joins(reference: list[Array], slots: Slots) -> tuple[tuple[int, int], ...]:
    """Slots of the reference without a counterpart, each with one of equal values that has one."""
    matched = [ours for ours, _, _ in slots]
    return tuple(
        (lacking, next(iter(same)))
        for lacking in range(len(reference))
        if lacking not in matched
        and (same := [i for i in matched if np.array_equal(reference[i], reference[lacking])])
    )


def _together(
    values: tuple[TensorValue | None, ...], joins: tuple[tuple[int, int], ...]
) -> tuple[TensorValue | None, ...]:
    """What flows back into an input that is passed several times, added up."""
    result = list(values)
    for lacking, kept in joins:
        own, more = result[kept], result[lacking]
        if own is not None and more is not None:
            result[kept] = TensorValue(np.add(own.values, more.values), own.dtype)
    return tuple(result)


def _makes_own(count: int, port: tuple[tuple[int, ...], ...], slots: Slots) -> bool:
    return len(slots) == len(port) < count


def _lacking(
    reference: tuple[tuple[int, ...], ...], port: tuple[tuple[int, ...], ...]
) -> tuple[int, ...]:
    """Outputs of the reference for which the port has none of equal size: final states.

    Paired as the tensors are: of two that are equal, the one that has a partner keeps its gradient.
    """
    if len(port) >= len(reference):
        return ()
    ours, theirs = (
        [np.broadcast_to(0.0, (math.prod(shape),)) for shape in shapes]
        for shapes in (reference, port)
    )
    paired = {i for i, j, _ in match_slots(ours, theirs) if ours[i].size == theirs[j].size}
    return tuple(i for i in range(len(reference)) if i not in paired)


def _of_no_size(
    reference: tuple[tuple[int, ...], ...], port: tuple[tuple[int, ...], ...]
) -> tuple[int, ...]:
    """Inputs of the reference of a size that the port's have not: a tensor for its dtype alone."""
    sizes = {math.prod(shape) for shape in port}
    return tuple(i for i, shape in enumerate(reference) if math.prod(shape) not in sizes)


def _count(tensors: dict[str, Any], word: str) -> int:
    return sum(1 for k in tensors if k.startswith(f"{word}.") and k[len(word) + 1 :].isdigit())


def _is_inside(module: str, container: str) -> bool:
    return not container or module == container or module.startswith(f"{container}.")
