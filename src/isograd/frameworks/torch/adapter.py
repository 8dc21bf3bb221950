"""The torch side of a verification: builds, records, replays and trains a network."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

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
from isograd.frameworks.torch.arithmetic import computing, with_input_noise
from isograd.frameworks.torch.convert import from_value, to_value
from isograd.frameworks.torch.neutral import measure_dropout, neutral_chance
from isograd.frameworks.torch.observe import (
    Call,
    CallRecorder,
    Pin,
    is_tensor,
    pinned,
    shifted,
)
from isograd.frameworks.torch.trace import FunctionTrace
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import TensorValue


@dataclass
class _Track:
    """A copy of the network in training with its own optimizer."""

    model: nn.Module
    optimizer: Any
    schedulers: list[Any]
    arithmetic: Arithmetic
    names: dict[int, str] = field(default_factory=dict)


class TorchFramework:
    """Drives one torch network in this process."""

    name = "torch"

    def __init__(self) -> None:
        self._spec: SideSpec | None = None
        self._model = nn.Module()
        self._wide: nn.Module | None = None
        self._calls: list[Call] = []
        self._mode = "train"
        self._dropouts: list[DropoutSite] = []
        self._tracks: dict[str, _Track] = {}
        self._where: dict[int, str | None] = {}
        self.floors: Floors = {}

    def describe(self) -> dict[str, str]:
        return {
            "framework": self.name,
            "framework_version": str(torch.__version__),
            "python_version": platform.python_version(),
            "numpy_version": np.__version__,
            "changed": "dropout passes its input; random draws are constants",
            "device": f"CPU ({torch.get_num_threads()} threads)",
        }

    def build(self, spec: SideSpec, seed: int) -> Structure:
        self._spec = spec
        builder = load_callable(spec.model, spec.folder, "[reference] model")
        if spec.loss:
            load_callable(spec.loss, spec.folder, "[reference] loss")
        if spec.optimizer:
            load_callable(spec.optimizer, spec.folder, "[reference] optimizer")
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        with user_code(f"the model callable {spec.model}"), self._noting_lines():
            model = builder(**spec.model_kwargs)
        if not isinstance(model, nn.Module):
            raise CaseError(
                f"{spec.model} returned a {type(model).__name__}, not a torch.nn.Module",
                "Return the network.",
            )
        self._model = model
        return self._structure()

    @contextlib.contextmanager
    def _noting_lines(self) -> Iterator[None]:
        original = nn.Module.__init__
        where = self._where

        def noting(module: nn.Module, *args: Any, **kwargs: Any) -> None:
            where[id(module)] = building_line(module)
            original(module, *args, **kwargs)

        nn.Module.__init__ = noting  # type: ignore[method-assign]
        try:
            yield
        finally:
            nn.Module.__init__ = original  # type: ignore[method-assign]

    def _structure(self) -> Structure:
        modules = tuple(
            ModuleInfo(
                name,
                type(module).__name__,
                type(module).__module__.startswith("torch."),
                module.extra_repr(),
                self._where.get(id(module)),
            )
            for name, module in self._model.named_modules()
        )
        return Structure(self.name, modules, tuple(self._parameter_infos()))

    def _parameter_infos(self) -> Iterator[ParameterInfo]:
        first: dict[int, str] = {}
        for name, tensor in self._named_tensors(self._model, duplicates=True):
            owner, _, attribute = name.rpartition(".")
            yield ParameterInfo(
                name,
                owner,
                attribute,
                tuple(tensor.shape),
                str(tensor.dtype).removeprefix("torch."),
                tensor.requires_grad,
                not isinstance(tensor, nn.Parameter),
                first.get(id(tensor)),
            )
            first.setdefault(id(tensor), name)

    @staticmethod
    def _named_tensors(
        model: nn.Module, duplicates: bool = False
    ) -> Iterator[tuple[str, torch.Tensor]]:
        yield from model.named_parameters(remove_duplicate=not duplicates)
        yield from model.named_buffers(remove_duplicate=not duplicates)

    def state(self) -> Tensors:
        return {name: to_value(t) for name, t in self._named_tensors(self._model)}

    def load_state(self, tensors: Tensors) -> None:
        self._load(self._model, tensors)
        if self._wide is not None:
            self._load(self._wide, tensors)

    def _load(self, model: nn.Module, tensors: Tensors) -> None:
        targets = dict(self._named_tensors(model, duplicates=True))
        with torch.no_grad():
            for name, value in tensors.items():
                if name not in targets or tuple(targets[name].shape) != value.shape:
                    raise CaseError(
                        f"the torch network has no tensor {name!r} of shape {value.shape}",
                        "Correct [weights].rename.",
                    )
                targets[name].copy_(from_value(value))

    def _model_for(self, arithmetic: Arithmetic) -> nn.Module:
        if not arithmetic.float64:
            return self._model
        if self._wide is None:
            self._wide = self._copy_of_model(wide=True)
        return self._wide

    def _copy_of_model(self, wide: bool) -> nn.Module:
        self._forget_gradients()
        try:
            model = copy.deepcopy(self._model)
        except Exception:  # tensors that are no leaves cannot be copied: build it anew
            assert self._spec is not None
            builder = load_callable(self._spec.model, self._spec.folder, "[reference] model")
            model = builder(**self._spec.model_kwargs)
            self._load(model, self.state())
        if wide:
            _widen(model)
        return model

    def _forget_gradients(self) -> None:
        for parameter in self._model.parameters():
            parameter.grad = None

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
        model = self._model_for(arithmetic)
        recorder = CallRecorder()
        sites: list[DropoutSite] = []

        def note(probability: float) -> None:
            sites.append(DropoutSite(recorder.current, 0, probability, 0.0))

        with contextlib.ExitStack() as stack:
            stack.enter_context(_restoring(model, mode))
            if record:
                stack.enter_context(recorder.watching(model))
            stack.enter_context(neutral_chance(model, note if record else None))
            stack.enter_context(computing(arithmetic, self.floors))
            stack.enter_context(torch.set_grad_enabled(backward))
            results = self._pass(model, inputs, targets, backward, arithmetic)
        if record:
            self._calls, self._mode, self._dropouts = recorder.calls, mode, sites
        return results

    def _pass(
        self,
        model: nn.Module,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        arithmetic: Arithmetic,
    ) -> Tensors:
        assert self._spec is not None
        leaves = {
            key: self._leaf(v, arithmetic, i, backward) for i, (key, v) in enumerate(inputs.items())
        }
        positional, keywords = split_inputs({k: _fresh(v) for k, v in leaves.items()})
        with user_code("the forward pass of the torch network"):
            output = model(*positional, **keywords)
        tensors, skeleton = tree.flatten(output, is_tensor)
        results = {f"output.{i}": to_value(t) for i, t in enumerate(tensors)}
        if self._spec.loss is None:
            return results
        loss = self._loss_of(output, targets)
        results["loss"] = to_value(loss)
        if backward:
            with user_code("the backward pass of the torch network"):
                wanted = [p for p in model.parameters() if p.requires_grad]
                floating = [t for t in leaves.values() if t.requires_grad]
                found = torch.autograd.grad(loss, wanted + floating, allow_unused=True)
            names = {id(p): n for n, p in model.named_parameters()}
            for parameter, gradient in zip(wanted, found, strict=False):
                if gradient is not None:
                    results[f"gradient.parameter.{names[id(parameter)]}"] = to_value(gradient)
            keys = [k for k, t in leaves.items() if t.requires_grad]
            for key, gradient in zip(keys, found[len(wanted) :], strict=True):
                if gradient is not None:
                    results[f"gradient.input.{key}"] = to_value(gradient)
        return results

    def _loss_of(self, output: Any, targets: list[TensorValue]) -> torch.Tensor:
        assert self._spec is not None and self._spec.loss is not None
        function = load_callable(self._spec.loss, self._spec.folder, "[reference] loss")
        with user_code(f"the loss {self._spec.loss}"):
            loss = function(output, *[self._target(t) for t in targets])
        if not isinstance(loss, torch.Tensor):
            raise UserCodeError(
                f"the loss {self._spec.loss} returned a {type(loss).__name__}, not a tensor",
                "Return the scalar loss.",
            )
        if loss.numel() != 1:
            raise UserCodeError(
                f"the loss {self._spec.loss} returned a tensor of shape {tuple(loss.shape)}, not "
                "a scalar",
                "Return the scalar loss.",
            )
        return loss

    @staticmethod
    def _target(value: TensorValue) -> torch.Tensor:
        tensor = from_value(value)
        wide = tensor.is_floating_point() and torch.get_default_dtype() is torch.float64
        return tensor.double() if wide else tensor

    @staticmethod
    def _leaf(
        value: TensorValue | torch.Tensor, arithmetic: Arithmetic, position: int, gradient: bool
    ) -> torch.Tensor:
        tensor = from_value(value) if isinstance(value, TensorValue) else value
        tensor = tensor.detach().clone()
        if arithmetic.input_noise:
            tensor = with_input_noise(tensor, arithmetic, position)
        if arithmetic.float64 and tensor.is_floating_point():
            tensor = tensor.double()
        return tensor.requires_grad_(gradient and tensor.is_floating_point())

    def calls(self) -> tuple[CallInfo, ...]:
        return tuple(call.info() for call in self._calls)

    def recorded(self, call: int) -> Tensors:
        found = self._calls[call]
        result = {f"input.{i}": to_value(t) for i, t in enumerate(found.inputs)}
        result |= {f"output.{i}": to_value(t) for i, t in enumerate(found.outputs)}
        for word, gradients in (
            ("input", found.input_gradients),
            ("output", found.output_gradients),
        ):
            result |= {f"gradient.{word}.{i}": to_value(t) for i, t in gradients.items()}
        return result

    def replay(self, request: ReplayRequest, arithmetic: Arithmetic = NATIVE) -> Tensors:
        call = self._calls[request.call]
        model = self._model_for(arithmetic)
        modules = dict(model.named_modules())
        module = modules[call.module]
        inputs = self._leaves(request.inputs, call.inputs, arithmetic, request.backward, 0)
        places = occurrences_within(self._calls, request.call, request.pins)
        pins: list[Pin] = []
        for number, (index, place) in enumerate(zip(request.pins, places, strict=True)):
            child = self._calls[index]
            outputs = self._leaves(
                request.pin_outputs[number], child.outputs, arithmetic, request.backward, number + 1
            )
            pins.append(Pin(child.module, place, child.result, outputs, child.in_place))
        with contextlib.ExitStack() as stack:
            stack.enter_context(_restoring(model, self._mode, module))
            stack.enter_context(neutral_chance(model))
            stack.enter_context(pinned(modules, pins))
            stack.enter_context(computing(arithmetic, self.floors))
            stack.enter_context(torch.set_grad_enabled(request.backward))
            with user_code(f"replaying {call.module or 'the network'} in torch"):
                arguments = tree.unflatten(call.arguments, [_fresh(t) for t in inputs])
                output = module(*arguments[0], **arguments[1])
            outputs, _ = tree.flatten(output, is_tensor)
            results = {f"output.{i}": to_value(t) for i, t in enumerate(outputs)}
            for number, pin in enumerate(pins):
                for slot, seen in enumerate(pin.seen or []):
                    results[f"input_of.{number}.{slot}"] = to_value(seen)
            if request.buffers:
                state = dict(self._named_tensors(model, duplicates=True))
                results |= {f"buffer.{n}": to_value(state[n]) for n in request.buffers}
            if request.backward:
                results |= self._replayed_gradients(request, model, inputs, pins, outputs)
        return results

    def trace(self, request: ReplayRequest) -> tuple[FunctionCall, ...]:
        call = self._calls[request.call]
        module = dict(self._model.named_modules())[call.module]
        trace = FunctionTrace()
        with trace.inside(module, call.module), trace:
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
        index, where, values = shift
        call = self._calls[index]
        module = dict(self._model.named_modules())[call.module]
        with shifted(module, call.occurrence, where, [v and from_value(v) for v in values]):
            return self.forward(mode, inputs, targets, backward=backward)

    def _leaves(
        self,
        given: Sequence[TensorValue | None],
        recorded: list[torch.Tensor],
        arithmetic: Arithmetic,
        gradient: bool,
        group: int,
    ) -> list[torch.Tensor]:
        values = [*given, *[None] * (len(recorded) - len(given))]
        return [
            self._leaf(own if value is None else value, arithmetic, group * 1009 + i, gradient)
            for i, (value, own) in enumerate(zip(values, recorded, strict=True))
        ]

    @staticmethod
    def _replayed_gradients(
        request: ReplayRequest,
        model: nn.Module,
        inputs: list[torch.Tensor],
        pins: list[Pin],
        outputs: list[torch.Tensor],
    ) -> Tensors:
        sources: list[torch.Tensor] = []
        cotangents: list[torch.Tensor] = []
        ends = list(zip(outputs, request.output_cotangents, strict=False))
        for pin, given in zip(pins, request.pin_cotangents, strict=False):
            ends += zip(pin.seen or [], given, strict=False)
        for tensor, cotangent in ends:
            if cotangent is not None and tensor.requires_grad:
                sources.append(tensor)
                cotangents.append(from_value(cotangent, tensor.dtype))
        parameters = dict(model.named_parameters())
        leaves = {f"gradient.input.{i}": t for i, t in enumerate(inputs)}
        for number, pin in enumerate(pins):
            leaves |= {f"gradient.pin.{number}.{i}": t for i, t in enumerate(pin.outputs)}
        leaves |= {f"gradient.parameter.{n}": parameters[n] for n in request.parameters}
        leaves = {key: t for key, t in leaves.items() if t.requires_grad}
        if not sources or not leaves:
            return {}
        with user_code("the backward pass of a replay in torch"):
            found = torch.autograd.grad(
                sources, list(leaves.values()), cotangents, allow_unused=True
            )
        pairs = zip(leaves.items(), found, strict=True)
        return {
            key: to_value(torch.zeros_like(leaf) if gradient is None else gradient)
            for (key, leaf), gradient in pairs
        }

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        arithmetic: Arithmetic = NATIVE,
    ) -> Tensors:
        root = self._calls[0]
        leaves = self._leaves(tuple(outputs), root.outputs, arithmetic, True, 0)
        with computing(arithmetic, self.floors), torch.enable_grad():
            output = tree.unflatten(root.result, [_fresh(t) for t in leaves])
            loss = self._loss_of(output, targets)
            results = {"loss": to_value(loss)}
            floating = [i for i, t in enumerate(leaves) if t.requires_grad]
            if loss.requires_grad and floating:
                found = torch.autograd.grad(
                    loss.sum(), [leaves[i] for i in floating], allow_unused=True
                )
                for i, gradient in zip(floating, found, strict=True):
                    shown = torch.zeros_like(leaves[i]) if gradient is None else gradient
                    results[f"gradient.output.{i}"] = to_value(shown)
        return results

    def start_training(self, track: str, arithmetic: Arithmetic = NATIVE) -> tuple[str, ...]:
        assert self._spec is not None and self._spec.optimizer is not None
        model = self._copy_of_model(arithmetic.float64)
        model.train()
        function = load_callable(self._spec.optimizer, self._spec.folder, "[reference] optimizer")
        with user_code(f"the optimizer {self._spec.optimizer}"):
            optimizer, schedulers = split_optimizer(function(model))
        names = {id(p): n for n, p in model.named_parameters()}
        self._tracks[track] = _Track(model, optimizer, schedulers, arithmetic, names)
        groups = getattr(optimizer, "param_groups", [])
        updated = {id(p) for group in groups for p in group["params"]}
        foreign = updated - names.keys()
        if foreign:
            raise UserCodeError(
                f"the optimizer updates {len(foreign)} parameters that the network does not hold",
                "Give it the parameters of the network that the callable was given.",
            )
        return tuple(name for key, name in names.items() if key in updated)

    def end_training(self) -> None:
        """Drop all tracks and their memory."""
        self._tracks.clear()

    def train_step(
        self,
        track: str,
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        gradients: Tensors | None = None,
    ) -> Tensors:
        run = self._tracks[track]
        if state is not None:
            self._load(run.model, state)
        results: Tensors = {}
        run.model.zero_grad(set_to_none=True)
        with contextlib.ExitStack() as stack:
            stack.enter_context(neutral_chance(run.model))
            stack.enter_context(computing(run.arithmetic, self.floors))
            if gradients is None:
                results["loss"] = self._descend(run, inputs, targets)
            else:
                for parameter in run.model.parameters():
                    name = f"gradient.parameter.{run.names[id(parameter)]}"
                    if name in gradients and parameter.requires_grad:
                        parameter.grad = from_value(gradients[name], parameter.dtype)
            for name, parameter in run.model.named_parameters():
                if parameter.grad is not None and gradients is None and track == "native":
                    results[f"gradient.parameter.{name}"] = to_value(parameter.grad)
            with user_code("the optimizer's step"):
                run.optimizer.step()
                for scheduler in run.schedulers:
                    scheduler.step()
        results |= {f"state.{n}": to_value(t) for n, t in self._named_tensors(run.model)}
        return results

    def _descend(
        self, run: _Track, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> TensorValue:
        leaves = {
            k: self._leaf(v, run.arithmetic, i, False) for i, (k, v) in enumerate(inputs.items())
        }
        positional, keywords = split_inputs(leaves)
        with user_code("a training step of the torch network"):
            loss = self._loss_of(run.model(*positional, **keywords), targets)
            loss.backward()  # type: ignore[no-untyped-call]
        return to_value(loss)

    def dropout_sites(self, mode: str) -> tuple[DropoutSite, ...]:
        modules = dict(self._model.named_modules())
        kinds = nn.modules.dropout._DropoutNd
        sites: list[DropoutSite] = []
        with _restoring(self._model, mode):
            for site in self._dropouts:
                module = modules[site.module]
                is_module = isinstance(module, kinds)
                sites.append(measure_dropout(site.module, module, 0) if is_module else site)
        return tuple(sites)


def _fresh(leaf: torch.Tensor) -> torch.Tensor:
    """A copy that in-place operators may change."""
    return leaf.clone()


def _widen(model: nn.Module) -> None:
    model.double()
    for module in model.modules():
        for key, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                module.__dict__[key] = value.double()


@contextlib.contextmanager
def _restoring(model: nn.Module, mode: str, part: nn.Module | None = None) -> Iterator[None]:
    """Set the mode, and give back modes, buffers and the random state afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    buffers = [(b, b.detach().clone()) for b in (part or model).buffers()]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model.train(mode == "train")
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            for module, training in modes:
                module.training = training
