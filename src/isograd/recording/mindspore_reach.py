"""What the functions of a MindSpore program can reach: cells, optimizers, compiled functions.

A function that `jit` compiles holds its network and its optimizer in its closure, in its module or
in the object whose method it is; nothing of them is called by Python where it runs.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore training

from isograd.recording.mindspore_optimizers import is_optimizer


def is_cell(value: Any) -> bool:
    """Whether a value is a Cell."""
    return isinstance(value, mindspore.nn.Cell)


def jit_executor_class() -> Any:
    """The class of one compiled function."""
    return importlib.import_module("mindspore.graph.api")._JitExecutor


def captured(function: Any, wanted: Callable[[Any], bool], depth: int = 3) -> Iterator[Any]:
    """Objects of a kind that a function can reach: its closure, its globals, its owner."""
    seen: set[int] = set()
    front: list[tuple[Any, int]] = [(function, depth)]
    while front:
        value, left = front.pop()
        if id(value) in seen or left < 0:
            continue
        seen.add(id(value))
        if wanted(value):
            yield value
        if isinstance(value, mindspore.nn.Cell):
            front += [(cell, left - 1) for cell in value._cells.values() if cell is not None]
        front += [(inner, left - 1) for inner in _reach(value)]


def _reach(value: Any) -> Iterator[Any]:
    owner = getattr(value, "__self__", None)
    if isinstance(owner, mindspore.nn.Cell):
        yield owner
    wrapped = getattr(value, "__wrapped__", None)
    if callable(wrapped):
        yield wrapped
    code = getattr(value, "__code__", None)
    if code is None:
        return
    for cell in value.__closure__ or ():
        # A closure's cell may be empty still.
        with contextlib.suppress(ValueError):
            yield cell.cell_contents
    module = value.__globals__
    yield from (module[name] for name in code.co_names if name in module)


def is_trained(cell: Any) -> bool:
    """Whether a call of a cell now is part of a training.

    A cell without dropout and batch norm needs no `set_train`, so a recorded gradient says it, too.
    """
    executor = importlib.import_module("mindspore.graph.api")._pynative_executor
    return bool(cell.training or executor.grad_flag())


def optimizer_of(compiled: Any, arguments: tuple[Any, ...]) -> Any:
    """The optimizer that a compiled function, or the cell that it is called with, can step."""
    starts = (*arguments[:1], compiled) if is_cell(next(iter(arguments), None)) else (compiled,)
    return next((one for start in starts for one in captured(start, is_optimizer)), None)


def networks_of(compiled: Any) -> list[Any]:
    """The cells with parameters to train that a compiled function reaches, the largest first."""
    found = {
        id(cell): cell
        for cell in captured(compiled, is_cell, depth=4)
        if cell.trainable_params() and not is_optimizer(cell)
    }
    return sorted(found.values(), key=lambda cell: -len(cell.trainable_params()))
