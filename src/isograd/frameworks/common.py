"""What the adapters do alike: split inputs, count occurrences, find where a module is built."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, GeneratorType
from typing import Any, Protocol

import numpy as np

from isograd import tree
from isograd.errors import UserCodeError
from isograd.frameworks.base import CallInfo, SideSpec
from isograd.frameworks.user_code import _is_users, load_callable, user_code
from isograd.tensors import TensorValue


class _Call(Protocol):
    module: str
    parent: int | None


@dataclass
class RecordedCall:
    """A recorded call with its tensors; skeletons put tensors back into the arguments' places."""

    module: str
    occurrence: int
    parent: int | None
    arguments: Any = None
    inputs: list[Any] = field(default_factory=list)
    result: Any = None
    outputs: list[Any] = field(default_factory=list)
    place: tuple[str, int] | None = None

    def info(self) -> CallInfo:
        """The call without its tensors."""
        return CallInfo(
            self.module,
            self.occurrence,
            self.parent,
            tuple(tuple(t.shape) for t in self.inputs),
            tuple(tuple(t.shape) for t in self.outputs),
            f"{Path(self.place[0]).name}:{self.place[1]}" if self.place else None,
        )


def load_callables(spec: SideSpec, side: str = "") -> Callable[..., Any]:
    """Import everything that a side of the case names; the one that builds the network."""
    table = f"[{side}] " if side else ""
    builder = load_callable(spec.model, spec.folder, f"{table}model")
    if spec.loss:
        load_callable(spec.loss, spec.folder, f"{table}loss")
    if spec.optimizer:
        load_callable(spec.optimizer, spec.folder, f"{table}optimizer")
    if spec.reset:
        load_callable(spec.reset, spec.folder, f"{table}reset")
    return builder


def reset_network(spec: SideSpec | None, model: Any, side: str) -> None:
    """Let the user's callable put back what the network keeps between calls, if there is one."""
    if spec is None or spec.reset is None:
        return
    function = load_callable(spec.reset, spec.folder, f"[{side}] reset")
    with user_code(f"the reset {spec.reset}"):
        function(model)


class Arguments:
    """A network's arguments: nested tensors and plain values, by position ("0", "1"…) or name.

    tensors: the values by name, for example "0", "mask", "batch.image".
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        found, self._skeleton = tree.flatten(dict(inputs), _is_value)
        names = tree.slot_names(self._skeleton)
        self.tensors: dict[str, TensorValue] = dict(zip(names, found, strict=True))

    def put(self, tensors: Iterable[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the keyword arguments with a framework's tensors in their places."""
        inputs = tree.unflatten(self._skeleton, list(tensors))
        positional = [value for key, value in inputs.items() if key.isdigit()]
        return positional, {key: value for key, value in inputs.items() if not key.isdigit()}


def with_tensors(value: Any, make: Callable[[TensorValue], Any]) -> Any:
    """A nested value with a framework's tensors where `TensorValue`s stand."""
    found, skeleton = tree.flatten(value, _is_value)
    return tree.unflatten(skeleton, [make(tensor) for tensor in found])


def _is_value(value: Any) -> bool:
    return isinstance(value, TensorValue)


def occurrences_within(calls: Sequence[_Call], call: int, pins: Sequence[int]) -> list[int]:
    """For each pinned call, the number of the call of its module that a replay of `call` will make.

    Calls inside a pinned call do not happen in a replay, so they do not count.
    """
    inside = {call}
    hidden: set[int] = set()
    pinned = set(pins)
    counts: dict[str, int] = {}
    found: dict[int, int] = {}
    for index in range(call + 1, len(calls)):
        parent = calls[index].parent
        if parent in hidden or (parent in pinned and parent in inside):
            hidden.add(index)
            continue
        if parent not in inside:
            continue
        inside.add(index)
        name = calls[index].module
        if index in pinned:
            found[index] = counts.get(name, 0)
        counts[name] = counts.get(name, 0) + 1
    return [found[pin] for pin in pins]


def building_line(built: Any) -> str | None:
    """``file:line`` of the user's code that is constructing this object right now."""
    found = building_place(built, 3)
    return f"{Path(found[0]).name}:{found[1]}" if found else None


def building_place(built: Any, depth: int = 2) -> tuple[str, int] | None:
    """Path and line of the user's code that is constructing this object right now."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        own = code.co_varnames[0] if code.co_argcount else None
        inside_itself = own is not None and frame.f_locals.get(own) is built
        if not inside_itself and _is_users(code.co_filename):
            return code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def users_line(depth: int = 2) -> tuple[str, int] | None:
    """Path and line of the innermost user's code that is running right now."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def users_instruction(depth: int = 2) -> str:
    """The instruction of the user's code that is running right now; "" outside of it."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if _is_users(code.co_filename):
            return f"{code.co_filename}:{frame.f_lineno}:{code.co_name}:{frame.f_lasti}"
        frame = frame.f_back
    return ""


def plain_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that can cross the pipe: numbers, words, None, and tuples of them."""
    found = {name: _plain(value) for name, value in arguments.items()}
    return {name: value for name, value in found.items() if value is not Ellipsis}


def _plain(value: Any) -> Any:
    """The value itself if it can cross the pipe; Ellipsis where not."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        parts = tuple(_plain(part) for part in value)
        return Ellipsis if Ellipsis in parts else parts
    return Ellipsis


def split_optimizer(made: Any) -> tuple[Any, list[Any]]:
    """An optimizer callable returns an optimizer, or an optimizer and its schedulers."""
    if isinstance(made, (tuple, list)):
        if not made:
            raise UserCodeError("the optimizer callable returned nothing", "Return an optimizer.")
        return made[0], [part for part in made[1:] if hasattr(part, "step")]
    if made is None:
        raise UserCodeError("the optimizer callable returned None", "Return an optimizer.")
    return made, []


def yielded(output: Any) -> Any:
    """What a network returns; of one that yields its outputs, all of them."""
    return tuple(output) if isinstance(output, GeneratorType) else output


@contextlib.contextmanager
def python_chance_fixed() -> Iterator[None]:
    """Draws of `random` and of numpy's global generator start alike each time, and leave no trace.

    A network may choose by them in its forward pass (stochastic depth by `random.random()`).
    """
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 - the one networks draw from
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the generator that networks draw from
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002 - the same
