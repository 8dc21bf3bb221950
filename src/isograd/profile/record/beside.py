"""How long threads that make batches keep the training from the processor, as Linux counts it."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

from isograd.profile.record.schedule import Schedule, processors

FOLDER = "/proc/self/task"
#: A thread that works in the waits for data at this share of its rate outside of them, or more,
#: works for the pipeline: there the training has nothing to do.
WORKS_ON = 0.5
#: Waits for data shorter than this together do not show which threads make batches.
LEAST_WAIT_S = 0.02


@dataclass
class _Thread:
    """ran_ns, queued_ns: while the training waits for data, and at other times."""

    schedule: Schedule
    last: tuple[int, int]
    ran_ns: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    queued_ns: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})


class Beside:
    """Times of all threads of this process, apart for waits for data and for the rest.

    main: native number of the training's thread.
    """

    def __init__(self, main: int) -> None:
        self._main = main
        self._threads: dict[int, _Thread] = {}
        self._passed_s: defaultdict[bool, float] = defaultdict(float)
        self._is_waiting: bool | None = None
        self._since_s = 0.0

    def turn(self, is_waiting: bool) -> None:
        """From now on the training waits for data, or does not; takes some 0.1 ms."""
        self._look()
        self._is_waiting = is_waiting

    def _look(self) -> None:
        """What threads did since the last look, in which all was of one kind."""
        now_s = time.perf_counter()
        names: list[str] = []
        with suppress(OSError):
            names = os.listdir(FOLDER)
        for number in set(map(int, names)) - set(self._threads):
            schedule = Schedule(number)
            self._threads[number] = _Thread(schedule, schedule.read())
        for thread in self._threads.values():
            now = thread.schedule.read()
            if self._is_waiting is not None and now >= thread.last:  # not ended meanwhile
                thread.ran_ns[self._is_waiting] += now[0] - thread.last[0]
                thread.queued_ns[self._is_waiting] += now[1] - thread.last[1]
            thread.last = now
        if self._is_waiting is not None:
            self._passed_s[self._is_waiting] += now_s - self._since_s
        self._since_s = now_s

    def close(self, own: int = 0) -> float:
        """Seconds for which threads that make batches, or isograd's, ran instead of the training.

        own: native number of isograd's thread, which takes processor time, too.
        On one processor all that they run outside of the waits for data; on several at most what
        the training's threads queue. 0 where no wait shows which threads they are.
        """
        self._look()
        for thread in self._threads.values():
            thread.schedule.close()
        waited, rest = self._passed_s[True], self._passed_s[False]
        if waited < LEAST_WAIT_S or not rest > 0:
            return 0.0
        ran, queued = 0, 0
        for number, thread in self._threads.items():
            works_on = thread.ran_ns[True] / waited >= WORKS_ON * thread.ran_ns[False] / rest
            if number == own or (works_on and number != self._main):
                ran += thread.ran_ns[False]
            else:
                queued += thread.queued_ns[False]
        return (ran if processors() == 1 else min(ran, queued)) / 1e9
