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

from isograd.profile.model import ModuleTime, Phase

#: Module (None: no module's), phase, beginning and end in ns since 1970.
Interval = tuple[str | None, Phase, int, int]


class CellClock:
    """Hooks on all cells between start and stop."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._undo = contextlib.ExitStack()
        self._kinds: dict[str, str] = {}
        self._open: defaultdict[tuple[str, Phase], list[int]] = defaultdict(list)
        self.intervals: list[Interval] = []

    def start(self, *, has_backward: bool = True) -> None:
        """Hook all cells and let operators run at once.

        has_backward: time gradients, too, for which MindSpore copies tensors at each cell.
        """
        import mindspore

        before = mindspore.get_context("pynative_synchronize")
        mindspore.set_context(pynative_synchronize=True)
        self._undo.callback(mindspore.set_context, pynative_synchronize=before)
        for name, cell in self._model.cells_and_names():
            self._kinds[name] = type(cell).__name__
            handles = [
                cell.register_forward_pre_hook(self._enter(name, Phase.FORWARD)),
                cell.register_forward_hook(self._leave(name, Phase.FORWARD)),
            ]
            if has_backward:
                handles += [
                    cell.register_backward_pre_hook(self._enter(name, Phase.BACKWARD)),
                    cell.register_backward_hook(self._leave(name, Phase.BACKWARD)),
                ]
            for handle in handles:
                self._undo.callback(handle.remove)

    def stop(self) -> None:
        """Remove the hooks; a second call does nothing."""
        self._undo.close()

    def times(self) -> tuple[ModuleTime, ...]:
        """Seconds per step of each cell that was called."""
        seconds: defaultdict[tuple[str | None, Phase], list[float]] = defaultdict(list)
        for name, phase, begin, end in self.intervals:
            seconds[name, phase].append((end - begin) / 1e9)
        passes = max(len(seconds["", Phase.FORWARD]), 1)
        found = []
        for name, kind in self._kinds.items():
            if forward := seconds[name, Phase.FORWARD]:
                calls = max(round(len(forward) / passes), 1)
                backward = seconds[name, Phase.BACKWARD]
                found.append(
                    ModuleTime(
                        name,
                        kind,
                        float(np.median(forward)) * calls,
                        float(np.median(backward)) * calls if backward else float("nan"),
                        calls,
                    )
                )
        return tuple(found)

    def _enter(self, name: str, phase: Phase) -> Callable[..., None]:
        def hook(cell: Any, tensors: Any) -> None:
            self._open[name, phase].append(time.time_ns())

        return hook

    def _leave(self, name: str, phase: Phase) -> Callable[..., None]:
        def hook(cell: Any, tensors: Any, results: Any) -> None:
            if self._open[name, phase]:
                begin = self._open[name, phase].pop()
                self.intervals.append((name, phase, begin, time.time_ns()))

        return hook
