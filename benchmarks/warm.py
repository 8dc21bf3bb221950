"""Verify cases one after the other in this process, each with workers that are split off.

The frameworks are imported once for all cases of a process, which halves the time of a small case.
"""

from __future__ import annotations

import atexit
import os
import signal
from pathlib import Path
from typing import Any

from isograd.errors import IsogradError
from isograd.progress import SilentProgress
from isograd.verify.ladder import verify_case
from isograd.worker.warm import WarmWorkers

_WORKERS: list[WarmWorkers] = []


def begin(threads: int) -> None:
    """Prepare this process: its frameworks compute with this many threads."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    workers = WarmWorkers()
    atexit.register(workers.close)
    _WORKERS.append(workers)


def verified(
    case: Path, seed: int, report: Path, timeout_s: float, keep: Path | None = None
) -> tuple[int | None, str]:
    """The exit status that `isograd verify` has for a case, and its error; writes the report.

    The status is None where the time was over.  Call `begin` first, and from the main thread.
    """
    signal.signal(signal.SIGALRM, _over)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        found = verify_case(
            case, seed=seed, keep=keep, progress=SilentProgress(), start=_WORKERS[-1].worker
        )
    except IsogradError as error:
        return 2, str(error)
    except TimeoutError:
        return None, f"stopped after {timeout_s:.0f} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    report.write_text(found.to_json(), encoding="utf-8")
    return (0 if found.verdict.value == "equivalent" else 1), ""


def _over(*_: Any) -> None:
    raise TimeoutError
