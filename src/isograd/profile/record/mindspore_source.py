"""One step of eager MindSpore with the line of each operator, by `MsDispatchMode`."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from isograd.profile.model import Phase, SourceOperator
from isograd.profile.record.places import place_of, users_frame

_Key = tuple[str, str, str, str, str, Phase, str]


class CellSource:
    """Counts operators by name, shapes, dtypes, line, cell and phase between start and stop."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._undo = contextlib.ExitStack()
        self._count: Counter[_Key] = Counter()
        self._stack: list[str] = []
        self._phase: Callable[[], Phase | None] = lambda: None

    def start(self, phase: Callable[[], Phase | None]) -> None:
        """Look at every operator that Python issues; compiled code is not seen."""
        self._phase = phase
        for name, cell in self._model.cells_and_names():
            before = cell.register_forward_pre_hook(self._enter(name))
            after = cell.register_forward_hook(self._leave)
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
        def hook(cell: Any, inputs: Any) -> None:
            self._stack.append(name)

        return hook

    def _leave(self, cell: Any, inputs: Any, output: Any) -> None:
        if self._stack:
            self._stack.pop()

    def _see(self, name: str, arguments: Any, result: Any) -> None:
        frame = users_frame(sys._getframe(2))
        where = place_of(frame) if frame is not None else ""
        given = _tensors(arguments)
        shapes = ", ".join("×".join(map(str, t.shape)) for t in given if t.ndim)
        dtypes = ", ".join(dict.fromkeys(str(t.dtype).lower() for t in given if t.ndim))
        results = ", ".join(dict.fromkeys(str(t.dtype).lower() for t in _tensors((result,))))
        module = self._stack[-1] if self._stack else ""
        phase = self._phase() or Phase.OTHER
        self._count[(name, shapes, dtypes, where, module, phase, results)] += 1


def _make_mode(see: Callable[[str, Any, Any], None]) -> Any:
    import mindspore

    class Looking(mindspore.MsDispatchMode):  # type: ignore[misc]  # MindSpore has no types
        """Runs each operator unchanged and shows it."""

        def __ms_dispatch__(self, function: Any, arguments: Any, options: Any = None) -> Any:
            result = function(*arguments, **(options or {}))
            see(str(function.name), arguments, result)
            return result

    return Looking()


def _tensors(values: Any) -> list[Any]:
    import mindspore

    found: list[Any] = []
    for value in values:
        if isinstance(value, mindspore.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found
