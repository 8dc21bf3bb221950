"""Samples the Python stacks of all threads: at which of the user's lines time passes.

Python lets the sampling thread run when the interpreter's lock is free, so samples come
irregularly. Each one counts as the time since the one before, at most `LONGEST_S`.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from types import CodeType

from isograd.profile.model import HostLine, Phase
from isograd.profile.record.places import calls_on_line, lines_of_threads, shown_path
from isograd.profile.record.schedule import Schedule, processors

#: On average: equal ones would meet a loop as long always at the same line.
INTERVAL_S = 0.001
LONGEST_S = 0.25
#: How soon the sampled thread must give the interpreter's lock away. Python's 5 ms are longer than
#: many calls that keep it (json.loads, tolist); their time would be found where it is next given
#: away by itself, at another line.
SWITCH_S = 0.0002
#: A sampler that waits longer than its interval and this has waited for the interpreter's lock: one
#: that a busy system wakes late is late by less.
LATE_S = 0.005
#: What was seen of a thread that keeps the lock may be a third of it, not less: the rest would be
#: others', of which nothing is known.
MOST_UNSEEN = 3.0
_Key = tuple[str, str, Phase, bool, tuple[str, int]]
_Pair = tuple[float, float]


class Sampler:
    """Samples between start and stop; phase: asked at each sample for the main thread's phase."""

    def __init__(self, phase: Callable[[], Phase | None]) -> None:
        self._phase = phase
        self._main = threading.get_ident()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._usual_switch_s = sys.getswitchinterval()
        self._count: defaultdict[_Key, int] = defaultdict(int)
        self._seconds: defaultdict[_Key, float] = defaultdict(float)
        self._lock_s: defaultdict[_Key, float] = defaultdict(float)
        self._waited_s: defaultdict[_Key, float] = defaultdict(float)
        self._delayed_s: defaultdict[_Key, float] = defaultdict(float)
        #: Samples whose wait has no reason yet: how long, and what of it others could have had.
        self._idle: list[tuple[_Key | None, float, float]] = []
        self._knows_delays = False
        self._kept_s = 0.0
        self.native = 0
        self._main_native = 0

    def start(self) -> None:
        """Begin; the caller's thread is the main one."""
        self._main, self._main_native = threading.get_ident(), threading.get_native_id()
        self._stop.clear()
        self._usual_switch_s = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_S, self._usual_switch_s))
        self._thread = threading.Thread(target=self._run, name="isograd-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; a second call does nothing."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join(timeout=2.0)
            self._thread = None
            sys.setswitchinterval(self._usual_switch_s)

    def lines(self) -> tuple[HostLine, ...]:
        """What was found, most time first."""
        # A thread that has left Python when the sampler gets the lock was the one that kept it.
        seen = sum(self._lock_s.values())
        scale = min(self._kept_s / seen, MOST_UNSEEN) if seen else 0.0
        found = []
        for key in sorted(self._seconds, key=lambda key: -self._seconds[key]):
            where, function, phase, is_main, (file, line) = key
            found.append(
                HostLine(
                    where=where,
                    function=function,
                    phase=phase,
                    is_main_thread=is_main,
                    samples=self._count[key],
                    seconds=self._seconds[key],
                    calls=calls_on_line(file, line),
                    lock_s=self._lock_s.get(key, 0.0) * scale,
                    waited_s=min(max(self._waited_s.get(key, 0.0), 0.0), self._seconds[key]),
                    delayed_s=self._delayed_s[key] if self._knows_delays else None,
                )
            )
        return tuple(found)

    def _run(self) -> None:
        own, before = threading.get_ident(), time.perf_counter()
        self.native = threading.get_native_id()
        main, here = Schedule(self._main_native), Schedule()
        used, last = time.process_time(), (*here.read(), *main.read())
        draw = random.Random(0)  # noqa: S311 - no secret
        interval_s, cores, self._knows_delays = INTERVAL_S, processors(), main.is_known
        while not self._stop.wait(interval_s):
            now = time.perf_counter()
            weight, before = min(now - before, LONGEST_S), now
            spent, used = used, time.process_time()
            before_it, last = last, (*here.read(), *main.read())
            mine, delayed, ran, queued = (
                (a - b) / 1e9 for a, b in zip(last, before_it, strict=True)
            )
            # What the main thread ran meanwhile, it did not wait; and who keeps the lock runs.
            late = weight - interval_s - delayed - ran - queued
            interval_s = INTERVAL_S * draw.uniform(0.5, 1.5)
            kept = min(late, used - spent - mine - ran)
            is_kept = kept > LATE_S and main.is_known
            phase = self._phase()
            found = {} if phase is None else lines_of_threads()
            room = weight * cores - (used - spent)
            key = self._key(found, self._main, phase)
            self._explain(key, weight - ran, room, (ran, queued))
            if phase is None:
                continue
            others = []
            for ident in found:
                key = self._key(found, ident, phase)
                if ident == own or key is None:
                    continue
                self._count[key] += 1
                self._seconds[key] += weight
                if ident != self._main:
                    others.append(key)
            if is_kept and phase is not Phase.DATA:
                self._kept_s += kept
                for key in others:
                    self._lock_s[key] += kept / len(others)
        main.close()
        here.close()

    def _key(
        self, found: dict[int, tuple[CodeType, int]], ident: int, phase: Phase | None
    ) -> _Key | None:
        if phase is None or ident not in found:
            return None
        code, line = found[ident]
        source = (code.co_filename, line)
        where = f"{shown_path(code.co_filename)}:{line}"
        return where, code.co_name, phase, ident == self._main, source

    def _explain(self, key: _Key | None, idle: float, room: float, ran_queued: _Pair) -> None:
        """Count the main thread's wait at its line; what it waited for a processor is no wait.

        The system counts that when it ends, which may be some samples later.
        idle: what it did not run; room: what this process left of the processors' time.
        """
        if not self._knows_delays:
            return
        idle, room, (ran, queued) = max(idle, 0.0), max(room, 0.0), ran_queued
        if key is not None:
            self._waited_s[key] += idle
        self._idle.append((key, idle, room))
        for place in range(len(self._idle) - 1, -1, -1):
            where, left, free = self._idle[place]
            took = min(queued, left)
            queued -= took
            self._idle[place] = (where, left - took, max(free - took, 0.0))
            if where is not None:
                self._waited_s[where] -= took
                self._delayed_s[where] += min(took, free)
        if ran > 0:  # what came before its last turn is explained, or it slept
            del self._idle[:-1]
