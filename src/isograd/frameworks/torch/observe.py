"""Watching and steering the calls of a torch network: recording, pinning, neutral dropout.

Everything here is a context manager that undoes itself, also when the network raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from isograd import tree
from isograd.frameworks.common import RecordedCall


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter)


@dataclass
class Call(RecordedCall):
    """A recorded call, with the gradients that its hooks have caught.

    in_place: whether a result is an input that the call has changed.  changes_input: whether it
    has changed an input that is no result, as a Sequential does that begins with ReLU(True).
    """

    in_place: bool = False
    changes_input: bool = False
    entry: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    input_gradients: dict[int, torch.Tensor] = field(default_factory=dict)
    output_gradients: dict[int, torch.Tensor] = field(default_factory=dict)
    finished: bool = False


class CallRecorder:
    """Records every module call of a forward pass and, through hooks, its gradients."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._open: list[int] = []
        self._counts: dict[str, int] = {}
        self._copies: dict[tuple[int, int, Any, Any], torch.Tensor] = {}
        self._keep: list[torch.Tensor] = []

    @property
    def current_call(self) -> int | None:
        """The index of the call whose code is running."""
        return self._open[-1] if self._open else None

    @property
    def current(self) -> str:
        """The module whose code is running."""
        return self.calls[self._open[-1]].module if self._open else ""

    @contextlib.contextmanager
    def watching(self, model: nn.Module) -> Iterator[None]:
        """Hook every module of the network until the end of the block."""
        handles = []
        try:
            for name, module in model.named_modules():
                before, after = self._hooks(name)
                handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
                handles.append(module.register_forward_hook(after, with_kwargs=True))
            yield
        finally:
            for handle in handles:
                handle.remove()
            self._copies.clear()
            self._keep.clear()

    def _hooks(self, name: str) -> tuple[Callable[..., None], Callable[..., None]]:
        def before(module: nn.Module, args: Any, kwargs: Any) -> None:
            occurrence = self._counts.get(name, 0)
            self._counts[name] = occurrence + 1
            call = Call(name, occurrence, self._open[-1] if self._open else None)
            tensors, call.arguments = tree.flatten((tuple(args), dict(kwargs)), is_tensor)
            call.inputs = [self._copy(t) for t in tensors]
            self._catch(tensors, call.input_gradients)
            self._open.append(len(self.calls))
            self.calls.append(call)
            call.entry = [(t, t._version) for t in tensors]

        def after(module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
            call = self.calls[self._open.pop()]
            tensors, call.result = tree.flatten(result, is_tensor)
            changed = [t for t, version in call.entry if t._version != version]
            call.in_place = any(t is o for t in changed for o in tensors)
            call.changes_input = any(all(t is not o for o in tensors) for t in changed)
            call.entry = []
            call.outputs = [self._copy(t) for t in tensors]
            self._catch(tensors, call.output_gradients)
            call.finished = True

        return before, after

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        key = (tensor.data_ptr(), tensor._version, tuple(tensor.shape), tensor.stride())
        known = self._copies.get(key)
        if known is not None and known.dtype is tensor.dtype:
            return known
        copy = tensor.detach().clone()
        self._copies[key] = copy
        self._keep.append(tensor)
        return copy

    @staticmethod
    def _catch(tensors: list[torch.Tensor], store: dict[int, torch.Tensor]) -> None:
        for position, tensor in enumerate(tensors):
            if tensor.requires_grad:

                def keep(gradient: torch.Tensor, position: int = position) -> None:
                    store[position] = gradient.detach().clone()

                tensor.register_hook(keep)  # type: ignore[no-untyped-call]  # torch's own


@dataclass
class Pin:
    """A call inside a replay whose result is given; `seen` are the inputs that reached it.

    in_place, changes_input: as of `Call`; an input that is changed is so in the replay as well.
    """

    module: str
    occurrence: int
    result: Any
    outputs: list[torch.Tensor]
    in_place: bool = False
    changes_input: bool = False
    seen: list[torch.Tensor] | None = None


@contextlib.contextmanager
def pinned(modules: dict[str, nn.Module], pins: list[Pin]) -> Iterator[None]:
    """Give the results of these calls instead of computing them, and catch their inputs."""
    by_module: dict[str, dict[int, Pin]] = {}
    for pin in pins:
        by_module.setdefault(pin.module, {})[pin.occurrence] = pin
    patched: list[nn.Module] = []
    try:
        for name, wanted in by_module.items():
            module = modules[name]
            module.__dict__["forward"] = _given_forward(module, wanted)
            patched.append(module)
        yield
    finally:
        for module in patched:
            module.__dict__.pop("forward", None)


def _given_forward(module: nn.Module, wanted: dict[int, Pin]) -> Callable[..., Any]:
    original = module.forward
    count = 0

    def forward(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        pin = wanted.get(count)
        count += 1
        if pin is None:
            return original(*args, **kwargs)
        tensors, skeleton = tree.flatten((args, kwargs), is_tensor)
        pin.seen = [t.clone() for t in tensors]
        if pin.changes_input:
            copies = [t.clone() for t in tensors]
            positional, keywords = tree.unflatten(skeleton, copies)
            original(*positional, **keywords)
            for tensor, copy in zip(tensors, copies, strict=True):
                if copy._version:
                    tensor.copy_(copy)
        outputs = [t.clone() for t in pin.outputs]
        if pin.in_place and tensors and outputs and tensors[0].shape == outputs[0].shape:
            tensors[0].copy_(outputs[0])
            outputs[0] = tensors[0]
        return tree.unflatten(pin.result, outputs)

    return forward


def _adding(shift: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda gradient: gradient + shift.to(gradient.dtype)


@contextlib.contextmanager
def shifted(
    module: nn.Module, occurrence: int, where: str, shifts: list[torch.Tensor | None]
) -> Iterator[None]:
    """Add a shift to the inputs or outputs of one call of a module, or to their gradients.

    where: "input", "output", "gradient.input" or "gradient.output"; of an input's gradient only
    what flows back through this call is shifted.
    """
    count = -1
    gradient = where.startswith("gradient.")

    def moved(value: Any) -> Any:
        tensors, skeleton = tree.flatten(value, is_tensor)
        for slot, shift in enumerate(shifts[: len(tensors)]):
            if shift is None or shift.shape != tensors[slot].shape:
                continue
            own = tensors[slot]
            if not gradient:
                tensors[slot] = own + shift.to(own.dtype)
            elif own.requires_grad:
                tensors[slot] = own.view_as(own)
                tensors[slot].register_hook(_adding(shift))
        return tree.unflatten(skeleton, tensors)

    def before(_: nn.Module, args: Any, kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return moved((args, kwargs)) if where.endswith("input") and count == occurrence else None

    def after(_: nn.Module, args: Any, kwargs: Any, result: Any) -> Any:
        return moved(result) if where.endswith("output") and count == occurrence else None

    handles = [
        module.register_forward_pre_hook(before, with_kwargs=True),
        module.register_forward_hook(after, with_kwargs=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class ParameterReads(TorchFunctionMode):
    """Notes whose parameters a module's own code reads, beside those that it holds itself.

    borrowed: reading module → names of parameters through which a gradient flows back.
    """

    def __init__(self, model: nn.Module, recorder: CallRecorder) -> None:
        super().__init__()
        self._names = {id(p): name for name, p in model.named_parameters() if p.requires_grad}
        self._recorder = recorder
        self.borrowed: dict[str, set[str]] = {}

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = [self._names[id(a)] for a in _flat((args, kwargs)) if id(a) in self._names]
        if given and any(is_tensor(r) and r.requires_grad for r in _flat(result)):
            reader = self._recorder.current
            names = {name for name in given if name.rpartition(".")[0] != reader}
            if names:
                self.borrowed.setdefault(reader, set()).update(names)
        return result


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _flat(part)
    else:
        yield value
