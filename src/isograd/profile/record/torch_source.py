"""One step of torch with the line of each operator: a dispatch mode that only looks."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from isograd.profile.model import Phase, SourceOperator
from isograd.profile.record.places import place_of, users_frame

_Key = tuple[str, str, str, str, str, Phase, str]


class SourceMode:
    """Counts operators by name, shapes, dtypes, line, module and phase between start and stop."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._undo = contextlib.ExitStack()
        self._count: Counter[_Key] = Counter()
        self._stack: list[str] = []
        self._phase: Callable[[], Phase | None] = lambda: None

    def start(self, phase: Callable[[], Phase | None]) -> None:
        """Look at every operator of this thread and of the backward pass."""
        self._phase = phase
        for name, module in self._model.named_modules():
            before = module.register_forward_pre_hook(self._enter(name))
            after = module.register_forward_hook(self._leave, always_call=True)
            self._undo.callback(before.remove)
            self._undo.callback(after.remove)
        mode = _make_mode(self._see)
        mode.__enter__()
        self._undo.callback(mode.__exit__, None, None, None)

    def stop(self) -> None:
        """Look no more; a second call does nothing."""
        self._undo.close()

    def operators(self) -> tuple[SourceOperator, ...]:
        """What was seen, most frequent first."""
        return tuple(
            SourceOperator(name, shapes, dtypes, where, module, phase, count, results)
            for (name, shapes, dtypes, where, module, phase, results), count in (
                self._count.most_common()
            )
        )

    def _enter(self, name: str) -> Callable[[Any, Any], None]:
        def hook(module: Any, arguments: Any) -> None:
            self._stack.append(name)

        return hook

    def _leave(self, module: Any, arguments: Any, output: Any) -> None:
        if self._stack:
            self._stack.pop()

    def _see(self, function: Any, arguments: Any, result: Any) -> None:
        frame = users_frame(sys._getframe(2))
        where = place_of(frame) if frame is not None else ""
        tensors = _tensors(arguments)
        shapes = ", ".join(filter(None, ("×".join(map(str, t.shape)) for t in tensors)))
        # A Python number in an expression is a tensor without axes: it says nothing.
        dtypes = ", ".join(dict.fromkeys(_dtype(t) for t in tensors if t.dim()))
        results = ", ".join(dict.fromkeys(_dtype(t) for t in _tensors((result,))))
        module = self._stack[-1] if self._stack else ""
        name = function._schema.name
        phase = self._phase() or Phase.OTHER
        self._count[(name, shapes, dtypes, where, module, phase, results)] += 1


def _make_mode(see: Callable[[Any, Any, Any], None]) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Looking(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no type there
        """Runs each operator unchanged and shows it."""

        def __torch_dispatch__(
            self, function: Any, types: Any, arguments: Any = (), options: Any = None
        ) -> Any:
            result = function(*arguments, **(options or {}))
            see(function, arguments, result)
            return result

    return Looking()  # type: ignore[no-untyped-call]


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _tensors(values: Any) -> list[Any]:
    import torch

    found: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [part for part in value if isinstance(part, torch.Tensor)]
    return found
