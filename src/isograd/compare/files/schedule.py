"""Cuts a comparison into tasks of like size, and puts their answers together again.

Small pairs go in batches, so that a task is worth its overhead; a large pair goes in groups of
segments, so that it occupies all cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from isograd.compare.files.differences import settle
from isograd.compare.files.model import TensorComparison
from isograd.compare.files.operands import Operand, is_mapped
from isograd.compare.files.segments import (
    SEGMENT,
    Method,
    Part,
    method_for,
    segments,
)
from isograd.compare.files.verdicts import TensorVerdict
from isograd.compare.files.work import FAILURES, Job, Worker

#: Tasks that wait for a free thread, per thread; more would only hold memory.
_QUEUE_PER_THREAD = 3
#: What a task takes at least, unless nothing is left.
_BATCH_BYTES = 32 << 20
_BATCH_PAIRS = 200
#: Pairs of at most so many bytes are Python's work more than NumPy's: two threads took 1.3 to 2.1
#: times as long as one for 2 to 128 KB, 1.2 times for 512 KB, 0.7 times for 2 MB (two cores).
_SMALL_PAIR_BYTES = 768 << 10
#: Segments of a large pair that one task takes.
_GROUP = 8

#: A task: a function of the worker with its arguments, and what takes its answer.
Task = tuple[tuple[Any, ...], Callable[[Any], "list[TensorComparison]"], int]


@dataclass
class _Large:
    """A pair of which segments are being measured."""

    job: Job
    method: Method
    operands: tuple[Operand, Operand]
    spans: list[tuple[int, int]]
    parts: list[Part | None]


class _Batch:
    """Pairs for one task."""

    def __init__(self, run: Callable[[Sequence[Job]], list[TensorComparison]]) -> None:
        self._run = run
        self.jobs: list[Job] = []
        self._size_bytes = 0

    def add(self, job: Job) -> None:
        """One pair more."""
        self.jobs.append(job)
        self._size_bytes += job.size_bytes

    @property
    def is_full(self) -> bool:
        """Whether it is worth a task."""
        return self._size_bytes >= _BATCH_BYTES or len(self.jobs) >= _BATCH_PAIRS

    def taken(self) -> Task:
        """The task; the batch is empty after it."""
        task = (self._run, self.jobs), Future.result, self._size_bytes
        self.jobs, self._size_bytes = [], 0
        return task


def compare_jobs(
    pool: Executor,
    width: int,
    worker: Worker,
    jobs: Sequence[Job],
    on_bytes: Callable[[int], None],
) -> Iterator[TensorComparison]:
    """Compare all pairs, in any order; on_bytes: called with the bytes that a task has read."""
    waiting: dict[Future[Any], Task] = {}
    tasks = _tasks(worker, jobs, pool)
    while True:
        for task in tasks:
            waiting[pool.submit(*task[0])] = task
            if len(waiting) >= _QUEUE_PER_THREAD * width:
                break
        if not waiting:
            return
        ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in ready:
            _, take, size = waiting.pop(future)
            found = take(future)
            on_bytes(size)
            yield from found


def _tasks(worker: Worker, jobs: Iterable[Job], pool: Executor) -> Iterator[Task]:
    one_by_one, side_by_side = _Batch(worker.batch_alone), _Batch(worker.batch)
    for job in jobs:
        large = _large(worker, job)
        if large is not None:
            yield from _groups(worker, large, pool)
            continue
        batch = one_by_one if job.size_bytes <= _SMALL_PAIR_BYTES else side_by_side
        batch.add(job)
        if batch.is_full:
            yield batch.taken()
    for batch in (one_by_one, side_by_side):
        if batch.jobs:
            yield batch.taken()


def _large(worker: Worker, job: Job) -> _Large | None:
    """A pair that is worth being cut; None for others, and for those that are no maps of files."""
    is_small = min(job.reference.size_bytes, job.other.size_bytes) <= _GROUP * SEGMENT
    if is_small or job.comparison().verdict is TensorVerdict.SHAPE:
        return None
    try:
        first, second = worker.operands(job)
    except FAILURES:
        return None
    if not (is_mapped(first.bits) and is_mapped(second.bits)):
        return None
    rules = worker.rules
    method = method_for(
        first,
        rules.tolerance_of(job),
        is_counting=rules.is_counting,
        is_compiled=rules.is_compiled,
    )
    spans = segments(first.size)
    return _Large(job, method, (first, second), spans, [None] * len(spans))


def _groups(worker: Worker, large: _Large, pool: Executor) -> Iterator[Task]:
    share = large.job.size_bytes // len(large.spans)
    for start in range(0, len(large.spans), _GROUP):
        spans = large.spans[start : start + _GROUP]

        def take(future: Future[list[Part]], start: int = start) -> list[TensorComparison]:
            try:
                found = future.result()
            except FAILURES as error:
                return _failed(large, error)
            large.parts[start : start + len(found)] = found
            return _settled(worker, large, pool)

        yield (worker.parts, large.job, large.method, spans), take, share * len(spans)


def _failed(large: _Large, error: Exception) -> list[TensorComparison]:
    """The pair as failed, once."""
    if not large.parts:
        return []
    large.parts = []
    return [replace(large.job.comparison(), detail=str(error))]


def _settled(worker: Worker, large: _Large, pool: Executor) -> list[TensorComparison]:
    """The pair where all its parts are there; nothing before."""
    parts = [part for part in large.parts if part is not None]
    if not parts or len(parts) < len(large.spans):
        return []

    def recount(method: Method, counted: Sequence[Part]) -> int:
        futures = []
        for start in range(0, len(large.spans), _GROUP):
            spans = large.spans[start : start + _GROUP]
            marks = [part.marks for part in counted[start : start + _GROUP]]
            if any(any(mark) for mark in marks):
                futures.append(pool.submit(worker.recount, large.job, method, spans, marks))
        return sum(future.result() for future in futures)

    first, second = large.operands
    try:
        tolerance = worker.rules.tolerance_of(large.job)
        difference = settle(first, second, tolerance, large.method, parts, recount)
    except FAILURES as error:
        return _failed(large, error)
    return [worker.rules.judged(large.job.comparison(), difference)]
