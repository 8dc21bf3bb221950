"""Samples the Python stacks of all threads: at which of the user's lines time passes.

Python lets the sampling thread run when the interpreter's lock is free, so samples come
irregularly. Each one counts as the time since the one before, at most `LONGEST_S`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable

from isograd.profile.model import HostLine, Phase
from isograd.profile.record.places import calls_on_line, place_of, users_frame

INTERVAL_S = 0.001
LONGEST_S = 0.25
#: How soon the sampled thread must give the interpreter's lock away. Python's 5 ms are longer than
#: many calls that keep it (json.loads, tolist); their time would be found where it is next given
#: away by itself, at another line.
SWITCH_S = 0.0002
_Key = tuple[str, str, Phase, bool, tuple[str, int]]


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

    def start(self) -> None:
        """Begin; the caller's thread is the main one."""
        self._main = threading.get_ident()
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
                )
            )
        return tuple(found)

    def _run(self) -> None:
        own, before = threading.get_ident(), time.perf_counter()
        while not self._stop.wait(INTERVAL_S):
            now = time.perf_counter()
            weight, before = min(now - before, LONGEST_S), now
            phase = self._phase()
            if phase is None:
                continue
            for ident, frame in sys._current_frames().items():
                if ident == own:
                    continue
                user = users_frame(frame)
                if user is None:
                    continue
                code = user.f_code
                source = (code.co_filename, user.f_lineno)
                key = (place_of(user), code.co_name, phase, ident == self._main, source)
                self._count[key] += 1
                self._seconds[key] += weight
