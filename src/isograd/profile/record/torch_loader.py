"""torch's DataLoader: how long the training waits for it, and how long a sample takes."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from isograd.profile.model import Loader, Phase
from isograd.profile.record.sampler import Sampler
from isograd.profile.record.schedule import Schedule

#: Samples that a probe asks the dataset for, and the seconds that it may take.
PROBED = 12
LONGEST_S = 3.0


class LoaderWatch:
    """Wraps the iterators' `__next__`; remembers every iterator with its waits and its queue."""

    def __init__(self) -> None:
        self._wait_s: defaultdict[int, float] = defaultdict(float)
        self._iterators: dict[int, Any] = {}
        self._ready: defaultdict[int, list[int]] = defaultdict(list)
        self._undo: Callable[[], None] | None = None

    def attach(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Call begin and end around every wait of the process's own thread."""
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        original = _BaseDataLoaderIter.__next__
        watch = self

        def next_batch(iterator: Any) -> Any:
            key = id(iterator)
            watch._iterators[key] = iterator
            watch._ready[key].append(_ready_batches(iterator))
            begin()
            start = time.perf_counter()
            try:
                return original(iterator)
            finally:
                watch._wait_s[key] += time.perf_counter() - start
                end()

        def undo() -> None:
            _BaseDataLoaderIter.__next__ = original  # type: ignore[method-assign]

        _BaseDataLoaderIter.__next__ = next_batch  # type: ignore[method-assign, assignment]
        self._undo = undo

    def detach(self) -> None:
        """Put `__next__` back."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def answer(self, *, is_probed: bool, notes: list[str]) -> Loader | None:
        """The loader that was waited for longest; probed where asked."""
        if not self._iterators:
            return None
        key = max(self._iterators, key=lambda key: self._wait_s[key])
        iterator = self._iterators[key]
        sample_s = cpu_share = collate_s = float("nan")
        lines: tuple[tuple[str, str, float], ...] = ()
        if is_probed:
            try:
                sample_s, cpu_share, collate_s, lines = _probe(iterator)
            except Exception as error:  # the user's dataset may raise anything
                notes.append(f"The dataset could not be probed: {type(error).__name__}: {error}")
        return Loader(
            workers=int(iterator._num_workers),
            batch_size=_batch_size(iterator),
            prefetch=int(getattr(iterator, "_prefetch_factor", None) or 0),
            pin_memory=bool(iterator._pin_memory),
            ready=np.asarray(self._ready[key], dtype=np.int64),
            sample_s=sample_s,
            cpu_share=cpu_share,
            collate_s=collate_s,
            lines=lines,
        )


def _batch_size(iterator: Any) -> int:
    return int(getattr(iterator._index_sampler, "batch_size", None) or 1)


def _ready_batches(iterator: Any) -> int:
    """Batches that wait for the training; 0 where the loader has no workers or cannot say."""
    queue = getattr(iterator, "_data_queue", None)
    try:
        return int(queue.qsize()) if queue is not None else 0
    except (NotImplementedError, AttributeError, OSError):
        return 0


def _probe(iterator: Any) -> tuple[float, float, float, tuple[tuple[str, str, float], ...]]:
    """Seconds of a sample, its share of a processor, seconds of a collation, lines with shares."""
    dataset = iterator._dataset
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        return float("nan"), float("nan"), float("nan"), ()
    count = len(dataset)
    chosen = [(n * max(count // PROBED, 1)) % count for n in range(min(PROBED, count))]
    sampler = Sampler(lambda: Phase.DATA)
    taken: list[Any] = []
    times: list[float] = []
    with _same_random_numbers():
        dataset[chosen[0]]  # what is cached by the first call is no part of a sample
        sampler.start()
        schedule = Schedule()
        busy, queued, began = time.thread_time(), schedule.read()[1], time.perf_counter()
        for index in chosen:
            start = time.perf_counter()
            taken.append(dataset[index])
            times.append(time.perf_counter() - start)
            if time.perf_counter() - began > LONGEST_S:
                break
        spent = time.perf_counter() - began
        waited = (schedule.read()[1] - queued) / 1e9
        schedule.close()
        alone = max(spent - waited, 1e-9)  # without waiting for a processor
        share = min((time.thread_time() - busy) / alone, 1.0)
        sampler.stop()
        collate_s = _collate(iterator, taken)
    found = [line for line in sampler.lines() if line.is_main_thread]
    total = sum(line.seconds for line in found)
    lines = tuple((one.where, one.function, one.seconds / total) for one in found[:5])
    return float(np.mean(times)), share, collate_s, lines


def _collate(iterator: Any, taken: list[Any]) -> float:
    """Seconds to make a batch of samples, scaled to the batch size."""
    start = time.perf_counter()
    iterator._collate_fn(taken)
    return (time.perf_counter() - start) * _batch_size(iterator) / len(taken)


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Put the generators back, so that probing changes no later draw."""
    import torch

    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002 - the user's generator
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002 - the user's generator
        torch.set_rng_state(states[2])
