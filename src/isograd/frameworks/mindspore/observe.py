"""Watching and steering the calls of a MindSpore network in PyNative mode.

A cell's `construct` is replaced on the instance for the time of a block.  MindSpore's own hooks
are not used: they do not see keyword arguments, and they are silent inside `jit`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
from mindspore import nn, ops

from isograd import tree
from isograd.frameworks.base import CallInfo, DropoutSite


def is_tensor(value: Any) -> bool:
    return isinstance(value, ms.Tensor) and not isinstance(value, ms.Parameter)


@dataclass
class Call:
    """A recorded call with its tensors."""

    module: str
    occurrence: int
    parent: int | None
    arguments: Any = None
    inputs: list[Any] = field(default_factory=list)
    result: Any = None
    outputs: list[Any] = field(default_factory=list)

    def info(self) -> CallInfo:
        return CallInfo(
            self.module,
            self.occurrence,
            self.parent,
            tuple(tuple(t.shape) for t in self.inputs),
            tuple(tuple(t.shape) for t in self.outputs),
        )


@contextlib.contextmanager
def replaced_constructs(
    cells: dict[str, nn.Cell], make: Callable[[str, nn.Cell], Callable[..., Any]]
) -> Iterator[None]:
    """Give every cell another `construct` until the end of the block."""
    patched: list[tuple[nn.Cell, bool, Any]] = []
    try:
        for name, cell in cells.items():
            if not hasattr(cell, "construct"):
                continue
            own = "construct" in cell.__dict__
            patched.append((cell, own, cell.__dict__.get("construct")))
            cell.__dict__["construct"] = make(name, cell)
        yield
    finally:
        for cell, own, before in patched:
            if own:
                cell.__dict__["construct"] = before
            else:
                cell.__dict__.pop("construct", None)


class CallRecorder:
    """Records every cell call of a forward pass."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._open: list[int] = []
        self._counts: dict[str, int] = {}

    def watching(self, cells: dict[str, nn.Cell]) -> contextlib.AbstractContextManager[None]:
        """Record until the end of the block."""
        return replaced_constructs(cells, self._recording)

    def _recording(self, name: str, cell: nn.Cell) -> Callable[..., Any]:
        original = cell.construct

        def construct(*args: Any, **kwargs: Any) -> Any:
            occurrence = self._counts.get(name, 0)
            self._counts[name] = occurrence + 1
            call = Call(name, occurrence, self._open[-1] if self._open else None)
            tensors, call.arguments = tree.flatten((tuple(args), dict(kwargs)), is_tensor)
            call.inputs = [t.copy() for t in tensors]
            self._open.append(len(self.calls))
            self.calls.append(call)
            result = original(*args, **kwargs)
            self._open.pop()
            tensors, call.result = tree.flatten(result, is_tensor)
            call.outputs = [t.copy() for t in tensors]
            return result

        return construct


@dataclass
class Pin:
    """A call inside a replay whose result is given; `seen` are the inputs that reached it."""

    module: str
    occurrence: int
    result: Any
    outputs: list[Any]
    seen: list[Any] | None = None


def pinned(
    cells: dict[str, nn.Cell], pins: list[Pin]
) -> contextlib.AbstractContextManager[None]:
    """Give the results of these calls instead of computing them, and catch their inputs."""
    by_cell: dict[str, dict[int, Pin]] = {}
    for pin in pins:
        by_cell.setdefault(pin.module, {})[pin.occurrence] = pin

    def given(name: str, cell: nn.Cell) -> Callable[..., Any]:
        original = cell.construct
        wanted = by_cell[name]
        count = 0

        def construct(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            pin = wanted.get(count)
            count += 1
            if pin is None:
                return original(*args, **kwargs)
            pin.seen, _ = tree.flatten((args, kwargs), is_tensor)
            return tree.unflatten(pin.result, list(pin.outputs))

        return construct

    return replaced_constructs({name: cells[name] for name in by_cell}, given)


class _DropoutSwitch:
    """Whether dropout passes its input; the patches below consult it."""

    neutral = False


_DROPOUT_FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
_DROPOUT_CELLS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")


def dropout_cells() -> tuple[type, ...]:
    """The dropout cells of nn and mint."""
    found = [getattr(place, n, None) for place in (nn, ms.mint.nn) for n in _DROPOUT_CELLS]
    return tuple(c for c in found if isinstance(c, type))


def install_dropout_switch() -> None:
    """Wrap every dropout once, before the user's code is imported."""
    if getattr(ops, "_isograd_dropout", False):
        return
    ops._isograd_dropout = True
    for place in (ops, ops.function, ops.function.nn_func, ms.mint.nn.functional):
        for name in _DROPOUT_FUNCTIONS:
            original = getattr(place, name, None)
            if callable(original):
                setattr(place, name, _switched_function(original))
    for cell in set(dropout_cells()):
        if "construct" in cell.__dict__:
            cell.construct = _switched_construct(cell.construct)  # type: ignore[attr-defined]
    ops.Dropout.__call__ = _switched_primitive(ops.Dropout.__call__)


def _switched_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def dropout(*args: Any, **kwargs: Any) -> Any:
        if _DropoutSwitch.neutral:
            return args[0] if args else kwargs.get("input", kwargs.get("x"))
        return original(*args, **kwargs)

    return dropout


def _switched_construct(original: Callable[..., Any]) -> Callable[..., Any]:
    def construct(self: Any, x: Any, *args: Any) -> Any:
        return x if _DropoutSwitch.neutral else original(self, x, *args)

    return construct


def _switched_primitive(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, x: Any, *args: Any) -> Any:
        if _DropoutSwitch.neutral:
            return x, ops.ones_like(x)
        return original(self, x, *args)

    return call


@contextlib.contextmanager
def neutral_dropout() -> Iterator[None]:
    """No dropout anywhere inside."""
    before = _DropoutSwitch.neutral
    _DropoutSwitch.neutral = True
    try:
        yield
    finally:
        _DropoutSwitch.neutral = before


def measure_dropout(name: str, cell: nn.Cell, occurrence: int) -> DropoutSite:
    """Run a dropout cell on ones: which share becomes zero, and what is the rest scaled by."""
    out = cell(ops.ones((64, 64, 4, 4), ms.float32)).asnumpy()
    kept = out[out != 0]
    share = 1.0 - kept.size / out.size
    return DropoutSite(name, occurrence, share, float(kept.mean()) if kept.size else 0.0)
