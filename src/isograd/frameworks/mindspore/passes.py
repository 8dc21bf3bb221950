"""Passes of a MindSpore network: whole ones, recorded, and single calls replayed alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from isograd import tree
from isograd.edits import SourceEdit
from isograd.frameworks.base import (
    NATIVE,
    Arithmetic,
    CallInfo,
    DropoutSite,
    FunctionCall,
    MaskDraw,
    PortFix,
    ReplayRequest,
    Shift,
    Tensors,
)
from isograd.frameworks.common import (
    Arguments,
    users_line,
    with_tensors,
)
from isograd.frameworks.draws import MaskDraws
from isograd.frameworks.mindspore.call_edits import replacing_edits, together
from isograd.frameworks.mindspore.construction import is_library
from isograd.frameworks.mindspore.convert import from_value, to_value
from isograd.frameworks.mindspore.differentiate import FLOATS, differentiate
from isograd.frameworks.mindspore.fixes import Replacements, Scope
from isograd.frameworks.mindspore.known_errors import advice_for
from isograd.frameworks.mindspore.network import MindSporeNetwork
from isograd.frameworks.mindspore.neutral import drawn, neutral_chance
from isograd.frameworks.mindspore.observe import CallRecorder, is_tensor
from isograd.frameworks.mindspore.one_call import (
    CallRun,
    Leaves,
    begin,
    leaves_of,
    watching,
)
from isograd.frameworks.mindspore.rebuild import rebuilt
from isograd.frameworks.mindspore.settings import CellAtHand, fix_for
from isograd.frameworks.mindspore.source_edit import (
    rebuilding_edit,
    rebuilding_text,
    replacement_in_words,
    replacing_text,
)
from isograd.frameworks.mindspore.trace import FunctionTrace
from isograd.frameworks.user_code import user_code
from isograd.tensors import TensorKey, TensorValue


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
            place = users_line()
            where = f"{Path(place[0]).name}:{place[1]}" if place else None
            sites.append(DropoutSite(recorder.current, 0, probability, 0.0, where=where))

        masks = MaskDraws(lambda: recorder.current_call)
        # Each pass starts from the same state: a counter in forward would be one ahead else.
        if record:
            with self._restoring(mode), recorder.watching(self._cells), neutral_chance(note, masks):
                results = self._forward_only(inputs, targets)
            self._calls, self._mode, self._dropouts = recorder.calls, mode, sites
            self._drawn, self._masks = drawn(), tuple(masks.found)
        if backward and self._spec is not None and self._spec.loss:
            with self._restoring(mode), neutral_chance():
                results |= self._forward_backward(inputs, targets)
        elif not record:
            with self._restoring(mode), neutral_chance():
                results = self._forward_only(inputs, targets)
        return results

    def _forward_only(self, inputs: dict[str, TensorValue], targets: list[TensorValue]) -> Tensors:
        arguments = Arguments(inputs)
        positional, keywords = arguments.put(map(from_value, arguments.tensors.values()))
        with user_code("the forward pass of the MindSpore network", advice_for):
            output = self._model(*positional, **keywords)
        tensors, _ = tree.flatten(output, is_tensor)
        results: Tensors = {TensorKey.output(i): to_value(t) for i, t in enumerate(tensors)}
        if self._spec is not None and self._spec.loss:
            results["loss"] = to_value(self._loss_of(output, targets))
        return results

    def _forward_backward(
        self, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> Tensors:
        arguments = Arguments(inputs)
        tensors = {k: from_value(v) for k, v in arguments.tensors.items()}
        floating = [k for k, t in tensors.items() if t.dtype in FLOATS]
        names = [n for n, p in self._parameters.items() if getattr(p, "requires_grad", False)]
        names = _distinct(names, self._parameters)
        outputs: list[Any] = []

        def run(*leaves: Any) -> Any:
            now = {**tensors, **dict(zip(floating, leaves, strict=True))}
            positional, keywords = arguments.put(now.values())
            output = self._model(*positional, **keywords)
            outputs[:] = tree.flatten(output, is_tensor)[0]
            return self._loss_of(output, targets)

        with user_code("the backward pass of the MindSpore network", advice_for):
            loss, found, weights = differentiate(
                run, [tensors[k] for k in floating], [self._parameters[n] for n in names]
            )
            results: Tensors = {TensorKey.output(i): to_value(t) for i, t in enumerate(outputs)}
            results["loss"] = to_value(loss)
            for key, gradient in zip(floating, found, strict=True):
                results[TensorKey.input(key).gradient] = to_value(gradient)
            for name, gradient in zip(names, weights, strict=True):
                results[TensorKey.parameter(name).gradient] = to_value(gradient)
        return results

    def calls(self) -> tuple[CallInfo, ...]:
        return tuple(call.info() for call in self._calls)

    def recorded(self, call: int) -> Tensors:
        found = self._calls[call]
        result: Tensors = {TensorKey.input(i): to_value(t) for i, t in enumerate(found.inputs)}
        return result | {TensorKey.output(i): to_value(t) for i, t in enumerate(found.outputs)}

    def replay(
        self,
        request: ReplayRequest,
        arithmetic: Arithmetic = NATIVE,
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        replacements = Replacements(fixes)
        trace = None
        if replacements.need_events:
            trace = self._tracing(request, replacements, keep_values=False)
        return self._replay(request, fixes, replacements, trace)

    def trace(
        self, request: ReplayRequest, fixes: tuple[PortFix, ...] = ()
    ) -> tuple[FunctionCall, ...]:
        replacements = Replacements(fixes)
        trace = self._tracing(request, replacements, keep_values=True)
        self._replay(dataclasses.replace(request, backward=False), fixes, replacements, trace)
        self._lines, self._functions = trace.lines, [e.function for e in trace.events]
        self._pinned_lines = [self._calls[pin].place for pin in request.pins]
        return tuple(trace.events)

    def _tracing(
        self, request: ReplayRequest, replacements: Replacements, keep_values: bool
    ) -> FunctionTrace:
        root = self._cells[self._calls[request.call].module]
        around = {
            id(self._cells[name])
            for pin in request.pins
            for name in _prefixes(self._calls[pin].module)
        }
        return FunctionTrace(root, around, replacements.event, keep_values)

    def _replay(
        self,
        request: ReplayRequest,
        fixes: tuple[PortFix, ...],
        replacements: Replacements,
        trace: FunctionTrace | None,
    ) -> Tensors:
        call = self._calls[request.call]
        inputs = leaves_of(request.inputs, call.inputs)
        given = [
            leaves_of(request.pin_outputs[number], self._calls[index].outputs)
            for number, index in enumerate(request.pins)
        ]
        shape = Leaves(inputs, given)
        with (
            rebuilt(self._cells, self._built, fixes),
            self._restoring(
                self._mode, None if fixes else self._cells[call.module], self._chance_seed
            ),
            neutral_chance(live=self._live),
            user_code(f"replaying {call.module or 'the network'} in MindSpore", advice_for),
        ):
            run = CallRun(
                self._cells,
                self._parameters,
                self._look_up_buffers,
                self._calls,
                request,
                replacements,
                trace,
            )
            if not request.backward:
                run(shape, shape.flat)
                return run.results()
            names = [n for n in request.parameters if n in self._parameters]
            _, found, weights = differentiate(
                lambda *leaves: run(shape, leaves),
                shape.flat,
                [self._parameters[n] for n in names],
            )
            results = run.results()
            for key, gradient in zip(shape.keys, found, strict=True):
                results[key] = to_value(gradient)
            for name, gradient in zip(names, weights, strict=True):
                results[TensorKey.parameter(name).gradient] = to_value(gradient)
        return results

    def mask_draws(self) -> tuple[MaskDraw, ...]:
        return self._masks

    def replay_with_chance(
        self, request: ReplayRequest, kinds: frozenset[str], seed: int
    ) -> Tensors:
        self._chance_seed, self._live = seed, kinds
        try:
            return self._replay(request, (), Replacements(()), None)
        finally:
            self._chance_seed, self._live = 0, frozenset()

    def fix_for(self, module: str, function: str, argument: str, value: Any) -> PortFix | None:
        """How a setting of a torch function is made on the library cell of this name.

        None where the cell has no such argument, or is built so already.
        """
        cell = self._cells.get(module)
        if cell is None or not is_library(cell):
            return None
        at_hand = CellAtHand(self._built.of(cell), self._mode == "train")
        return fix_for(module, at_hand, function, argument, value)

    def edit_text(self, fix: PortFix) -> tuple[str, str | None]:
        """The edit of the user's source that a fix makes, in words, and ``file:line``.

        Events are those of the last `trace` or `trace_loss`.
        """
        if fix.kind == "rebuild":
            cell = self._cells.get(fix.module)
            if cell is None:
                return "", None
            return rebuilding_text(self._built.of(cell), fix.arguments)
        word, _, number = fix.target.partition(".")
        if word == "event" and number.isdigit() and int(number) < len(self._lines):
            return replacing_text(self._lines[int(number)])
        called = int(number.partition(".")[0]) if word in ("pin", "input_of") else -1
        if 0 <= called < len(self._pinned_lines) and self._pinned_lines[called] is not None:
            return replacing_text(self._pinned_lines[called])
        return replacement_in_words(fix), None

    def edits(self, fixes: tuple[PortFix, ...]) -> tuple[SourceEdit, ...]:
        """The edits of the user's source that fixes mean; empty unless every fix has one.

        Events are those of the last `trace` or `trace_loss`.
        """
        found: list[SourceEdit] = []
        for fix in fixes:
            own: tuple[SourceEdit, ...] = ()
            cell = self._cells.get(fix.module)
            word, _, number = fix.target.partition(".")
            if fix.kind == "rebuild" and cell is not None:
                own = rebuilding_edit(self._built.of(cell), fix.arguments)
            elif word == "event" and number.isdigit() and int(number) < len(self._lines):
                event = int(number)
                own = replacing_edits(fix, self._lines[event], self._functions[event])
            if not own:
                return ()
            found += own
        return together(found)

    def forward_shifted(
        self,
        mode: str,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        backward: bool,
        shift: Shift,
        arithmetic: Arithmetic = NATIVE,
    ) -> Tensors:
        """Raises NotImplementedError: passes are shifted in the reference, which torch runs."""
        raise NotImplementedError("shifts are applied on the reference's side, in torch")

    def loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        arithmetic: Arithmetic = NATIVE,
        fixes: tuple[PortFix, ...] = (),
    ) -> Tensors:
        replacements = Replacements(fixes)
        trace = None
        if replacements.need_events:
            trace = FunctionTrace(change=replacements.event, keep_values=False)
        root = self._calls[0]
        shape = Leaves(leaves_of(tuple(outputs), root.outputs), [])

        def run(*leaves: Any) -> Any:
            return self._loss_once(shape.put(leaves)[0], targets, replacements, trace)

        with rebuilt(self._cells, self._built, fixes):
            loss, found, _ = differentiate(run, shape.flat, [])
        results = {"loss": to_value(loss)}
        for key, gradient in zip(shape.keys, found, strict=True):
            results[key.replace("input", "output")] = to_value(gradient)
        return results

    def trace_loss(
        self,
        outputs: list[TensorValue | None],
        targets: list[TensorValue],
        fixes: tuple[PortFix, ...] = (),
    ) -> tuple[FunctionCall, ...]:
        """The functions that the loss runs, with their results."""
        replacements = Replacements(fixes)
        trace = FunctionTrace(change=replacements.event)
        own = leaves_of(tuple(outputs), self._calls[0].outputs)
        with rebuilt(self._cells, self._built, fixes):
            self._loss_once(own, targets, replacements, trace)
        self._lines, self._functions = trace.lines, [e.function for e in trace.events]
        self._pinned_lines = []
        return tuple(trace.events)

    def _loss_once(
        self,
        own: list[Any],
        targets: list[TensorValue],
        replacements: Replacements,
        trace: FunctionTrace | None,
    ) -> Any:
        events = begin(trace, replacements)
        given = with_tensors(list(targets), from_value)
        replacements.start(Scope(own, (), given, self._parameters, events))
        output = tree.unflatten(self._calls[0].result, own)
        with watching(trace, self._cells):
            loss = self._loss_of(output, targets)
            for target in ("loss", "output.0"):
                loss = replacements.at(target, loss)
        replacements.check()
        return loss


def _prefixes(module: str) -> list[str]:
    """The names of the cells around a cell, the root's among them."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(len(parts))]


def _distinct(names: list[str], parameters: dict[str, Any]) -> list[str]:
    seen: set[int] = set()
    kept = []
    for name in names:
        if id(parameters[name]) not in seen:
            seen.add(id(parameters[name]))
            kept.append(name)
    return kept
