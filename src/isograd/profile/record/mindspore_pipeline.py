"""MindSpore's data pipeline: waits of the training, and the queues of its operators."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isograd.errors import IsogradError
from isograd.profile.model import Queue

#: Milliseconds between two samples of the queues.
SAMPLING_MS = 10


def _forget_rank() -> None:
    os.environ.pop("RANK_ID", None)


class PipelineWatch:
    """Wraps the iterators' `__next__` and lets MindSpore sample its queues."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._manager: Any = None
        self._is_sampled = False
        self._queues: tuple[Queue, ...] = ()

    def attach(self, begin: Callable[[], None], end: Callable[[], None], notes: list[str]) -> None:
        """Call begin and end around every wait; queues of pipelines built from now on are known."""
        from mindspore.dataset.engine.iterators import Iterator

        original = Iterator.__next__

        def next_batch(iterator: Any) -> Any:
            begin()
            try:
                return original(iterator)
            finally:
                end()

        Iterator.__next__ = next_batch
        self._undo.append(lambda: setattr(Iterator, "__next__", original))
        self.sample(notes)

    def sample(self, notes: list[str]) -> None:
        """Let MindSpore sample the queues of pipelines built from now on; a second call is none."""
        if self._is_sampled:
            return
        self._is_sampled = True
        try:
            self._start_sampling()
        except Exception as error:  # a private interface of MindSpore, which may change
            notes.append(f"The pipeline's queues are not sampled: {type(error).__name__}: {error}")

    def _start_sampling(self) -> None:
        import mindspore.dataset as dataset
        from mindspore._c_dataengine import GlobalContext

        before = dataset.config.get_monitor_sampling_interval()
        dataset.config.set_monitor_sampling_interval(SAMPLING_MS)
        self._undo.append(lambda: dataset.config.set_monitor_sampling_interval(before))
        if "RANK_ID" not in os.environ:
            os.environ["RANK_ID"] = "0"
            self._undo.append(_forget_rank)
        manager = GlobalContext.profiling_manager()
        manager.init()
        manager.start()
        self._manager = manager

    def detach(self) -> None:
        """Read the queues and put everything back; a second call does nothing."""
        if self._manager is not None:
            self._queues = self._read()
            self._manager = None
        while self._undo:
            self._undo.pop()()

    def _read(self) -> tuple[Queue, ...]:
        from isograd.profile.read.pipelines import pipeline_profiling

        try:
            with tempfile.TemporaryDirectory(prefix="isograd-") as folder:
                self._manager.stop()
                self._manager.save(folder)
                files = sorted(Path(folder).glob("pipeline_profiling_*.json"))
                return pipeline_profiling(files[0]).queues if files else ()
        except (RuntimeError, OSError, IsogradError):
            return ()  # nothing was built or sampled

    def queues(self) -> tuple[Queue, ...]:
        """The queues, known after detach; empty where no pipeline was built meanwhile."""
        return self._queues
