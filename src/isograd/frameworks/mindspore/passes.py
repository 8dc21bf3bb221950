"""Passes of a MindSpore network: whole ones, recorded, and single calls replayed alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import mindspore as ms

from isograd import tree
from isograd.errors import UserCodeError
from isograd.frameworks.base import (
    NATIVE,
    Arithmetic,
    CallInfo,
    DropoutSite,
    FunctionCall,
    ReplayRequest,
    Tensors,
)
from isograd.frameworks.common import (
    occurrences_within,
    split_inputs,
)
from isograd.frameworks.mindspore.convert import from_value, to_value
from isograd.frameworks.mindspore.differentiate import FLOATS, differentiate
from isograd.frameworks.mindspore.network import MindSporeNetwork
from isograd.frameworks.mindspore.neutral import (
    neutral_chance,
)
from isograd.frameworks.mindspore.observe import (
    CallRecorder,
    Pin,
    is_tensor,
    pinned,
)
from isograd.frameworks.mindspore.trace import FunctionTrace
from isograd.frameworks.user_code import user_code
from isograd.tensors import TensorValue


class MindSporePasses(MindSporeNetwork):
    """Runs the network forward and backward."""

    def forward(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        *,
        record: bool = False,
        backward: bool = False,
        arithmetic: Arithmetic = NATIVE,
    ) -> Tensors:
        results: Tensors = {}
        recorder = CallRecorder()
        sites: list[DropoutSite] = []

        def note(probability: float) -> None:
            sites.append(DropoutSite(recorder.current, 0, probability, 0.0))

        with self._restoring(mode), neutral_chance():
            if record:
                with recorder.watching(self._cells), neutral_chance(note):
                    results = self._forward_only(inputs, targets)
                self._calls, self._mode, self._dropouts = recorder.calls, mode, sites
            if backward and self._spec is not None and self._spec.loss:
                results |= self._forward_backward(inputs, targets)
            elif not record:
                results = self._forward_only(inputs, targets)
        return results

    def _forward_only(self, inputs: dict[str, TensorValue], targets: list[TensorValue]) -> Tensors:
        positional, keywords = split_inputs({k: from_value(v) for k, v in inputs.items()})
        with user_code("the forward pass of the MindSpore network"):
            output = self._model(*positional, **keywords)
        tensors, _ = tree.flatten(output, is_tensor)
        results = {f"output.{i}": to_value(t) for i, t in enumerate(tensors)}
        if self._spec is not None and self._spec.loss:
            results["loss"] = to_value(self._loss_of(output, targets))
        return results

    def _forward_backward(
        self, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> Tensors:
        tensors = {k: from_value(v) for k, v in inputs.items()}
        floating = [k for k, t in tensors.items() if t.dtype in FLOATS]
        names = [n for n, p in self._parameters.items() if getattr(p, "requires_grad", False)]
        names = _distinct(names, self._parameters)
        outputs: list[Any] = []

        def run(*leaves: Any) -> Any:
            now = {**tensors, **dict(zip(floating, leaves, strict=True))}
            positional, keywords = split_inputs(now)
            output = self._model(*positional, **keywords)
            outputs[:] = tree.flatten(output, is_tensor)[0]
            return self._loss_of(output, targets)

        with user_code("the backward pass of the MindSpore network"):
            loss, found, weights = differentiate(
                run, [tensors[k] for k in floating], [self._parameters[n] for n in names]
            )
            results = {f"output.{i}": to_value(t) for i, t in enumerate(outputs)}
            results["loss"] = to_value(loss)
            for key, gradient in zip(floating, found, strict=True):
                results[f"gradient.input.{key}"] = to_value(gradient)
            for name, gradient in zip(names, weights, strict=True):
                results[f"gradient.parameter.{name}"] = to_value(gradient)
        return results

    def calls(self) -> tuple[CallInfo, ...]:
        return tuple(call.info() for call in self._calls)

    def recorded(self, call: int) -> Tensors:
        found = self._calls[call]
        result = {f"input.{i}": to_value(t) for i, t in enumerate(found.inputs)}
        return result | {f"output.{i}": to_value(t) for i, t in enumerate(found.outputs)}

    def replay(self, request: ReplayRequest, arithmetic: Arithmetic = NATIVE) -> Tensors:
        call = self._calls[request.call]
        cell = self._cells[call.module]
        inputs = _leaves(request.inputs, call.inputs)
        places = occurrences_within(self._calls, request.call, request.pins)
        children = [self._calls[index] for index in request.pins]
        given = [
            _leaves(request.pin_outputs[number], child.outputs)
            for number, child in enumerate(children)
        ]
        shape = _Leaves(inputs, given)
        caught: dict[str, Any] = {}
        buffers: Tensors = {}

        def run(*leaves: Any) -> Any:
            own, pin_outputs = shape.put(leaves)
            pins = [
                Pin(child.module, place, child.result, outputs)
                for child, place, outputs in zip(children, places, pin_outputs, strict=True)
            ]
            with pinned(self._cells, pins):
                arguments = tree.unflatten(call.arguments, own)
                output = cell(*arguments[0], **arguments[1])
            outputs, _ = tree.flatten(output, is_tensor)
            caught.clear()
            caught.update({f"output.{i}": t for i, t in enumerate(outputs)})
            buffers.clear()
            buffers.update({f"buffer.{n}": to_value(self._parameters[n]) for n in request.buffers})
            for number, pin in enumerate(pins):
                for slot, seen in enumerate(pin.seen or []):
                    caught[f"input_of.{number}.{slot}"] = seen
            return _weighted_sum(request, outputs, pins) if request.backward else None

        with (
            self._restoring(self._mode),
            neutral_chance(),
            user_code(f"replaying {call.module or 'the network'} in MindSpore"),
        ):
            if not request.backward:
                run(*shape.flat)
                return {key: to_value(t) for key, t in caught.items()} | buffers
            names = [n for n in request.parameters if n in self._parameters]
            parameters = [self._parameters[n] for n in names]
            _, found, weights = differentiate(run, shape.flat, parameters)
            results = {key: to_value(t) for key, t in caught.items()} | buffers
            for key, gradient in zip(shape.keys, found, strict=True):
                results[key] = to_value(gradient)
            for name, gradient in zip(names, weights, strict=True):
                results[f"gradient.parameter.{name}"] = to_value(gradient)
        return results

    def trace(self, request: ReplayRequest) -> tuple[FunctionCall, ...]:
        trace = FunctionTrace()
        with trace.watching():
            self.replay(dataclasses.replace(request, backward=False))
        return tuple(trace.events)

    def forward_shifted(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        shift: tuple[int, str, list[TensorValue | None]],
    ) -> Tensors:
        raise NotImplementedError("shifts are applied on the reference's side, in torch")

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        arithmetic: Arithmetic = NATIVE,
    ) -> Tensors:
        root = self._calls[0]
        shape = _Leaves(_leaves(tuple(outputs), root.outputs), [])

        def run(*leaves: Any) -> Any:
            own, _ = shape.put(leaves)
            return self._loss_of(tree.unflatten(root.result, own), targets)

        loss, found, _ = differentiate(run, shape.flat, [])
        results = {"loss": to_value(loss)}
        for key, gradient in zip(shape.keys, found, strict=True):
            results[key.replace("input", "output")] = to_value(gradient)
        return results


class _Leaves:
    """The floating tensors of a replay as one flat list, and their way back into place."""

    def __init__(self, inputs: list[Any], pins: list[list[Any]]) -> None:
        self._inputs, self._pins = inputs, pins
        self.flat: list[Any] = []
        self.keys: list[str] = []
        places = [(f"gradient.input.{i}", t) for i, t in enumerate(inputs)]
        for number, outputs in enumerate(pins):
            places += [(f"gradient.pin.{number}.{i}", t) for i, t in enumerate(outputs)]
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


def _leaves(given: Sequence[TensorValue | None], recorded: list[Any]) -> list[Any]:
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


def _distinct(names: list[str], parameters: dict[str, Any]) -> list[str]:
    seen: set[int] = set()
    kept = []
    for name in names:
        if id(parameters[name]) not in seen:
            seen.add(id(parameters[name]))
            kept.append(name)
    return kept
