"""A copy of a network whose own functions call the copy's modules."""

from __future__ import annotations

import copy
import types
from typing import Any

from torch import nn


def copied(model: nn.Module) -> nn.Module:
    """A deep copy.

    `self.mlp = lambda x: m.c_proj(m.c_fc(x))` (minGPT) would call the reference's modules from the
    copy, because Python copies no functions; such functions are made anew, and hooks so, too.
    """
    memo: dict[int, Any] = {}
    made: nn.Module = copy.deepcopy(model, memo)
    for module in made.modules():
        for name, value in list(module.__dict__.items()):
            if not name.startswith("_"):
                module.__dict__[name] = _bound_to_copy(value, memo)
            elif name.endswith("_hooks") and isinstance(value, dict):
                for number, hook in value.items():
                    value[number] = _bound_to_copy(hook, memo)
    return made


def _bound_to_copy(value: Any, memo: dict[int, Any]) -> Any:
    if isinstance(value, types.FunctionType):
        return _function(value, memo)
    if type(value) not in (list, tuple, dict):
        return value
    parts = list(value.values() if isinstance(value, dict) else value)
    made = [_bound_to_copy(part, memo) for part in parts]
    if all(one is other for one, other in zip(made, parts, strict=True)):
        return value
    return dict(zip(value, made, strict=True)) if isinstance(value, dict) else type(value)(made)


def _function(function: types.FunctionType, memo: dict[int, Any]) -> types.FunctionType:
    """The function with the copies of the modules that it holds."""
    cells = function.__closure__ or ()
    held = [_held(cell) for cell in cells]
    defaults = function.__defaults__ or ()
    if not any(isinstance(part, nn.Module) and id(part) in memo for part in (*held, *defaults)):
        return function
    closure = tuple(
        types.CellType(memo[id(part)]) if isinstance(part, nn.Module) and id(part) in memo else cell
        for part, cell in zip(held, cells, strict=True)
    )
    made = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        tuple(memo.get(id(p), p) if isinstance(p, nn.Module) else p for p in defaults) or None,
        closure or None,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    return made


def _held(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None
