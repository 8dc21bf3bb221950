"""One step of a MindSpore training in which MindSpore's profiler keeps every change of memory.

Every operator runs at once, so that what is allocated during a cell's call is the cell's. The
profiler writes no addresses, so that blocks are known by their sizes. Gradients are those of no
cell, because MindSpore copies tensors for hooks that would separate them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isograd.profile.analyse.memory import Owner, peak_of, with_held
from isograd.profile.model import MemoryPeak, Phase
from isograd.profile.record.mindspore_modules import CellClock, Interval


class MemoryWatch:
    """Profiles the memory between start and stop."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._cells = CellClock(model)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._profiler: Any = None
        self._held: dict[str, int] = {}
        self._updates: list[Interval] = []
        self.peak: MemoryPeak | None = None

    def start(self, make_profiler: Callable[..., Any], optimizer: Any) -> None:
        """Time the calls of all cells. optimizer: whose state counts, or None."""
        weights = list(self._model.get_parameters())
        names = {id(weight) for weight in weights}
        state = [] if not hasattr(optimizer, "get_parameters") else optimizer.get_parameters()
        self._held = {
            "parameters": _bytes(weights),
            "optimizer state": _bytes([one for one in state if id(one) not in names]),
        }
        self._folder = tempfile.TemporaryDirectory()
        self._cells.start(has_backward=False)
        self._profiler = make_profiler(Path(self._folder.name) / "profiler", profile_memory=True)

    def updated(self, begin_ns: int, end_ns: int) -> None:
        """An update ran at that time."""
        if self._profiler is not None:
            passes = [end for _, _, _, end in self._cells.intervals]
            self._updates += [
                (None, Phase.BACKWARD, max(passes, default=begin_ns), begin_ns),
                (None, Phase.UPDATE, begin_ns, end_ns),
            ]

    def stop_hooks(self) -> None:
        """Time no calls of cells any more; a second call does nothing."""
        self._cells.stop()

    def stop(self, settle: Callable[[], None]) -> None:
        """Read what was seen; a second call does nothing."""
        self._cells.stop()
        if self._profiler is None or self._folder is None:
            return
        settle()
        profiler, self._profiler = self._profiler, None
        profiler.stop()
        with self._folder as folder:
            files = sorted(Path(folder).rglob("cpu_ms_memory_record_*.txt"))
            if files:
                self.peak = self._read(files[0])

    def _read(self, file: Path) -> MemoryPeak | None:
        from isograd.profile.read.memory_files import memory_record

        found = memory_record(file)
        if found.memory is None:
            return None
        memory = found.memory
        at = memory.time_ns + found.base_ns
        owners = owners_at(at, [*self._cells.intervals, *self._updates])
        peak = peak_of(memory, owners)
        return None if peak is None else with_held(peak, self._held, is_counted=True)


def owners_at(time_ns: Any, intervals: Sequence[Interval]) -> list[Owner]:
    """Who ran at each time: the interval around it that began last.

    time_ns: shape (events,), int64.
    """
    owners = [Owner()] * len(time_ns)
    for name, phase, begin, end in sorted(intervals, key=lambda one: one[2]):
        first, last = np.searchsorted(time_ns, [begin, end])
        owners[first:last] = [Owner(name, phase)] * int(last - first)
    return owners


def _bytes(weights: Sequence[Any]) -> int:
    return sum(int(weight.nbytes) for weight in weights)
