"""One step of a torch training in which torch's profiler keeps every change of memory.

Marks around the calls of modules tell whose a block is; the gradient of a call shares its sequence
number.
"""

from __future__ import annotations

import contextlib
import tempfile
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from isograd.profile.analyse.memory import MODULE_MARK, peak_of_trace, with_held
from isograd.profile.model import MemoryPeak


class MemoryWatch:
    """Profiles the memory between start and stop."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._undo = contextlib.ExitStack()
        self._profiler: Any = None
        self._held: dict[str, int] = {}
        self._gradients: list[tuple[Any, Any]] = []
        self.peak: MemoryPeak | None = None

    def start(self, activities: Iterable[Any], optimizer: Any) -> None:
        """Mark the calls of all modules. optimizer: whose state counts, or None."""
        from torch.profiler import profile

        parameters = list(self._model.parameters())
        state = [] if optimizer is None else list(optimizer.state.values())
        self._held = {
            "parameters": _bytes([*parameters, *self._model.buffers()]),
            "optimizer state": _bytes(value for one in state for value in one.values()),
        }
        self._gradients = [
            (parameter, weakref.ref(parameter.grad))
            for parameter in parameters
            if parameter.grad is not None
        ]
        for name, module in self._model.named_modules():
            self._mark(name, module)
        self._profiler = profile(activities=list(activities), profile_memory=True)
        self._profiler.start()

    def _mark(self, name: str, module: Any) -> None:
        from torch.profiler import record_function

        marks: list[Any] = []

        def enter(module: Any, arguments: Any) -> None:
            marks.append(record_function(MODULE_MARK + name))
            marks[-1].__enter__()

        def leave(module: Any, arguments: Any, output: Any) -> None:
            if marks:
                marks.pop().__exit__(None, None, None)

        self._undo.callback(module.register_forward_pre_hook(enter).remove)
        self._undo.callback(module.register_forward_hook(leave, always_call=True).remove)

    def stop(self, write: Callable[[Callable[[str], object], Path], None]) -> None:
        """Read what was seen; a second call does nothing. write: puts a trace into a folder."""
        self._undo.close()
        if self._profiler is None:
            return
        profiler, self._profiler = self._profiler, None
        profiler.stop()
        # A gradient that the step replaces is among the profiler's events.
        kept = [parameter for parameter, old in self._gradients if old() is parameter.grad]
        self._held["gradients"] = _bytes(parameter.grad for parameter in kept)
        self._gradients = []
        self.peak = self._read(profiler, write)

    def _read(
        self, profiler: Any, write: Callable[[Callable[[str], object], Path], None]
    ) -> MemoryPeak | None:
        from isograd.profile.read.chromes import trace

        with tempfile.TemporaryDirectory() as folder:
            write(profiler.export_chrome_trace, Path(folder))
            peak = peak_of_trace(trace(Path(folder) / "trace.json.gz"))
        if peak is None:
            return None
        # torch counts a CPU's memory from the profiler's start, a GPU's from the process' start.
        return with_held(peak, self._held, is_counted=peak.device != "CPU")


def _bytes(values: Iterable[Any]) -> int:
    """Bytes of the distinct storages of all tensors among these."""
    import torch

    sizes = {}
    for value in values:
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())
