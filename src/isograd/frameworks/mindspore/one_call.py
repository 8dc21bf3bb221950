"""One call of a cell, run alone: its tensors in their places, its pins given, its fixes made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms

from isograd import tree
from isograd.errors import UserCodeError
from isograd.frameworks.base import ReplayRequest, Tensors
from isograd.frameworks.common import RecordedCall, occurrences_within
from isograd.frameworks.mindspore.convert import from_value, to_value
from isograd.frameworks.mindspore.differentiate import FLOATS
from isograd.frameworks.mindspore.fixes import Replacements, Scope
from isograd.frameworks.mindspore.observe import Pin, is_tensor, pinned
from isograd.frameworks.mindspore.trace import FunctionTrace
from isograd.tensors import TensorKey, TensorValue


class Leaves:
    """The floating tensors of a replay as one flat list, and their way back into place."""

    def __init__(self, inputs: list[Any], pins: list[list[Any]]) -> None:
        self._inputs, self._pins = inputs, pins
        self.flat: list[Any] = []
        self.keys: list[str] = []
        places = [(TensorKey.input(i).gradient, t) for i, t in enumerate(inputs)]
        for number, outputs in enumerate(pins):
            places += [
                (TensorKey.output_of_pin(number, i).gradient, t) for i, t in enumerate(outputs)
            ]
        for key, tensor in places:
            if tensor.dtype in FLOATS:
                self.flat.append(tensor)
                self.keys.append(key)

    def put(self, leaves: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
        """Inputs and pin outputs with these leaves in the places of the floating tensors."""
        rest = list(leaves)

        def take(tensor: Any) -> Any:
            return rest.pop(0) if tensor.dtype in FLOATS else tensor

        inputs = [take(t) for t in self._inputs]
        return inputs, [[take(t) for t in outputs] for outputs in self._pins]


def leaves_of(given: Sequence[TensorValue | None], recorded: list[Any]) -> list[Any]:
    """The given tensors, and the recorded ones where none is given.

    given: the shapes of the recorded tensors, slot by slot; any float dtype for floats.
    """
    values = [*given, *[None] * (len(recorded) - len(given))]
    leaves = []
    for value, own in zip(values, recorded, strict=True):
        if value is None:
            leaves.append(own)
        elif value.is_floating and own.dtype in FLOATS:
            leaves.append(from_value(value))
        else:
            leaves.append(from_value(value, own.dtype))
    return leaves


class CallRun:
    """One call of a cell within a replay, with its pins and fixes; called once per pass.

    look_up_buffers: puts the buffers that the run has bound anew into `parameters`.
    """

    def __init__(
        self,
        cells: dict[str, Any],
        parameters: dict[str, Any],
        look_up_buffers: Callable[[], None],
        calls: list[RecordedCall],
        request: ReplayRequest,
        replacements: Replacements,
        trace: FunctionTrace | None,
    ) -> None:
        self._cells, self._parameters = cells, parameters
        self._look_up_buffers = look_up_buffers
        self._call = calls[request.call]
        self._children = [calls[index] for index in request.pins]
        self._places = occurrences_within(calls, request.call, request.pins)
        self._request = request
        self._replacements, self._trace = replacements, trace
        self._caught: dict[str, Any] = {}
        self._buffers: Tensors = {}

    def __call__(self, shape: Leaves, leaves: Sequence[Any]) -> Any:
        """Run the cell; the scalar to differentiate, or None."""
        own, pin_outputs = shape.put(leaves)
        pins = [
            Pin(child.module, place, child.result, outputs)
            for child, place, outputs in zip(self._children, self._places, pin_outputs, strict=True)
        ]
        replacements = self._replacements
        events = begin(self._trace, replacements)
        replacements.start(Scope(own, pin_outputs, (), self._parameters, events))
        with (
            pinned(self._cells, pins, self._at_pin),
            watching(self._trace, self._cells),
        ):
            if self._trace is not None:
                self._trace.give([t for outputs in pin_outputs for t in outputs])
            arguments = tree.unflatten(self._call.arguments, own)
            output = self._cells[self._call.module](*arguments[0], **arguments[1])
            outputs = [
                replacements.at(TensorKey.output(i), t)
                for i, t in enumerate(tree.flatten(output, is_tensor)[0])
            ]
        replacements.check()
        self._catch(outputs, pins)
        return _weighted_sum(self._request, outputs, pins) if self._request.backward else None

    def results(self) -> Tensors:
        """What the last run yielded, in the shapes and dtypes of the call's tensors."""
        return {key: to_value(t) for key, t in self._caught.items()} | self._buffers

    def _at_pin(self, target: str, tensor: Any) -> Any:
        found = self._replacements.at(target, tensor)
        if self._trace is not None and target.startswith("pin."):
            self._trace.give([found])
        return found

    def _catch(self, outputs: list[Any], pins: list[Pin]) -> None:
        self._caught = {TensorKey.output(i): t for i, t in enumerate(outputs)}
        for number, pin in enumerate(pins):
            for slot, seen in enumerate(pin.seen or []):
                self._caught[TensorKey.input_of_pin(number, slot)] = seen
        # At once: the running statistics are put back when the replay ends.
        self._look_up_buffers()
        self._buffers = {
            TensorKey.buffer(n): to_value(self._parameters[n]) for n in self._request.buffers
        }


def begin(trace: FunctionTrace | None, replacements: Replacements) -> Sequence[Any]:
    """Start noting anew: the list that the events' live tensors are put into."""
    if trace is None:
        return ()
    trace.results.clear()
    replacements.silent = trace.silent
    return trace.results


def watching(
    trace: FunctionTrace | None, cells: dict[str, Any]
) -> contextlib.AbstractContextManager[None]:
    """Watch the functions until the end of the block, if they are to be noted."""
    return trace.watching(list(cells.values())) if trace is not None else contextlib.nullcontext()


def _weighted_sum(request: ReplayRequest, outputs: list[Any], pins: list[Pin]) -> Any:
    """The scalar whose gradient is the product of the cotangents with the Jacobian."""
    total = ms.Tensor(0.0, ms.float32)
    ends = list(zip(outputs, request.output_cotangents, strict=False))
    for pin, given in zip(pins, request.pin_cotangents, strict=False):
        ends += zip(pin.seen or [], given, strict=False)
    for tensor, cotangent in ends:
        if cotangent is not None and tensor.dtype in FLOATS:
            if tuple(tensor.shape) != cotangent.shape:
                raise UserCodeError(
                    f"a result of shape {tuple(tensor.shape)} where the reference has "
                    f"{cotangent.shape}",
                    "Compare the shapes first.",
                )
            total = total + (tensor.astype(ms.float32) * from_value(cotangent, ms.float32)).sum()
    return total
