"""Watching and steering the calls of a fake network, by replacing `forward` on the instances."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isograd import tree
from isograd.frameworks.base import FunctionCall
from isograd.frameworks.common import RecordedCall
from isograd.frameworks.fake.network import Module, Random
from isograd.frameworks.fake.tape import Node, Parameter, Rule, Tensor, Tracing, identity
from isograd.tensors import tensor_value

Forward = Callable[..., Any]


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, Parameter)


@dataclass
class Call(RecordedCall):
    """A recorded call: its tensors are nodes, which never change."""

    in_place: bool = False


@contextlib.contextmanager
def replaced(modules: dict[str, Module], make: Callable[[str, Forward], Forward]) -> Iterator[None]:
    """Give these modules another `forward` until the end of the block."""
    changed: list[tuple[Module, Forward | None]] = []
    try:
        for name, module in modules.items():
            before = vars(module).get("forward")
            replacement = make(name, module.forward)
            vars(module)["forward"] = replacement
            changed.append((module, before))
        yield
    finally:
        for module, before in reversed(changed):
            if before is None:
                del vars(module)["forward"]
            else:
                vars(module)["forward"] = before


@contextlib.contextmanager
def recording(modules: dict[str, Module], calls: list[Call]) -> Iterator[None]:
    """Append every call until the end of the block."""
    opened: list[int] = []
    counts: dict[str, int] = {}

    def make(name: str, original: Forward) -> Forward:
        def forward(*args: Any, **kwargs: Any) -> Any:
            call = Call(name, counts.get(name, 0), opened[-1] if opened else None)
            counts[name] = call.occurrence + 1
            tensors, call.arguments = tree.flatten((args, kwargs), is_tensor)
            call.inputs = [tensor.node for tensor in tensors]
            opened.append(len(calls))
            calls.append(call)
            result = original(*args, **kwargs)
            opened.pop()
            outputs, call.result = tree.flatten(result, is_tensor)
            call.outputs = [tensor.node for tensor in outputs]
            call.in_place = any(
                tensor is output and tensor.node is not before
                for tensor, before in zip(tensors, call.inputs, strict=True)
                for output in outputs
            )
            return result

        return forward

    with replaced(modules, make):
        yield


@dataclass
class Pin:
    """A call inside a replay whose result is given; `seen` are the inputs that reached it."""

    call: Call
    occurrence: int
    outputs: list[Tensor]
    seen: list[Node] = field(default_factory=list)


@contextlib.contextmanager
def pinned(modules: dict[str, Module], pins: list[Pin]) -> Iterator[None]:
    """Give the results of these calls instead of computing them."""
    wanted = {(pin.call.module, pin.occurrence): pin for pin in pins}
    counts: dict[str, int] = {}

    def make(name: str, original: Forward) -> Forward:
        def forward(*args: Any, **kwargs: Any) -> Any:
            pin = wanted.get((name, counts.get(name, 0)))
            counts[name] = counts.get(name, 0) + 1
            if pin is None:
                return original(*args, **kwargs)
            tensors, _ = tree.flatten((args, kwargs), is_tensor)
            pin.seen = [tensor.node for tensor in tensors]
            outputs = [identity(tensor) for tensor in pin.outputs]
            if pin.call.in_place and tensors and outputs:
                tensors[0].node = outputs[0].node
                outputs[0] = tensors[0]
            return tree.unflatten(pin.call.result, outputs)

        return forward

    with replaced({pin.call.module: modules[pin.call.module] for pin in pins}, make):
        yield


def _adding(shift: Any) -> Rule:
    return lambda gradient: (gradient + shift.astype(gradient.dtype),)


@contextlib.contextmanager
def shifted(
    name: str, module: Module, occurrence: int, where: str, shifts: list[Any]
) -> Iterator[None]:
    """Add a shift to the inputs or outputs of one call of a module, or to their gradients."""
    count = -1

    def moved(value: Any) -> Any:
        tensors, skeleton = tree.flatten(value, is_tensor)
        for slot, shift in enumerate(shifts[: len(tensors)]):
            own = tensors[slot]
            if shift is None or shift.shape != own.shape:
                continue
            if where.startswith("gradient."):
                tensors[slot] = Tensor(own.values, Node(own.values, (own.node,), _adding(shift)))
            else:
                tensors[slot] = own + shift.astype(own.values.dtype)
        return tree.unflatten(skeleton, tensors)

    def make(_: str, original: Forward) -> Forward:
        def forward(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count != occurrence:
                return original(*args, **kwargs)
            if where.endswith("input"):
                args, kwargs = moved((args, kwargs))
                return original(*args, **kwargs)
            return moved(original(*args, **kwargs))

        return forward

    with replaced({name: module}, make):
        yield


@contextlib.contextmanager
def traced(modules: dict[str, Module], events: list[FunctionCall], *around: str) -> Iterator[None]:
    """Append every function that these modules call until the end of the block.

    around: what has been called already, the innermost last.
    """
    opened = list(around)
    makers: dict[Node, int] = {}

    def note(function: str, node: Node) -> None:
        if not opened:
            return
        if function == "identity":
            if node.parents[0] in makers:
                makers[node] = makers[node.parents[0]]
            return
        sources = tuple(sorted({makers[p] for p in node.parents if p in makers}))
        makers[node] = len(events)
        value = tensor_value(np.array(node.values))
        events.append(FunctionCall(opened[-1], function, sources, value))

    def make(path: str, original: Forward) -> Forward:
        def forward(*args: Any, **kwargs: Any) -> Any:
            opened.append(path)
            try:
                return original(*args, **kwargs)
            finally:
                opened.pop()

        return forward

    Tracing.on_result = note
    try:
        with replaced(modules, make):
            yield
    finally:
        Tracing.on_result = None


@contextlib.contextmanager
def restoring(model: Module, training: bool) -> Iterator[None]:
    """Set the mode, and give back modes, buffers and the random state afterwards."""
    modules = [module for _, module in model.named_modules()]
    modes = [vars(module).get("training") for module in modules]
    buffers = [(p, p.node) for _, p in model.named_parameters() if not p.trainable]
    generator, neutral = Random.generator, Random.neutral_dropout
    Random.generator = np.random.default_rng(0)
    model.train(training)
    try:
        yield
    finally:
        Random.generator, Random.neutral_dropout = generator, neutral
        for buffer, node in buffers:
            buffer.node = node
        for module, mode in zip(modules, modes, strict=True):
            if mode is None:
                del vars(module)["training"]
            else:
                module.training = mode
