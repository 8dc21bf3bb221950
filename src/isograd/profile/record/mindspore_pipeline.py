"""MindSpore's data pipeline: waits of the training, and the queues of its operators."""

from __future__ import annotations

import math
import os
import random
import tempfile
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isograd.errors import IsogradError
from isograd.profile.analyse.pipeline import FULL
from isograd.profile.model import Queue

#: Milliseconds between two samples of the queues.
SAMPLING_MS = 10
#: Short steps end before MindSpore has looked at its queues twice.
LEAST_SAMPLED_S = 0.15
_ATTEMPTS = 4
#: Batches that are made to learn how long one takes, and the time after which fewer must do.
PROBED, LEAST_PROBED, LONGEST_S = 16, 3, 2.0
#: The last samples of a queue: whether it was full at the end.
LAST = 0.25


#: Iterators that were built while queues were sampled. MindSpore 2.10 ends the process with a
#: segmentation fault where another pipeline is sampled before such a one is gone.
_SAMPLED: weakref.WeakSet[Any] = weakref.WeakSet()


def _iterators() -> list[Any]:
    from mindspore.dataset.engine.iterators import ITERATORS_LIST

    alive = (reference() for reference in ITERATORS_LIST)
    return [iterator for iterator in alive if iterator is not None]


def _pipeline_classes() -> tuple[tuple[Any, str], ...]:
    """What builds a pipeline, and its method that ends one."""
    from mindspore.dataset.engine import datasets, iterators

    found: list[tuple[Any, str]] = [(iterators.Iterator, "stop")]
    to_device = getattr(datasets, "_ToDevice", None)  # of sink mode; private
    return tuple(found if to_device is None else [*found, (to_device, "release")])


def _forget_rank() -> None:
    os.environ.pop("RANK_ID", None)


class PipelineWatch:
    """Wraps the iterators' `__next__` and lets MindSpore sample its queues."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._manager: Any = None
        self._is_sampled = self._is_prepared = False
        self._began: float | None = None
        self._queues: tuple[Queue, ...] = ()
        self._dataset: Any = None
        self._notes: list[str] = []
        self._before: weakref.WeakSet[Any] = weakref.WeakSet()
        self._sampled: weakref.ref[Any] | None = None
        self._is_free = False
        self._in_use: weakref.ref[Any] | None = None

    def attach(self, begin: Callable[[], None], end: Callable[[], None], notes: list[str]) -> None:
        """Call begin and end around every wait; prepare pipelines built from now on.

        notes: where what could not be recorded is reported, until `detach` has returned.
        """
        self._notes = notes
        from mindspore.dataset.engine.iterators import Iterator

        original = Iterator.__next__

        def next_batch(iterator: Any) -> Any:
            self._in_use = weakref.ref(iterator)
            begin()
            self._dataset = getattr(iterator, "_Iterator__ori_dataset", None)
            try:
                return original(iterator)
            finally:
                end()

        Iterator.__next__ = next_batch
        self._undo.append(lambda: setattr(Iterator, "__next__", original))
        self.sample(notes)

    def sample(self, notes: list[str]) -> None:
        """Prepare pipelines built from now on for `begin_sampling`; a second call does nothing."""
        if self._is_sampled:
            return
        self._is_sampled = True
        if any(iterator in _SAMPLED for iterator in _iterators()):
            notes.append(
                "The pipeline's queues are not sampled: an iterator of an earlier profile is still "
                "in use, beside which MindSpore cannot sample another. Call its stop(), or record "
                "in another process."
            )
            return
        try:
            self._prepare()
        except Exception as error:  # a private interface of MindSpore, which may change
            notes.append(f"The pipeline's queues are not sampled: {type(error).__name__}: {error}")

    def begin_sampling(self) -> None:
        """Sample the queues from now on.

        The thread of MindSpore 2.10 that samples also counts every thread's work: a sample takes
        20 ms of a processor (2 cores), which steps that are timed may need.
        """
        if self._manager is None:
            return
        if self._is_free:
            self._manager = None
            self._notes.append(
                "The pipeline's queues are not sampled: MindSpore looks at the first pipeline that "
                "was built meanwhile, and that one has ended."
            )
            return
        used, sampled = (None if r is None else r() for r in (self._in_use, self._sampled))
        if used is not None and sampled is not None and used is not sampled:
            self._release()
            self._manager = None
            self._notes.append(
                "The pipeline's queues are not sampled: MindSpore looks at the first pipeline that "
                "was built, which is still in use, and the training takes from another one."
            )
            return
        self._manager.start()
        self._began = time.perf_counter()

    def end_sampling(self) -> None:
        """Read the queues, after LEAST_SAMPLED_S at least; nothing where none are sampled."""
        if self._manager is None or self._began is None:
            return
        passed = time.perf_counter() - self._began
        time.sleep(max(LEAST_SAMPLED_S - passed, 0.0))
        found = self._read()
        for attempt in range(1, _ATTEMPTS):
            if not found or any(queue.sizes.size for queue in found):
                break
            self._manager.start()  # a busy machine has not let MindSpore look even once
            time.sleep(LEAST_SAMPLED_S * 2**attempt)
            found = self._read()
        # What was made meanwhile no step takes.
        share = min(passed / LEAST_SAMPLED_S, 1.0)
        self._queues, self._manager = tuple(_first(queue, share) for queue in found), None

    def _prepare(self) -> None:
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
        self._manager, self._before = manager, weakref.WeakSet(_iterators())
        self._is_prepared = True
        for kind, end in _pipeline_classes():
            self._follow(kind, end)

    def _follow(self, kind: Any, end: str) -> None:
        """See which pipeline is sampled, and when it ends.

        MindSpore 2.10 keeps a bare pointer to the first pipeline that is built after `init`, and
        uses it at `start`: once that pipeline is gone, the process ends by a segmentation fault.
        """
        build, leave = kind.__init__, getattr(kind, end)

        def built(one: Any, *arguments: Any, **options: Any) -> None:
            self._prepare_next()
            try:
                build(one, *arguments, **options)
            except BaseException:
                if self._sampled is None:  # it may be the one, and is gone
                    self._manager = None
                raise
            if self._manager is not None and self._sampled is None:
                self._sampled = weakref.ref(one, lambda _: self._ends())

        def left(one: Any) -> None:
            if self._sampled is not None and self._sampled() in (one, None):
                self._ends()
            leave(one)

        kind.__init__ = built
        setattr(kind, end, left)
        self._undo.append(lambda: setattr(kind, "__init__", build))
        self._undo.append(lambda: setattr(kind, end, leave))

    def _ends(self) -> None:
        """The sampled pipeline is about to end: nothing may be asked of it afterwards."""
        if self._sampled is None:
            return
        self._sampled = None
        if self._began is not None:
            self.end_sampling()
        elif self._manager is not None:
            self._release()
            self._is_free = True

    def _prepare_next(self) -> None:
        """The pipeline that was to be sampled has ended: the next one is."""
        if self._manager is None or not self._is_free:
            return
        self._is_free = False
        try:
            self._manager.init()
        except RuntimeError:
            self._manager = None

    def _release(self) -> None:
        """Let MindSpore forget the pipeline, which only these two calls together do."""
        self._manager.start()
        self._manager.stop()

    def detach(self) -> None:
        """Put everything back; a second call does nothing."""
        if self._manager is not None and not self._is_free:  # the training has ended before
            if self._began is None:
                self._manager.start()
            self._manager.stop()
        self._manager = None
        if self._is_prepared:
            _SAMPLED.update(one for one in _iterators() if one not in self._before)
            self._is_prepared = False
        while self._undo:
            self._undo.pop()()

    def _read(self) -> tuple[Queue, ...]:
        from isograd.profile.read.pipelines import pipeline_profiling

        try:
            with tempfile.TemporaryDirectory(prefix="isograd-") as folder:
                self._manager.stop()
                self._manager.save(folder)
                files = sorted(Path(folder).glob("pipeline_profiling_*.json"))
                if files:
                    return pipeline_profiling(files[0]).queues
                reason = "MindSpore wrote no samples"
        except (RuntimeError, OSError, IsogradError) as error:
            reason = f"{type(error).__name__}: {error}"
        if self._dataset is not None:  # else no pipeline was built that could be sampled
            self._notes.append(f"The pipeline's queues are not known: {reason}")
        return ()

    def queues(self) -> tuple[Queue, ...]:
        """The queues, known after end_sampling; empty where no pipeline was built meanwhile."""
        return self._queues

    def alone_s(self) -> float:
        """Seconds in which the pipeline makes a batch with nothing else to do, after detach.

        NaN where its queues were full at the end, so that it is fast enough, or where it makes
        fewer than LEAST_PROBED batches in LONGEST_S.
        """
        dataset, self._dataset = self._dataset, None
        if dataset is None or all(map(_is_full, self._queues)):
            return float("nan")
        states = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's generator
        try:
            return _batch_s(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002 - the user's generator


def _first(queue: Queue, share: float) -> Queue:
    """The queue with this share of its samples, at least the first."""
    return replace(queue, sizes=queue.sizes[: max(math.ceil(share * queue.sizes.size), 1)])


def _is_full(queue: Queue) -> bool:
    last = queue.sizes[-max(round(queue.sizes.size * LAST), 1) :]
    if queue.capacity <= 0 or not last.size:
        return queue.capacity <= 0
    return float(np.mean(last)) >= FULL * queue.capacity


def _batch_s(batches: Any) -> float:
    """Mean time between two batches, in the faster half: what stops the process counts in one.

    The first batch, with what starts before it, is left out.
    """
    at = []
    for _ in batches:
        at.append(time.perf_counter())
        if len(at) == PROBED or (len(at) >= LEAST_PROBED and at[-1] - at[0] > LONGEST_S):
            break
    if len(at) < LEAST_PROBED:
        return float("nan")
    gaps = np.diff(at)
    return float(min(np.mean(half) for half in np.array_split(gaps, 2)))
