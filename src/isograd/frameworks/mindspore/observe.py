"""Watching and steering the calls of a MindSpore network in PyNative mode.

A cell's `construct` is replaced on the instance for the time of a block.  MindSpore's own hooks
are not used: they do not see keyword arguments, and they are silent inside `jit`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mindspore as ms
from mindspore import nn

from isograd import tree
from isograd.frameworks.common import RecordedCall, users_line
from isograd.tensors import TensorKey


def is_tensor(value: Any) -> bool:
    return isinstance(value, ms.Tensor) and not isinstance(value, ms.Parameter)


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
        self.calls: list[RecordedCall] = []
        self._open: list[int] = []
        self._counts: dict[str, int] = {}

    @property
    def current_call(self) -> int | None:
        """The index of the call whose code is running."""
        return self._open[-1] if self._open else None

    @property
    def current(self) -> str:
        """The cell whose code is running."""
        return self.calls[self._open[-1]].module if self._open else ""

    def watching(self, cells: dict[str, nn.Cell]) -> contextlib.AbstractContextManager[None]:
        """Record until the end of the block."""
        return replaced_constructs(cells, self._recording)

    def _recording(self, name: str, cell: nn.Cell) -> Callable[..., Any]:
        original = cell.construct

        def construct(*args: Any, **kwargs: Any) -> Any:
            occurrence = self._counts.get(name, 0)
            self._counts[name] = occurrence + 1
            call = RecordedCall(name, occurrence, self._open[-1] if self._open else None)
            tensors, call.arguments = tree.flatten((tuple(args), dict(kwargs)), is_tensor)
            call.inputs = [t.copy() for t in tensors]
            call.place = users_line()
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


def _unchanged(target: str, tensor: Any) -> Any:
    return tensor


def pinned(
    cells: dict[str, nn.Cell], pins: list[Pin], change: Callable[[str, Any], Any] = _unchanged
) -> contextlib.AbstractContextManager[None]:
    """Give the results of these calls instead of computing them, and catch their inputs.

    change: what stands at ``input_of.PIN.SLOT`` or ``pin.PIN.SLOT`` instead of this tensor.
    """
    by_cell: dict[str, dict[int, tuple[int, Pin]]] = {}
    for number, pin in enumerate(pins):
        by_cell.setdefault(pin.module, {})[pin.occurrence] = number, pin

    def given(name: str, cell: nn.Cell) -> Callable[..., Any]:
        original = cell.construct
        wanted = by_cell[name]
        count = 0

        def construct(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            found = wanted.get(count)
            count += 1
            if found is None:
                return original(*args, **kwargs)
            number, pin = found
            seen, _ = tree.flatten((args, kwargs), is_tensor)
            pin.seen = [change(TensorKey.input_of_pin(number, i), t) for i, t in enumerate(seen)]
            outputs = [
                change(TensorKey.output_of_pin(number, i), t) for i, t in enumerate(pin.outputs)
            ]
            return tree.unflatten(pin.result, outputs)

        return construct

    return replaced_constructs({name: cells[name] for name in by_cell}, given)
