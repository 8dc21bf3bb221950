"""Which objects of a MindSpore program are optimizers: by what they hold, whatever their class.

MindSpore's own derive from two bases.  Converted programs have others, and so have those who write
their rules themselves: a Cell with a ParameterTuple `parameters` that is called with gradients, or
groups of parameters `param_groups` and a method `step` as torch has them.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from types import FrameType
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore training

#: So many frames are looked at from where a gradient is taken.
_MOST_FRAMES = 40


@functools.cache
def optimizer_classes() -> tuple[Any, ...]:
    """Bases of MindSpore's optimizers: mindspore.nn's, and those of mint and experimental."""
    experimental = importlib.import_module("mindspore.experimental.optim.optimizer")
    return mindspore.nn.Optimizer, experimental.Optimizer


def is_optimizer(value: Any) -> bool:
    """Whether a value holds parameters that it changes by their gradients."""
    if isinstance(value, optimizer_classes()):
        return True
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict) or isinstance(value, type):
        return False
    if isinstance(value, mindspore.nn.Cell):
        if isinstance(held.get("parameters"), mindspore.ParameterTuple):
            return True
    elif not callable(getattr(type(value), "step", None)):
        return False
    return _are_groups(held.get("param_groups"))


def _are_groups(groups: Any) -> bool:
    return (
        isinstance(groups, list)
        and bool(groups)
        and all(isinstance(g, dict) and isinstance(g.get("params"), list) for g in groups)
        and any(isinstance(p, mindspore.Parameter) for g in groups for p in g["params"])
    )


def parameters_of(optimizer: Any) -> list[Any]:
    """The parameters that an optimizer changes, in the order of their gradients."""
    held = getattr(optimizer, "parameters", None)
    if held is not None and not callable(held):
        return list(held)
    return [part for group in optimizer.param_groups for part in group["params"]]


def state_of(optimizer: Any) -> list[Any]:
    """What an optimizer keeps beside the parameters that it changes: Parameters and tensors."""
    own = {id(part) for part in parameters_of(optimizer)}
    if isinstance(optimizer, mindspore.nn.Cell):
        held = [part for part in optimizer.get_parameters() if part is not None]
    else:
        states = getattr(optimizer, "state", None)
        rows = states.values() if isinstance(states, dict) else ()
        held = [value for row in rows if isinstance(row, dict) for value in row.values()]
    return [part for part in held if isinstance(part, mindspore.Tensor) and id(part) not in own]


def optimizers_in_sight(frame: FrameType | None) -> Iterator[Any]:
    """Optimizers that running functions can name: locals, attributes of these, and globals.

    frame: the innermost one; those around it are looked at, too.
    """
    seen: set[int] = set()
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        names = frame.f_code.co_names
        found = [*frame.f_locals.values(), *map(frame.f_globals.get, names)]
        inner = [part for value in found for part in _attributes(value)]
        for value in (*found, *inner):
            if id(value) not in seen and is_optimizer(value):
                seen.add(id(value))
                yield value
        frame = frame.f_back


def _attributes(value: Any) -> list[Any]:
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict) or isinstance(value, (type, type(mindspore))):
        return []
    return list(held.values())
