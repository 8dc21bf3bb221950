"""Where the work runs: threads of this process, or workers of a Dask cluster."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from isograd.errors import IsogradError, UsageError, WorkerError

#: Seconds within which a scheduler must answer.
_PATIENCE_S = 20


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
