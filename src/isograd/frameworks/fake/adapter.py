"""The whole framework protocol in numpy: tests run every stage with neither framework installed."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from isograd import tree
from isograd.errors import CaseError, UserCodeError
from isograd.frameworks.base import (
    FLOAT64,
    NATIVE,
    Arithmetic,
    CallInfo,
    DropoutSite,
    Floors,
    FunctionCall,
    FunctionSite,
    Intervention,
    ModuleInfo,
    ParameterInfo,
    Port,
    PortFix,
    ReplayRequest,
    Shift,
    SideSpec,
    Structure,
    Tensors,
)
from isograd.frameworks.capabilities import Diagnosable
from isograd.frameworks.common import (
    Arguments,
    building_line,
    load_callables,
    occurrences_within,
    split_optimizer,
    with_tensors,
)
from isograd.frameworks.draws import PROBE_CHANNELS, site_of
from isograd.frameworks.fake.convert import (
    copy_of,
    gradient_of,
    leaf_of,
    leaves_of,
    load,
    state_of,
    to_value,
)
from isograd.frameworks.fake.differentiate import end_gradients, give_gradients, replayed_gradients
from isograd.frameworks.fake.fixes import fixed, setting_of
from isograd.frameworks.fake.interventions import OUTSIDE, Interventions, intervening
from isograd.frameworks.fake.network import Buffer, Dropout, Module, Random
from isograd.frameworks.fake.observe import (
    Call,
    Pin,
    is_tensor,
    pinned,
    recording,
    restoring,
    shifted,
    traced,
)
from isograd.frameworks.fake.tape import Node, Tensor, Values, computing, gradients, identity
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import TensorKey, TensorValue, tensor_value

_LIBRARY = "isograd.frameworks.fake.network"


@dataclass
class _Track:
    """A copy of the network in training with its own optimizer."""

    model: Module
    optimizer: Any
    schedulers: list[Any]
    arithmetic: Arithmetic


class FakeFramework(Port, Diagnosable):
    """Drives one numpy network in this process."""

    name = "fake"

    def __init__(self) -> None:
        self._spec: SideSpec | None = None
        self._model = Module()
        self._calls: list[Call] = []
        self._gradients: dict[Node, Values] = {}
        self._mode = "train"
        self._tracks: dict[str, _Track] = {}
        self._where: dict[int, str | None] = {}
        self.floors: Floors = {}
        self.interventions: tuple[Intervention, ...] = ()
        self.loss_interventions: tuple[Intervention, ...] = ()

    def describe(self) -> dict[str, str]:
        return {
            "framework": self.name,
            "framework_version": np.__version__,
            "python_version": platform.python_version(),
            "numpy_version": np.__version__,
            "device": "CPU",
        }

    def build(self, spec: SideSpec, seed: int) -> Structure:
        self._spec = spec
        builder = load_callables(spec)
        Random.generator = np.random.default_rng(seed)
        with user_code(f"the model callable {spec.model}"), self._noting_lines():
            model = builder(**spec.model_kwargs)
        if not isinstance(model, Module):
            raise CaseError(
                f"{spec.model} returned a {type(model).__name__}, not a {_LIBRARY}.Module",
                "Return the network.",
            )
        self._model = model
        modules = tuple(
            ModuleInfo(
                name,
                type(module).__name__,
                type(module).__module__ == _LIBRARY,
                where=self._where.get(id(module)),
            )
            for name, module in model.named_modules()
        )
        return Structure(self.name, modules, tuple(self._parameter_infos()))

    @contextlib.contextmanager
    def _noting_lines(self) -> Iterator[None]:
        where = self._where

        def note(module: Module) -> None:
            where[id(module)] = building_line(module)

        Module.on_creation = note
        try:
            yield
        finally:
            Module.on_creation = None

    def _parameter_infos(self) -> Iterator[ParameterInfo]:
        first: dict[int, str] = {}
        for name, parameter in self._model.named_parameters():
            module, _, attribute = name.rpartition(".")
            yield ParameterInfo(
                name,
                module,
                attribute,
                parameter.shape,
                str(parameter.values.dtype),
                parameter.trainable,
                isinstance(parameter, Buffer),
                first.get(id(parameter)),
            )
            first.setdefault(id(parameter), name)

    def state(self) -> Tensors:
        return state_of(self._model)

    def load_state(self, tensors: Tensors) -> None:
        load(self._model, tensors)

    def _model_for(self, arithmetic: Arithmetic) -> Module:
        return copy_of(self._model, wide=True) if arithmetic.float64 else self._model

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
        calls: list[Call] = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(restoring(model, mode == "train"))
            stack.enter_context(computing(arithmetic))
            Random.neutral_dropout = True
            modules = dict(model.named_modules())
            if record:
                stack.enter_context(recording(modules, calls))
            stack.enter_context(intervening(modules, self.interventions))
            arguments = Arguments(inputs)
            given = enumerate(arguments.tensors.items())
            leaves = {key: leaf_of(v, arithmetic, i) for i, (key, v) in given}
            positional, keywords = arguments.put(map(identity, leaves.values()))
            with user_code("the forward pass of the fake network"):
                output = model(*positional, **keywords)
            results = _outputs(output)
            found: dict[Node, Values] = {}
            if self._spec is not None and self._spec.loss:
                loss = self._loss_of(output, targets, arithmetic)
                results["loss"] = to_value(loss.node)
                if backward:
                    found = gradients([(loss.node, np.ones_like(loss.values))])
                    results |= end_gradients(model, leaves, found)
        if record:
            self._calls, self._mode, self._gradients = calls, mode, found
        return results

    def _loss_of(self, output: Any, targets: list[TensorValue], arithmetic: Arithmetic) -> Tensor:
        assert self._spec is not None
        assert self._spec.loss is not None
        function = load_callable(self._spec.loss, self._spec.folder, "loss")
        wide = FLOAT64 if arithmetic.float64 else NATIVE
        changed = intervening({}, self.loss_interventions)
        with changed, user_code(f"the loss {self._spec.loss}"):
            loss = function(output, *with_tensors(list(targets), lambda t: leaf_of(t, wide, 0)))
        if not isinstance(loss, Tensor):
            raise UserCodeError(
                f"the loss {self._spec.loss} returned a {type(loss).__name__}, not a tensor",
                "Return the scalar loss.",
            )
        return loss

    def calls(self) -> tuple[CallInfo, ...]:
        return tuple(call.info() for call in self._calls)

    def recorded(self, call: int) -> Tensors:
        result: Tensors = {}
        for word, nodes in (
            ("input", self._calls[call].inputs),
            ("output", self._calls[call].outputs),
        ):
            for slot, node in enumerate(nodes):
                result[f"{word}.{slot}"] = to_value(node)
                if node in self._gradients:
                    result[f"gradient.{word}.{slot}"] = tensor_value(self._gradients[node].copy())
        return result

    def replay(
        self,
        request: ReplayRequest,
        arithmetic: Arithmetic = NATIVE,
        fixes: tuple[PortFix, ...] = (),
        watch: Interventions | None = None,
    ) -> Tensors:
        call = self._calls[request.call]
        model = self._model_for(arithmetic)
        modules = dict(model.named_modules())
        inputs = leaves_of(request.inputs, call.inputs, arithmetic, 0)
        places = occurrences_within(self._calls, request.call, request.pins)
        pins = [
            Pin(child, place, leaves_of(own, child.outputs, arithmetic, number + 1))
            for number, (child, place, own) in enumerate(
                zip(
                    [self._calls[index] for index in request.pins],
                    places,
                    request.pin_outputs,
                    strict=True,
                )
            )
        ]
        with contextlib.ExitStack() as stack:
            stack.enter_context(restoring(model, self._mode == "train"))
            stack.enter_context(computing(arithmetic))
            stack.enter_context(fixed(modules, fixes))
            stack.enter_context(pinned(modules, pins))
            stack.enter_context(intervening(modules, self.interventions))
            Random.neutral_dropout = True
            given = [identity(t) for t in inputs]
            if watch is not None:
                stack.enter_context(watch.watching())
                for slot, one in enumerate(given):
                    watch.know(one.node, TensorKey.input(slot))
            with user_code(f"replaying {call.module or 'the network'} in fake"):
                arguments = tree.unflatten(call.arguments, given)
                output = modules[call.module](*arguments[0], **arguments[1])
            outputs, _ = tree.flatten(output, is_tensor)
            results = _outputs(output)
            for number, pin in enumerate(pins):
                for slot, seen in enumerate(pin.seen):
                    results[TensorKey.input_of_pin(number, slot)] = to_value(seen)
            state = dict(model.named_parameters())
            results |= {TensorKey.buffer(n): to_value(state[n].node) for n in request.buffers}
            if request.backward:
                results |= replayed_gradients(request, model, inputs, pins, outputs)
        return results

    def sites(self, request: ReplayRequest, with_values: bool) -> tuple[FunctionSite, ...]:
        modules = dict(self._model.named_modules())
        watch = Interventions(modules, notes=True, with_values=with_values)
        self.replay(dataclasses.replace(request, backward=False), watch=watch)
        return tuple(watch.sites)

    def loss_sites(
        self, outputs: list[TensorValue | None], targets: list[TensorValue], with_values: bool
    ) -> tuple[FunctionSite, ...]:
        watch = Interventions({}, notes=True, with_values=with_values)
        with watch.watching():
            self.loss(outputs, targets)
        return tuple(watch.sites)

    def fix_for(self, module: str, function: str, argument: str, value: Any) -> PortFix | None:
        owner = dict(self._model.named_modules()).get(module)
        setting = setting_of(owner, function, argument, value)
        return PortFix("rebuild", module, arguments=setting) if setting else None

    def edit_text(self, fix: PortFix) -> tuple[str, str | None]:
        module = dict(self._model.named_modules()).get(fix.module)
        given = ", ".join(f"{name}={value!r}" for name, value in fix.arguments.items())
        return f"{type(module).__name__}({given})", self._where.get(id(module))

    def trace(
        self, request: ReplayRequest, fixes: tuple[PortFix, ...] = ()
    ) -> tuple[FunctionCall, ...]:
        call = self._calls[request.call]
        module = dict(self._model.named_modules())[call.module]
        events: list[FunctionCall] = []
        with traced(dict(module.named_modules(call.module)), events):
            self.replay(dataclasses.replace(request, backward=False), NATIVE, fixes)
        return tuple(events)

    def trace_loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        fixes: tuple[PortFix, ...] = (),
    ) -> tuple[FunctionCall, ...]:
        events: list[FunctionCall] = []
        with traced({}, events, OUTSIDE):
            self.loss(outputs, targets, NATIVE, fixes)
        return tuple(events)

    def forward_shifted(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        shift: Shift,
        arithmetic: Arithmetic = NATIVE,
    ) -> Tensors:
        call = self._calls[shift.call]
        module = dict(self._model.named_modules())[call.module]
        shifts = [None if value is None else value.values for value in shift.values]
        with shifted(call.module, module, call.occurrence, shift.where, shifts):
            return self.forward(mode, inputs, targets, backward=backward, arithmetic=arithmetic)

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        arithmetic: Arithmetic = NATIVE,
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        root = self._calls[0]
        leaves = leaves_of(tuple(outputs), root.outputs, arithmetic, 0)
        with computing(arithmetic), fixed({}, fixes):
            output = tree.unflatten(root.result, [identity(t) for t in leaves])
            loss = self._loss_of(output, targets, arithmetic)
            found = gradients([(loss.node, np.ones_like(loss.values))])
        results = {"loss": to_value(loss.node)}
        for slot, leaf in enumerate(leaves):
            if leaf.is_floating:
                results[TensorKey.output(slot).gradient] = gradient_of(leaf, found)
        return results

    def start_training(self, track: str, arithmetic: Arithmetic = NATIVE) -> tuple[str, ...]:
        assert self._spec is not None
        assert self._spec.optimizer is not None
        model = copy_of(self._model, wide=arithmetic.float64)
        model.train()
        function = load_callable(self._spec.optimizer, self._spec.folder, "optimizer")
        with user_code(f"the optimizer {self._spec.optimizer}"):
            optimizer, schedulers = split_optimizer(function(model))
        self._tracks[track] = _Track(model, optimizer, schedulers, arithmetic)
        names: dict[int, str] = {}
        for name, parameter in model.named_parameters():
            names.setdefault(id(parameter), name)
        foreign = [p for p in optimizer.parameters if id(p) not in names]
        if foreign:
            raise UserCodeError(
                f"the optimizer updates {len(foreign)} parameters that the network does not hold",
                "Give it the parameters of the network that the callable was given.",
            )
        updated = {id(parameter) for parameter in optimizer.parameters}
        return tuple(name for key, name in names.items() if key in updated)

    def end_training(self) -> None:
        self._tracks.clear()

    def train_step(
        self,
        track: str,
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        gradients: Tensors | None = None,
        *,
        lent: bool = False,
    ) -> Tensors:
        run = self._tracks[track]
        if state is not None:
            load(run.model, state)
        results: Tensors = {}
        generator, neutral = Random.generator, Random.neutral_dropout
        Random.neutral_dropout = True
        try:
            with computing(run.arithmetic):
                given = gradients
                if given is None:
                    results = self._descend(run, inputs, targets)
                    given = {k: v for k, v in results.items() if k != "loss"}
                give_gradients(run.model, given)
                with user_code("the optimizer's step"):
                    run.optimizer.step()
                    for scheduler in run.schedulers:
                        scheduler.step()
        finally:
            Random.generator, Random.neutral_dropout = generator, neutral
        return results | {f"state.{n}": v for n, v in state_of(run.model).items()}

    def _descend(
        self, run: _Track, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> Tensors:
        arguments = Arguments(inputs)
        positional, keywords = arguments.put(
            leaf_of(v, run.arithmetic, i) for i, v in enumerate(arguments.tensors.values())
        )
        modules = dict(run.model.named_modules())
        changed = intervening(modules, self.interventions)
        with changed, user_code("a training step of the fake network"):
            output = run.model(*positional, **keywords)
        loss = self._loss_of(output, targets, run.arithmetic)
        found = gradients([(loss.node, np.ones_like(loss.values))])
        return {"loss": to_value(loss.node)} | end_gradients(run.model, {}, found)

    def dropout_sites(
        self, mode: str, seed: int = 0, fixes: tuple[PortFix, ...] = ()
    ) -> tuple[DropoutSite, ...]:
        modules = dict(self._model.named_modules())
        sites: dict[str, DropoutSite] = {}
        with restoring(self._model, mode == "train"), fixed(modules, fixes):
            for call in self._calls:
                module = modules[call.module]
                if isinstance(module, Dropout) and call.module not in sites:
                    out = module(Tensor(np.ones(PROBE_CHANNELS, np.float32))).values
                    kept = out[out != 0]
                    scale = float(kept.mean()) if kept.size else 0.0
                    sites[call.module] = site_of(call.module, call.occurrence, out == 0, scale)
        return tuple(sites.values())

    def draws(self) -> tuple[str, ...]:
        return ()

    def draws_by_hand(self) -> bool:
        return False

    def keep_scale(self, keeps: bool) -> None:
        """The fake has no masks by hand, so nothing depends on it."""


def _outputs(output: Any) -> Tensors:
    tensors, _ = tree.flatten(output, is_tensor)
    return {TensorKey.output(i): to_value(t.node) for i, t in enumerate(tensors)}
