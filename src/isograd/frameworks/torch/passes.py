"""Passes of a torch network: whole ones, recorded, shifted, and single calls replayed alone."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

import torch
from torch import nn

from isograd import tree
from isograd.frameworks.base import (
    NATIVE,
    Arithmetic,
    CallInfo,
    DropoutSite,
    FunctionCall,
    FunctionSite,
    MaskDraw,
    ReplayRequest,
    Shift,
    Tensors,
)
from isograd.frameworks.common import (
    Arguments,
    occurrences_within,
    reset_network,
)
from isograd.frameworks.draws import MaskDraws
from isograd.frameworks.torch.arithmetic import computing
from isograd.frameworks.torch.convert import from_value, to_value
from isograd.frameworks.torch.interventions import Interventions, intervening
from isograd.frameworks.torch.network import (
    TorchNetwork,
    fresh,
    in_modes,
    restoring,
    restoring_state,
)
from isograd.frameworks.torch.neutral import neutral_chance
from isograd.frameworks.torch.observe import (
    CallRecorder,
    ParameterReads,
    Pin,
    is_tensor,
    pinned,
    shifted,
)
from isograd.frameworks.torch.trace import FunctionTrace
from isograd.frameworks.user_code import user_code
from isograd.tensors import TensorKey, TensorValue


class TorchPasses(TorchNetwork):
    """Runs the network forward and backward, in any arithmetic."""

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
            stack.enter_context(restoring(model, mode))
            if record:
                stack.enter_context(recorder.watching(model))
            hears = note if record else None
            masks = MaskDraws(lambda: recorder.current_call) if record else None
            chance = stack.enter_context(
                neutral_chance(model.modules(), hears, self._scaled, masks)
            )
            stack.enter_context(computing(arithmetic, self.floors))
            stack.enter_context(torch.set_grad_enabled(backward))
            stack.enter_context(intervening(model, self.interventions))
            reads = stack.enter_context(ParameterReads(model, recorder)) if record else None
            results = self._pass(model, inputs, targets, backward, arithmetic)
            if self._reports_buffers:
                results |= {
                    f"state.{n}": to_value(b)
                    for n, b in model.named_buffers()
                    if b.is_floating_point()
                }
            if reads is not None:
                self._borrowed = {m: tuple(sorted(names)) for m, names in reads.borrowed.items()}
                self._training = {name: m.training for name, m in model.named_modules()}
                self._known_modules.clear()
        if record:
            self._calls, self._mode, self._dropouts = recorder.calls, mode, sites
            self._drawn = tuple(chance.drawn)
            self._masks = () if masks is None else tuple(masks.found)
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
        reset_network(self._spec, model, "reference")
        arguments = Arguments(inputs)
        leaves = {
            key: self._leaf(v, arithmetic, i, backward)
            for i, (key, v) in enumerate(arguments.tensors.items())
        }
        positional, keywords = arguments.put(fresh(leaf) for leaf in leaves.values())
        with user_code("the forward pass of the torch network"):
            output = model(*positional, **keywords)
        tensors, _ = tree.flatten(output, is_tensor)
        results: Tensors = {TensorKey.output(i): to_value(t) for i, t in enumerate(tensors)}
        if self._spec.loss is None:
            return results
        loss = self._loss_of(output, targets)
        results["loss"] = to_value(loss)
        if backward and loss.requires_grad:
            with user_code("the backward pass of the torch network"):
                wanted = [p for p in model.parameters() if p.requires_grad]
                floating = [t for t in leaves.values() if t.requires_grad]
                found = torch.autograd.grad(loss.sum(), wanted + floating, allow_unused=True)
            names = {id(p): n for n, p in model.named_parameters()}
            for parameter, gradient in zip(wanted, found, strict=False):
                if gradient is not None:
                    results[TensorKey.parameter(names[id(parameter)]).gradient] = to_value(
                        gradient, lent=True
                    )
            keys = [k for k, t in leaves.items() if t.requires_grad]
            for key, gradient in zip(keys, found[len(wanted) :], strict=True):
                if gradient is not None:
                    results[TensorKey.input(key).gradient] = to_value(gradient, lent=True)
        return results

    def calls(self) -> tuple[CallInfo, ...]:
        return tuple(call.info() for call in self._calls)

    def borrowed(self) -> dict[str, tuple[str, ...]]:
        """Parameters that a module's own code reads though another module holds them.

        Of the recorded pass, by the module that reads: the table of embeddings at the output.
        """
        return self._borrowed

    def recorded(self, call: int) -> Tensors:
        found = self._calls[call]
        result: Tensors = {TensorKey.input(i): to_value(t) for i, t in enumerate(found.inputs)}
        result |= {TensorKey.output(i): to_value(t) for i, t in enumerate(found.outputs)}
        for word, gradients in (
            ("input", found.input_gradients),
            ("output", found.output_gradients),
        ):
            result |= {f"gradient.{word}.{i}": to_value(t) for i, t in gradients.items()}
        return result

    def replay(
        self,
        request: ReplayRequest,
        arithmetic: Arithmetic = NATIVE,
        watcher: Interventions | None = None,
    ) -> Tensors:
        call = self._calls[request.call]
        model = self._model_for(arithmetic)
        modules = self._modules_of(model)
        module = modules[call.module]
        inputs = self._leaves(request.inputs, call.inputs, arithmetic, request.backward, 0)
        places = occurrences_within(self._calls, request.call, request.pins)
        pins: list[Pin] = []
        for number, (index, place) in enumerate(zip(request.pins, places, strict=True)):
            child = self._calls[index]
            outputs = self._leaves(
                request.pin_outputs[number], child.outputs, arithmetic, request.backward, number + 1
            )
            changes = (child.in_place, child.changes_input)
            pins.append(Pin(child.module, place, child.result, outputs, *changes))
        with contextlib.ExitStack() as stack:
            stack.enter_context(in_modes(modules, self._training))
            stack.enter_context(restoring_state(module, self._chance_seed))
            stack.enter_context(
                neutral_chance(modules.values(), None, self._scaled, live=self._live)
            )
            stack.enter_context(pinned(modules, pins))
            stack.enter_context(computing(arithmetic, self.floors))
            stack.enter_context(torch.set_grad_enabled(request.backward))
            copies = [fresh(t) for t in inputs]
            stack.enter_context(intervening(model, self.interventions, call.module))
            if watcher is not None:
                for slot, tensor in enumerate(copies):
                    watcher.know(tensor, TensorKey.input(slot))
                stack.enter_context(watcher.watching(call.module))
                stack.enter_context(watcher)
            reset_network(self._spec, model, "reference")
            with user_code(f"replaying {call.module or 'the network'} in torch"):
                arguments = tree.unflatten(call.arguments, copies)
                output = module(*arguments[0], **arguments[1])
            outputs, _ = tree.flatten(output, is_tensor)
            results: Tensors = {TensorKey.output(i): to_value(t) for i, t in enumerate(outputs)}
            for number, pin in enumerate(pins):
                for slot, seen in enumerate(pin.seen or []):
                    results[TensorKey.input_of_pin(number, slot)] = to_value(seen)
            if request.buffers:
                results |= {TensorKey.buffer(n): to_value(_held(model, n)) for n in request.buffers}
            if request.backward:
                results |= self._replayed_gradients(request, model, inputs, pins, outputs)
        return results

    def mask_draws(self) -> tuple[MaskDraw, ...]:
        return self._masks

    def replay_with_chance(
        self, request: ReplayRequest, kinds: frozenset[str], seed: int
    ) -> Tensors:
        self._chance_seed, self._live = seed, kinds
        try:
            return self.replay(request)
        finally:
            self._chance_seed, self._live = 0, frozenset()

    def trace(self, request: ReplayRequest) -> tuple[FunctionCall, ...]:
        call = self._calls[request.call]
        module = dict(self._model.named_modules())[call.module]
        trace = FunctionTrace()
        with trace.inside(module, call.module), trace:
            self.replay(dataclasses.replace(request, backward=False))
        return tuple(trace.events)

    def sites(self, request: ReplayRequest, with_values: bool) -> tuple[FunctionSite, ...]:
        modules = dict(self._model.named_modules())
        watcher = Interventions(modules, note=True, with_values=with_values)
        self.replay(dataclasses.replace(request, backward=False), NATIVE, watcher)
        return tuple(watcher.sites)

    def loss_sites(
        self, outputs: list[TensorValue | None], targets: list[TensorValue], with_values: bool
    ) -> tuple[FunctionSite, ...]:
        watcher = Interventions({}, note=True, with_values=with_values)
        self.loss(outputs, targets, NATIVE, watcher)
        return tuple(watcher.sites)

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
        module = dict(self._model_for(arithmetic).named_modules())[call.module]
        shifts = [None if v is None else from_value(v) for v in shift.values]
        self._reports_buffers = True
        try:
            with shifted(module, call.occurrence, shift.where, shifts):
                return self.forward(mode, inputs, targets, backward=backward, arithmetic=arithmetic)
        finally:
            self._reports_buffers = False

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
        leaves = {TensorKey.input(i).gradient: t for i, t in enumerate(inputs)}
        for number, pin in enumerate(pins):
            leaves |= {
                TensorKey.output_of_pin(number, i).gradient: t for i, t in enumerate(pin.outputs)
            }
        leaves |= {
            TensorKey.parameter(n).gradient: model.get_parameter(n) for n in request.parameters
        }
        leaves = {key: t for key, t in leaves.items() if t.requires_grad}
        if not sources or not leaves:
            return {}
        with user_code("the backward pass of a replay in torch"):
            found: Sequence[torch.Tensor | None] = torch.autograd.grad(
                sources, list(leaves.values()), cotangents, allow_unused=True
            )
        pairs = zip(leaves.items(), found, strict=True)
        return {
            key: to_value(torch.zeros_like(leaf) if gradient is None else gradient, lent=True)
            for (key, leaf), gradient in pairs
        }

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        arithmetic: Arithmetic = NATIVE,
        watcher: Interventions | None = None,
    ) -> Tensors:
        root = self._calls[0]
        leaves = self._leaves(tuple(outputs), root.outputs, arithmetic, True, 0)
        with contextlib.ExitStack() as stack:
            stack.enter_context(computing(arithmetic, self.floors))
            stack.enter_context(torch.enable_grad())
            copies = [fresh(t) for t in leaves]
            if watcher is not None:
                for slot, tensor in enumerate(copies):
                    watcher.know(tensor, TensorKey.input(slot))
            loss = self._loss_of(tree.unflatten(root.result, copies), targets, watcher)
            results = {"loss": to_value(loss)}
            floating = [i for i, t in enumerate(leaves) if t.requires_grad]
            if loss.requires_grad and floating:
                found: Sequence[torch.Tensor | None] = torch.autograd.grad(
                    loss.sum(), [leaves[i] for i in floating], allow_unused=True
                )
                for i, gradient in zip(floating, found, strict=True):
                    shown = torch.zeros_like(leaves[i]) if gradient is None else gradient
                    results[TensorKey.output(i).gradient] = to_value(shown, lent=True)
        return results


def _held(model: nn.Module, name: str) -> torch.Tensor:
    """A buffer, or a parameter that does not learn, by its name."""
    path, _, attribute = name.rpartition(".")
    owner = model.get_submodule(path)
    found = owner._buffers.get(attribute, owner._parameters.get(attribute))
    assert found is not None, name
    return found
