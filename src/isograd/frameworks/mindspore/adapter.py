"""The MindSpore side of a verification: builds, records, replays and trains a network.

PyNative mode with synchronous execution throughout; `jit` is switched off, because compiled
code cannot be watched.  Both are reported as changed by `describe`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import platform
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn

from isograd import tree
from isograd.errors import CaseError, UserCodeError
from isograd.frameworks.base import (
    NATIVE,
    Arithmetic,
    CallInfo,
    DropoutSite,
    Floors,
    FunctionCall,
    ModuleInfo,
    ParameterInfo,
    ReplayRequest,
    SideSpec,
    Structure,
    Tensors,
)
from isograd.frameworks.common import (
    building_line,
    occurrences_within,
    split_inputs,
    split_optimizer,
)
from isograd.frameworks.mindspore.convert import from_value, to_value
from isograd.frameworks.mindspore.neutral import (
    dropout_cells,
    install,
    measure_dropout,
    neutral_chance,
)
from isograd.frameworks.mindspore.observe import (
    Call,
    CallRecorder,
    Pin,
    is_tensor,
    pinned,
)
from isograd.frameworks.mindspore.trace import FunctionTrace
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import TensorValue

_FLOATS = (ms.float16, ms.float32, ms.float64, ms.bfloat16)


class MindSporeFramework:
    """Drives one MindSpore network in this process."""

    name = "mindspore"

    def __init__(self) -> None:
        self._spec: SideSpec | None = None
        self._model = nn.Cell()
        self._cells: dict[str, nn.Cell] = {}
        self._parameters: dict[str, Any] = {}
        self._calls: list[Call] = []
        self._mode = "train"
        self._dropouts: list[DropoutSite] = []
        self._where: dict[int, str | None] = {}
        self._optimizer: Any = None
        self._schedulers: list[Any] = []
        self._before_training: Tensors | None = None
        self.floors: Floors = {}
        self._prepare()

    @staticmethod
    def _prepare() -> None:
        ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
        ms.jit = _no_jit
        install()

    def describe(self) -> dict[str, str]:
        return {
            "framework": self.name,
            "framework_version": str(ms.__version__),
            "python_version": platform.python_version(),
            "numpy_version": np.__version__,
            "changed": "PyNative mode; synchronous execution; jit switched off; dropout passes its input; "
            "random draws are constants",
            "device": str(ms.get_context("device_target")),
        }

    def build(self, spec: SideSpec, seed: int) -> Structure:
        self._spec = spec
        builder = load_callable(spec.model, spec.folder, "[port] model")
        if spec.loss:
            load_callable(spec.loss, spec.folder, "[port] loss")
        if spec.optimizer:
            load_callable(spec.optimizer, spec.folder, "[port] optimizer")
        ms.set_seed(seed)
        np.random.seed(seed % 2**32)
        with user_code(f"the model callable {spec.model}"), self._noting_lines():
            model = builder(**spec.model_kwargs)
        if not isinstance(model, nn.Cell):
            raise CaseError(
                f"{spec.model} returned a {type(model).__name__}, not a mindspore.nn.Cell",
                "Return the network.",
            )
        ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
        self._model = model
        self._cells = dict(model.cells_and_names())
        return self._structure()

    @contextlib.contextmanager
    def _noting_lines(self) -> Iterator[None]:
        original = nn.Cell.__init__
        where = self._where

        def noting(cell: Any, *args: Any, **kwargs: Any) -> None:
            where[id(cell)] = building_line(cell)
            original(cell, *args, **kwargs)

        nn.Cell.__init__ = noting
        try:
            yield
        finally:
            nn.Cell.__init__ = original

    def _structure(self) -> Structure:
        modules = tuple(
            ModuleInfo(
                name,
                type(cell).__name__,
                type(cell).__module__.startswith("mindspore."),
                _settings(cell),
                self._where.get(id(cell)),
            )
            for name, cell in self._cells.items()
        )
        infos = tuple(self._parameter_infos())
        return Structure(self.name, modules, infos)

    def _parameter_infos(self) -> Iterator[ParameterInfo]:
        first: dict[int, str] = {}
        for module, cell in self._cells.items():
            buffers = getattr(cell, "_buffers", None) or {}
            own = [(a, p, False) for a, p in cell._params.items()]
            own += [(a, b, True) for a, b in buffers.items()]
            for attribute, tensor, is_buffer in own:
                if tensor is None:
                    continue
                path = f"{module}.{attribute}" if module else attribute
                name = path if is_buffer else str(tensor.name)
                if name in self._parameters:
                    name = path
                tied = first.get(id(tensor))
                self._parameters[name] = tensor
                first.setdefault(id(tensor), name)
                yield ParameterInfo(
                    name,
                    module,
                    attribute,
                    tuple(tensor.shape),
                    to_value(tensor).dtype,
                    bool(getattr(tensor, "requires_grad", False)) and not is_buffer,
                    is_buffer,
                    tied,
                )

    def state(self) -> Tensors:
        return {name: to_value(t) for name, t in self._parameters.items()}

    def load_state(self, tensors: Tensors) -> None:
        for name, value in tensors.items():
            target = self._parameters.get(name)
            if target is None or tuple(target.shape) != value.shape:
                raise CaseError(
                    f"the MindSpore network has no tensor {name!r} of shape {value.shape}",
                    "Correct [weights].rename.",
                )
            tensor = from_value(value, target.dtype)
            # Not set_data: after it, an optimizer that has stepped leaves the parameter unchanged.
            if isinstance(target, ms.Parameter):
                ms.ops.assign(target, tensor)
            else:
                target.copy_(tensor)

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
        floating = [k for k, t in tensors.items() if t.dtype in _FLOATS]
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
            loss, found, weights = _differentiate(
                run, [tensors[k] for k in floating], [self._parameters[n] for n in names]
            )
            results = {f"output.{i}": to_value(t) for i, t in enumerate(outputs)}
            results["loss"] = to_value(loss)
            for key, gradient in zip(floating, found, strict=True):
                results[f"gradient.input.{key}"] = to_value(gradient)
            for name, gradient in zip(names, weights, strict=True):
                results[f"gradient.parameter.{name}"] = to_value(gradient)
        return results

    def _loss_of(self, output: Any, targets: list[TensorValue]) -> Any:
        assert self._spec is not None and self._spec.loss is not None
        function = load_callable(self._spec.loss, self._spec.folder, "[port] loss")
        with user_code(f"the loss {self._spec.loss}"):
            loss = function(output, *[from_value(t) for t in targets])
        if not isinstance(loss, ms.Tensor):
            raise UserCodeError(
                f"the loss {self._spec.loss} returned a {type(loss).__name__}, not a tensor",
                "Return the scalar loss.",
            )
        return loss

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
            _, found, weights = _differentiate(run, shape.flat, parameters)
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

        loss, found, _ = _differentiate(run, shape.flat, [])
        results = {"loss": to_value(loss)}
        for key, gradient in zip(shape.keys, found, strict=True):
            results[key.replace("input", "output")] = to_value(gradient)
        return results

    def start_training(self, track: str, arithmetic: Arithmetic = NATIVE) -> tuple[str, ...]:
        assert self._spec is not None and self._spec.optimizer is not None
        if self._before_training is None:
            self._before_training = self.state()
        self._model.set_train(True)
        function = load_callable(self._spec.optimizer, self._spec.folder, "[port] optimizer")
        with user_code(f"the optimizer {self._spec.optimizer}"):
            self._optimizer, self._schedulers = split_optimizer(function(self._model))
        return tuple(self._updated_names())

    def _updated_names(self) -> list[str]:
        names = {id(p): n for n, p in reversed(self._parameters.items())}
        parameters = getattr(self._optimizer, "parameters", None)
        if parameters is None or callable(parameters):
            parameters = self._model.trainable_params()
        found = []
        for parameter in parameters:
            if id(parameter) not in names:
                raise UserCodeError(
                    f"the optimizer updates {parameter.name!r}, which the network does not hold",
                    "Give it the parameters of the network that the callable was given.",
                )
            found.append(names[id(parameter)])
        return found

    def end_training(self) -> None:
        """Give back the state from before the training."""
        if self._before_training is not None:
            self.load_state(self._before_training)
        self._before_training, self._optimizer = None, None

    def train_step(
        self,
        track: str,
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        gradients: Tensors | None = None,
    ) -> Tensors:
        if state is not None:
            self.load_state(state)
        results: Tensors = {}
        names = self._updated_names()
        weights = [self._parameters[n] for n in names]
        if gradients is None:
            with neutral_chance(), user_code("a training step of the MindSpore network"):
                positional, keywords = split_inputs({k: from_value(v) for k, v in inputs.items()})

                def run() -> Any:
                    return self._loss_of(self._model(*positional, **keywords), targets)

                loss, _, found = _differentiate(run, [], weights)
            results["loss"] = to_value(loss)
        else:
            found = [
                from_value(gradients[f"gradient.parameter.{n}"], p.dtype)
                if f"gradient.parameter.{n}" in gradients
                else ms.ops.zeros_like(p)
                for n, p in zip(names, weights, strict=True)
            ]
        with user_code("the optimizer's step"):
            stepper = self._optimizer if callable(self._optimizer) else self._optimizer.step
            stepper(tuple(found))
            for scheduler in self._schedulers:
                scheduler.step()
        return results | {f"state.{n}": v for n, v in self.state().items()}

    def dropout_sites(self, mode: str) -> tuple[DropoutSite, ...]:
        kinds = dropout_cells()
        sites: list[DropoutSite] = []
        with self._restoring(mode):
            for site in self._dropouts:
                cell = self._cells[site.module]
                if isinstance(cell, kinds):
                    site = measure_dropout(site.module, cell, 0)
                layer = self._library_layer(site.module)
                if layer and sites and sites[-1].module == layer:
                    continue  # a stacked RNN drops between all its layers with one probability
                sites.append(dataclasses.replace(site, module=layer or site.module))
        return tuple(sites)

    def _library_layer(self, name: str) -> str:
        """The outermost layer of the library that this cell is a part of, if it is one."""
        parts = name.split(".")
        for count in range(1, len(parts)):
            cell = self._cells.get(".".join(parts[:count]))
            library = cell is not None and type(cell).__module__.startswith("mindspore.")
            if library and not isinstance(cell, (nn.SequentialCell, nn.CellList)):
                return ".".join(parts[:count])
        return ""

    @contextlib.contextmanager
    def _restoring(self, mode: str) -> Iterator[None]:
        """Set the mode, and give back modes, running statistics and the seed afterwards."""
        modes = [(cell, cell.training) for cell in self._cells.values()]
        phase = self._model._phase  # set_train changes it too
        still = {
            name: to_value(p)
            for name, p in self._parameters.items()
            if not getattr(p, "requires_grad", False)
        }
        ms.set_seed(1)
        self._model.set_train(mode == "train")
        try:
            yield
        finally:
            self.load_state(still)
            for cell, training in modes:
                cell.training = training
            self._model._phase = phase


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
            if tensor.dtype in _FLOATS:
                self.flat.append(tensor)
                self.keys.append(key)

    def put(self, leaves: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
        """Inputs and pin outputs with these leaves in the places of the floating tensors."""
        rest = list(leaves)

        def take(tensor: Any) -> Any:
            return rest.pop(0) if tensor.dtype in _FLOATS else tensor

        inputs = [take(t) for t in self._inputs]
        return inputs, [[take(t) for t in outputs] for outputs in self._pins]


def _leaves(given: Sequence[TensorValue | None], recorded: list[Any]) -> list[Any]:
    values = [*given, *[None] * (len(recorded) - len(given))]
    leaves = []
    for value, own in zip(values, recorded, strict=True):
        if value is None:
            leaves.append(own)
        elif value.is_floating and own.dtype in _FLOATS:
            leaves.append(from_value(value))
        else:
            leaves.append(from_value(value, own.dtype))
    return leaves


def _differentiate(
    run: Callable[..., Any], leaves: Sequence[Any], weights: Sequence[Any]
) -> tuple[Any, Sequence[Any], Sequence[Any]]:
    """Value, gradients of the leaves and gradients of the weights of a function."""
    positions = tuple(range(len(leaves))) or None
    if positions is None and not weights:
        return run(*leaves), (), ()
    step = ms.value_and_grad(run, positions, list(weights) or None)
    value, found = step(*leaves)
    if positions is None:
        return value, (), _sequence(found)
    if not weights:
        return value, _sequence(found), ()
    return value, _sequence(found[0]), _sequence(found[1])


def _sequence(found: Any) -> Sequence[Any]:
    return found if isinstance(found, (tuple, list)) else (found,)


def _weighted_sum(request: ReplayRequest, outputs: list[Any], pins: list[Pin]) -> Any:
    """The scalar whose gradient is the product of the cotangents with the Jacobian."""
    total = ms.Tensor(0.0, ms.float32)
    ends = list(zip(outputs, request.output_cotangents, strict=False))
    for pin, given in zip(pins, request.pin_cotangents, strict=False):
        ends += zip(pin.seen or [], given, strict=False)
    for tensor, cotangent in ends:
        if cotangent is not None and tensor.dtype in _FLOATS:
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


def _settings(cell: nn.Cell) -> str:
    try:
        return str(cell.extend_repr())
    except Exception:  # a user's cell may describe itself wrongly; the text is only a help
        return ""


def _no_jit(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Stands in for `mindspore.jit`: compiled code cannot be watched."""
    if callable(function):
        return function
    return lambda wrapped: wrapped
