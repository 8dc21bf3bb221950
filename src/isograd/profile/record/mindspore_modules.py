"""Times of MindSpore's cells in forward and backward, children included.

Every operator runs at once while the clock is on (`pynative_synchronize`), because otherwise
Python would measure how long issuing takes. That costs overlap: the sum is more than a plain step.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from isograd.profile.model import ModuleTime


class CellClock:
    """Hooks on all cells between start and stop."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._undo = contextlib.ExitStack()
        self._kinds: dict[str, str] = {}
        self._passes = 0
        self._open: defaultdict[str, list[float]] = defaultdict(list)
        self._forward: defaultdict[str, list[float]] = defaultdict(list)
        self._begun: defaultdict[str, list[float]] = defaultdict(list)
        self._backward: defaultdict[str, list[float]] = defaultdict(list)

    def start(self) -> None:
        """Hook all cells and let operators run at once."""
        import mindspore

        before = mindspore.get_context("pynative_synchronize")
        mindspore.set_context(pynative_synchronize=True)
        self._undo.callback(mindspore.set_context, pynative_synchronize=before)
        for name, cell in self._model.cells_and_names():
            self._kinds[name] = type(cell).__name__
            handles = (
                cell.register_forward_pre_hook(self._enter(name)),
                cell.register_forward_hook(self._leave(name)),
                cell.register_backward_pre_hook(self._enter_backward(name)),
                cell.register_backward_hook(self._leave_backward(name)),
            )
            for handle in handles:
                self._undo.callback(handle.remove)

    def stop(self) -> None:
        """Remove the hooks; a second call does nothing."""
        self._undo.close()

    def times(self) -> tuple[ModuleTime, ...]:
        """Seconds per step of each cell that was called."""
        passes = max(self._passes, 1)
        found = []
        for name, forward in self._forward.items():
            calls = max(round(len(forward) / passes), 1)
            backward = self._backward.get(name, [])
            found.append(
                ModuleTime(
                    name,
                    self._kinds[name],
                    float(np.median(forward)) * calls,
                    float(np.median(backward)) * calls if backward else float("nan"),
                    calls,
                )
            )
        return tuple(found)

    def _enter(self, name: str) -> Callable[..., None]:
        def hook(cell: Any, inputs: Any) -> None:
            self._open[name].append(time.perf_counter())

        return hook

    def _leave(self, name: str) -> Callable[..., None]:
        def hook(cell: Any, inputs: Any, output: Any) -> None:
            self._passes += not name
            if self._open[name]:
                self._forward[name].append(time.perf_counter() - self._open[name].pop())

        return hook

    def _enter_backward(self, name: str) -> Callable[..., None]:
        def hook(cell: Any, gradients: Any) -> None:
            self._begun[name].append(time.perf_counter())

        return hook

    def _leave_backward(self, name: str) -> Callable[..., None]:
        def hook(cell: Any, gradients: Any, outputs: Any) -> None:
            if self._begun[name]:
                self._backward[name].append(time.perf_counter() - self._begun[name].pop())

        return hook
