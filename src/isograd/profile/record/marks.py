"""Marks steps and phases while a training runs; nothing here knows a framework."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from isograd.profile.model import PHASES, Marks, Phase, Steps
from isograd.profile.record.schedule import Schedule, processors

#: Reads of the clock until no wait lies beside one.
_TRIES = 3


class Clock:
    """The time, and how long other processes have kept the thread that asks first waiting, in ns.

    The system counts each wait for a processor, also one in which a thread of this process had it;
    the others' part is at most what this process left of the processors' time. The wait is always
    0 where the system does not count it.
    """

    def __init__(self) -> None:
        self._schedule: Schedule | None = None
        self._processors = processors()
        self._last: tuple[int, int, int] | None = None  # time, wait, time on all processors
        self._others = 0

    def read(self) -> tuple[int, int]:
        """The time since the epoch, and the wait for others from the first read until then."""
        delay = self._delay()
        for _ in range(_TRIES):
            now, before = time.time_ns(), delay
            delay = self._delay()
            if delay == before:  # no wait lies between the two
                break
        here = now, delay, time.process_time_ns()
        passed, waited, ran = (a - b for a, b in zip(here, self._last or here, strict=True))
        self._last = here
        self._others += max(min(waited, passed * self._processors - ran), 0)
        return now, self._others

    def _delay(self) -> int:
        if self._schedule is None:
            self._schedule = Schedule()
        return self._schedule.read()[1]

    def close(self) -> None:
        """The wait is 0 from now on."""
        self._others = 0
        if self._schedule is not None:
            self._schedule.close()


#: Phases that follow one another in a step; waiting and sending interrupt them.
_NESTED = (Phase.DATA, Phase.COMMUNICATION)


class StepMarks:
    """Collects the steps. A step ends where the first batch or pass after an update begins.

    at_boundary: called between two steps with the number of the next one; what it takes is no
    part of any step.
    """

    def __init__(self, at_boundary: Callable[[int], None], settle: Callable[[], None]) -> None:
        self._at_boundary = at_boundary
        self._settle = settle
        self.number = 0
        self.window = ""
        self._rows: list[tuple[int, str, int, int, list[float], int]] = []
        self._clock = Clock()
        self._delay_at_start = 0
        self.intervals: list[tuple[int, int, int]] = []
        self._start: int | None = None
        self._phases = [0.0] * len(PHASES)
        self._open: list[tuple[Phase, int, int]] = []  # with when it began, and the delay then
        self._has_updated = False
        self._ever_updated = False
        self._has_closure = False  # the optimizer has called the passes, and goes on after them
        self._fetches = 0
        self._last_event = (0, 0)

    @property
    def phase(self) -> Phase | None:
        """The phase that runs now; OTHER between phases, None outside of steps."""
        if self._start is None:
            return None
        return self._open[-1][0] if self._open else Phase.OTHER

    def begin(self, phase: Phase) -> None:
        """A phase begins; before a batch or a pass, a step that was updated ends.

        A compiled step is one phase, OTHER: nobody sees its parts.
        """
        if phase in (Phase.DATA, Phase.FORWARD, Phase.OTHER):
            self._maybe_close(phase)
        if self._start is None:
            self._begin_step()
        if phase not in _NESTED:
            if phase is not Phase.UPDATE:
                self._has_closure |= any(entry[0] is Phase.UPDATE for entry in self._open)
            while self._open:
                self.end(self._open[-1][0])
        self._open.append((phase, *self._clock.read()))

    def end(self, phase: Phase) -> None:
        """A phase ends; an end without a beginning is ignored."""
        now, delay_now = self._clock.read()
        self._last_event = (now, delay_now)
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place][0] is phase:
                _, start, delay = self._open.pop(place)
                took = max(now - start - (delay_now - delay), 0) / 1e9
                self._phases[PHASES.index(phase)] += took
                if phase in _NESTED:
                    for outer, began, _ in self._open[:place][-1:]:
                        if began <= start:
                            self._phases[PHASES.index(outer)] -= took
                self.intervals.append((PHASES.index(phase), start, now))
                break
        if phase is Phase.BACKWARD and self._has_closure and not self._open:
            self._open.append((Phase.UPDATE, now, delay_now))

    def updated(self) -> None:
        """The optimizer has stepped."""
        self._has_updated = self._ever_updated = True
        self._has_closure = False
        self._last_event = self._clock.read()

    def step(self) -> None:
        """End the step here, as the user says."""
        if self._start is not None:
            self._close(self._clock.read())

    def finish(self, *, is_whole: bool) -> None:
        """The training is over: a step that was updated ends with its last event."""
        if self._start is not None and self._has_updated and is_whole:
            self._close(max(self._last_event, (self._start + 1, self._delay_at_start)))
        self._start = None
        self._open.clear()
        self._clock.close()

    def _maybe_close(self, phase: Phase) -> None:
        if self._start is None:
            return
        if phase is Phase.DATA:
            self._fetches += 1
        is_next_batch = phase is Phase.DATA and not self._ever_updated and self._fetches > 1
        if self._has_updated or is_next_batch:
            self._close(None)

    def _begin_step(self) -> None:
        self._at_boundary(self.number)
        self._start, self._delay_at_start = self._clock.read()
        self._phases = [0.0] * len(PHASES)
        self._fetches = 1

    def _close(self, end: tuple[int, int] | None) -> None:
        self._settle()
        assert self._start is not None
        while self._open:
            self.end(self._open[-1][0])
        now, delay_now = self._clock.read() if end is None else end
        delay = delay_now - self._delay_at_start
        self._rows.append((self.number, self.window, self._start, now, self._phases, delay))
        self.number += 1
        self._start, self._has_updated = None, False

    def marks(self, *, only_waits: bool = False) -> Marks:
        """All steps so far; only_waits: passes and updates are known in `modules` only."""
        table = np.asarray([row[4] for row in self._rows], dtype=np.float64)
        if only_waits and len(self._rows):
            issued = [PHASES.index(p) for p in (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE)]
            rows = [n for n, row in enumerate(self._rows) if row[1] != "modules"]
            table[np.ix_(rows, issued)] = np.nan
        start, end = (
            np.asarray([row[place] for row in self._rows], dtype=np.int64) for place in (2, 3)
        )
        delayed = np.asarray([row[5] for row in self._rows], dtype=np.int64)
        steps = Steps(
            np.asarray([row[0] for row in self._rows], dtype=np.int64),
            start,
            end,
            table.reshape(len(self._rows), len(PHASES)),
            delayed,
        )
        spans = np.asarray(self.intervals, dtype=np.int64).reshape(-1, 3)
        return Marks(tuple(row[1] for row in self._rows), steps, spans)


class Collections:
    """How long Python's garbage collector takes, by window."""

    def __init__(self, window: Callable[[], str]) -> None:
        self._window = window
        self._begin = 0.0
        self.seconds: dict[str, float] = {}
        self.count: dict[str, int] = {}

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """What gc calls at the beginning and the end of a collection."""
        if phase == "start":
            self._begin = time.perf_counter()
            return
        name = self._window()
        took = time.perf_counter() - self._begin
        self.seconds[name] = self.seconds.get(name, 0.0) + took
        self.count[name] = self.count.get(name, 0) + 1

    def start(self) -> None:
        """Listen."""
        gc.callbacks.append(self)

    def stop(self) -> None:
        """Listen no more."""
        if self in gc.callbacks:
            gc.callbacks.remove(self)
