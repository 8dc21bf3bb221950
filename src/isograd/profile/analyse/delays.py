"""Takes out of the profiled steps the time in which other processes had the processor.

How long that was, the system has counted for each step; where in the step, nobody has. A thread
waits where it wants a processor back, as for Python's lock between two operators, so that the wait
falls into one place and not evenly. What stands between the same two events (begins and ends of
operators) takes about as long each time: the wait lies where it takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from isograd.profile.analyse.operators import numbered, operator_rows
from isograd.profile.model import Profile, Steps
from isograd.profile.spans import Floats, Ints, Spans

#: What takes usually as long as the median; where others had the processor most of the time, the
#: median is too long for the delay that was counted, and a shorter time is the usual one.
USUAL = (0.5, 0.25, 0.0)


def without_delays(profile: Profile) -> Profile:
    """The profile with the profiled steps as they are where nothing else wants the processor.

    Only of a torch training on a CPU: elsewhere more than the thread whose waits are counted works.
    """
    marks, spans = profile.marks, profile.spans
    if marks is None or spans is None or (profile.framework, profile.device) != ("torch", "CPU"):
        return profile
    steps = marks.steps
    is_profiled = np.asarray([window == "profiled" for window in marks.window], dtype=bool)
    if steps.delayed_ns is None or not steps.delayed_ns[is_profiled].any():
        return profile
    host = profile.host
    if host is not None:
        late = steps.rows(is_profiled)
        share = 1.0 - float(np.median(late.seconds / np.maximum(late.clock_s, 1e-12)))
        lines = (
            replace(line, delayed_s=line.seconds * share if line.is_main_thread else 0.0)
            if line.delayed_s is None
            else line
            for line in host.lines
        )
        host = replace(host, lines=tuple(lines))
    before, after = _times(spans, steps.rows(is_profiled), profile.base_ns)
    start = _moved(spans.start_ns, before, after)
    end = _moved(spans.start_ns + spans.duration_ns, before, after)
    intervals = marks.intervals.copy()
    for column in (1, 2):
        found = _moved(intervals[:, column] - profile.base_ns, before, after)
        intervals[:, column] = found + profile.base_ns
    own = np.where(is_profiled, steps.delayed_ns, 0)
    steps = replace(steps, end_ns=steps.end_ns - own, delayed_ns=steps.delayed_ns - own)
    return replace(
        profile,
        host=host,
        marks=replace(marks, steps=steps, intervals=intervals),
        spans=replace(spans, start_ns=start, duration_ns=end - start),
    )


def _moved(times: Ints, before: Floats, after: Floats) -> Ints:
    """Times of the clock as times without delays; between two steps they stay.

    times: ns, of any shape. before, after: shape (events,).
    """
    if not before.size:
        return times
    found = np.rint(np.interp(times, before, after)).astype(np.int64)
    is_outside = (times < before[0]) | (times > before[-1])
    return np.where(is_outside, times, found)


def _times(spans: Spans, steps: Steps, base_ns: int) -> tuple[Floats, Floats]:
    """Times of events on the clock, and without delays, in rising order, both (events,)."""
    rows = operator_rows(spans)
    track = spans.track[rows]
    if rows.size:  # the training's thread
        taken = np.bincount(track, weights=spans.duration_ns[rows])
        rows = rows[track == int(np.argmax(taken))]
    begin, end = steps.start_ns - base_ns, steps.end_ns - base_ns
    events = [_events(spans, rows, int(b), int(e)) for b, e in zip(begin, end, strict=True)]
    length = [np.diff(time) for time, _ in events]
    usual = [_usual([name for _, name in events], length, part) for part in USUAL]
    assert steps.delayed_ns is not None
    before, after = [], []
    at = 0
    for (time, _), long, delayed in zip(events, length, steps.delayed_ns, strict=True):
        places = slice(at, at + long.size)
        at += long.size
        for one in usual:
            excess = np.maximum(long - one[places], 0.0)
            if excess.sum() >= delayed:
                break
        shorter = long - excess * min(1.0, float(delayed) / max(float(excess.sum()), 1.0))
        # What is left of the delay stands in all places alike.
        wanted = max(float(long.sum()) - float(delayed), 1.0)
        shorter *= min(1.0, wanted / max(float(shorter.sum()), 1.0))
        before.append(time.astype(np.float64))
        after.append(time[0] + np.concatenate([[0.0], np.cumsum(shorter)]))
        before.append(time[-1:] + 1.0)  # what follows the step stays where it is
        after.append(time[-1:] + 1.0)
    return np.concatenate(before), np.concatenate(after)


def _events(spans: Spans, rows: Ints, begin: int, end: int) -> tuple[Ints, Ints]:
    """Begins and ends of operators in a step, with its own: time and kind, both (events,)."""
    start = spans.start_ns[rows]
    here = rows[(start >= begin) & (start < end)]
    kind = (spans.name[here].astype(np.int64) + 1) * (len(spans.texts) + 1) + spans.shapes[here] + 1
    stop = np.minimum(spans.start_ns[here] + spans.duration_ns[here], end)
    time = np.concatenate([[begin], spans.start_ns[here], stop, [end]])
    name = np.concatenate([[0], 2 * kind, 2 * kind + 1, [1]])
    order = np.lexsort((-(name % 2), time))
    order = np.concatenate([[0], order[(order > 0) & (order < time.size - 1)], [time.size - 1]])
    return time[order].astype(np.int64), name[order].astype(np.int64)


def _usual(events: Sequence[Ints], lengths: Sequence[Ints], part: float) -> Floats:
    """How long it takes from an event to the next of these kinds, for each place of all steps.

    events: kinds of each step's events, of shape (events,). lengths: ns, one entry fewer. part: of
    all the times, the share that is shorter.
    returns: shape (places of all steps,), float64.
    """
    first, number = numbered(np.concatenate(events))
    ends = np.cumsum([len(one) for one in events])[:-1]
    pairs = [part[:-1] * np.int64(first.size) + part[1:] for part in np.split(number, ends)]
    _, group = numbered(np.concatenate(pairs))
    length = np.concatenate(lengths)
    order = np.lexsort((length, group))
    count = np.bincount(group)
    begin = np.concatenate([[0], np.cumsum(count)[:-1]])
    usual = length[order[begin + ((count - 1) * part).astype(np.int64)]]
    return np.asarray(usual[group], dtype=np.float64)
