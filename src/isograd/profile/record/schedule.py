"""How long a thread has run, and waited for a processor, as Linux counts it."""

from __future__ import annotations

import contextlib
import os
import threading

#: One line of three numbers: ns on a processor, ns waiting for one, turns (Linux, sched-stats).
FILE = "/proc/self/task/{}/schedstat"


def processors() -> int:
    """On how many processors this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Schedule:
    """The times of one thread since it began, in ns; a read takes about two microseconds.

    thread: its native number; the caller's own by default. Both times are 0 where the system does
    not count them.
    """

    def __init__(self, thread: int | None = None) -> None:
        number = threading.get_native_id() if thread is None else thread
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(FILE.format(number), os.O_RDONLY)

    @property
    def is_known(self) -> bool:
        """Whether the system counts."""
        return self._file is not None

    def read(self) -> tuple[int, int]:
        """Nanoseconds on a processor, and in the queue for one."""
        if self._file is None:
            return 0, 0
        try:
            ran, queued = os.pread(self._file, 96, 0).split()[:2]
            return int(ran), int(queued)
        except (OSError, ValueError):
            return 0, 0

    def close(self) -> None:
        """The times are 0 from now on."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
