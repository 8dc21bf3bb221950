"""The search on the workers of a Dask cluster, through one storage that all of them reach."""

from __future__ import annotations

from collections.abc import Sequence

from isograd.errors import UsageError
from isograd.progress import Progress, SilentProgress
from isograd.tune.study import Study

#: Seconds between two looks at the futures.
_INTERVAL_S = 1.0


def run_on_dask(study: Study, jobs: int, scheduler: str | None, progress: Progress) -> None:
    """Run `jobs` searches of the same study beside one another; UsageError without Dask.

    Every worker must see the study file, its folder and its storage under the same path.
    """
    try:
        from distributed import Client
        from distributed import wait as wait_for
    except ImportError as error:
        raise UsageError(
            "Dask is not installed", "Install the extra: pip install 'isograd[dask]'."
        ) from error
    from isograd.tune.search import Search

    search = Search(study, progress)
    local = {"n_workers": jobs, "threads_per_worker": 1} if scheduler is None else {}
    try:
        client = Client(scheduler, **local)  # type: ignore[no-untyped-call]  # Dask has no types
    except (OSError, TimeoutError) as error:
        raise UsageError(
            f"the scheduler {scheduler} does not answer ({error})", "Give its address."
        ) from error
    with client:
        futures = [client.submit(_work, study, number, pure=False) for number in range(jobs)]
        progress.stage("search")
        while any(future.status == "pending" for future in futures):
            _pause(wait_for, futures)
            progress.advance(min(search.finished(), search.wanted), search.wanted, "on Dask")
        for future in futures:
            future.result()


def _pause(wait_for: object, futures: Sequence[object]) -> None:
    from distributed import TimeoutError as DaskTimeoutError

    try:
        wait_for(futures, timeout=_INTERVAL_S)  # type: ignore[operator]  # Dask has no types here
    except (DaskTimeoutError, TimeoutError):
        return


def _work(study: Study, number: int) -> int:
    """What one worker does; its sampler draws other values than the others'."""
    from dataclasses import replace

    from isograd.tune.search import Search

    Search(replace(study, seed=study.seed + 7919 * number), SilentProgress()).run(1)
    return number
