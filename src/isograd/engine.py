"""Where the work runs: threads of this process, forks of it, or workers of a Dask cluster."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from isograd.errors import IsogradError, UsageError, WorkerError

#: Seconds within which a scheduler must answer.
_PATIENCE_S = 20
#: Forks beyond these win little, and each keeps a copy of what it touches.
_MOST_FORKS = 8
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def executor(engine: str, threads: int, scheduler: str | None) -> Iterator[tuple[Executor, int]]:
    """What takes functions and yields futures, and how many of them run at once.

    Raises UsageError where Dask is missing or its scheduler does not answer.
    """
    if engine == "dask":
        with _dask(threads, scheduler) as found:
            yield found
        return
    count = threads or os.cpu_count() or 1
    pool = ThreadPoolExecutor(count, thread_name_prefix="isograd")
    try:
        yield pool, count
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _dask(workers: int, scheduler: str | None) -> Iterator[tuple[Executor, int]]:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise UsageError(
            "the engine `dask` needs Dask, which is not installed",
            'Install it: pip install "isograd[dask]".',
        ) from error
    try:
        if scheduler is None:
            cluster = distributed.LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
            )
        else:
            cluster = None
        client = distributed.Client(cluster or scheduler, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError, RuntimeError, TimeoutError) as error:
        where = "on this machine" if scheduler is None else f"at {scheduler}"
        raise UsageError(
            f"there is no Dask scheduler {where}: {error}",
            "Start one (`dask scheduler`) and give its address, as tcp://host:8786.",
        ) from error
    try:
        count = sum(client.nthreads().values())
        if not count:
            raise UsageError(
                f"the Dask scheduler at {scheduler} has no worker", "Start one: `dask worker`."
            )
        yield client.get_executor(pure=False, retries=2), count
    except IsogradError:
        raise
    except Exception as error:  # Dask has its own exceptions for each way in which it may fail
        raise WorkerError(
            f"the Dask cluster could not do the work: {error}",
            "Its workers need isograd in the same version, and see the files under the same names.",
        ) from error
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def forked_map(
    function: Callable[[_Item], _Result], items: Sequence[_Item], *, is_long: bool
) -> Iterator[_Result]:
    """`map` in forks of this process, which have all that it has read; results in order.

    function: changes nothing that anybody else reads; only its result comes back, by pickle.
    is_long: whether the work is worth the forks.  Where a process cannot be forked safely, or a
    fork dies (the system ends one that takes too much memory), the work is done here.
    """
    count = min(_processors(), _MOST_FORKS, len(items)) if is_long and _may_fork() else 1
    if count < 2:
        yield from map(function, items)
        return
    done = 0
    pool = ProcessPoolExecutor(
        count, multiprocessing.get_context("fork"), initializer=_begin, initargs=(function,)
    )
    try:
        for result in pool.map(_call, items):
            done += 1
            yield result
    except BrokenProcessPool:
        yield from map(function, items[done:])
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _may_fork() -> bool:
    """Not beside the threads of a framework or a server, whose locks a fork would keep closed."""
    is_main = threading.current_thread() is threading.main_thread()
    return sys.platform == "linux" and is_main and not {"torch", "mindspore"} & sys.modules.keys()


def _begin(function: Callable[[Any], Any]) -> None:
    """In a fork: what it computes.  An interrupt is the first process's to answer."""
    global _function  # inherited by the fork: it need not be picklable
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _call(item: Any) -> Any:
    return _function(item)


_function: Callable[[Any], Any] = _call
