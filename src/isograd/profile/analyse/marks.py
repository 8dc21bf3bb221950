"""Steps and their phases from the marks in a trace."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from isograd.profile.analyse.nesting import merge, union_within
from isograd.profile.model import PHASES, Phase, Steps, no_steps
from isograd.profile.spans import Ints, Spans

_STEP = re.compile(r"(?:ProfilerStep#|isograd::step#|Step )(\d+)")
_DATA = ("enumerate(DataLoader)#", "isograd::data", "GetNext", "dataloader", "DataLoader.__next__")
_UPDATE = ("Optimizer.step#", "isograd::update")
_BACKWARD = ("autograd::engine::evaluate_function", "isograd::backward")


def of_one_process(spans: Spans) -> tuple[Spans, str]:
    """The spans of one training where a trace holds several (merged ranks), and a note.

    Processes whose host has steps of the same numbers train beside one another; streams of devices
    stay, because nothing says whose they are.
    """
    rows = np.flatnonzero(np.isin(spans.name, list(_numbers(spans))))
    stepping: dict[str, set[int]] = {}
    for row in rows:
        track = spans.tracks[spans.track[row]]
        if not track.is_device and not track.process.startswith("Scope"):
            stepping.setdefault(track.pid, set()).add(int(spans.name[row]))
    first = next(iter(sorted(stepping, key=lambda pid: (len(pid), pid))), "")
    others = {pid for pid in stepping if pid != first and stepping[pid] & stepping[first]}
    if not others:
        return spans, ""
    kept = np.asarray([track.is_device or track.pid not in others for track in spans.tracks])
    note = (
        f"The trace holds {len(others) + 1} processes that train beside one another; process "
        f"{first} is judged. Give the trace of each alone to see the others."
    )
    return spans.rows(kept[spans.track]), note


def _numbers(spans: Spans) -> dict[int, int]:
    """Numbers of steps by the number of the text that marks them."""
    return {n: int(m.group(1)) for n, t in enumerate(spans.texts) if (m := _STEP.match(t))}


def find_steps(spans: Spans) -> tuple[Steps, str]:
    """Steps of a trace, by marks, else between two updates; and how they were found, or why not."""
    numbers = _numbers(spans)
    rows = np.flatnonzero(np.isin(spans.name, list(numbers)))
    if rows.size:
        rows = rows[np.argsort(spans.start_ns[rows], kind="stable")]
        number = np.asarray([numbers[int(name)] for name in spans.name[rows]], dtype=np.int64)
        _, first = np.unique(number, return_index=True)  # a mark may stand on several tracks
        rows, number = rows[first], number[first]
        start = spans.start_ns[rows]
        end = start + spans.duration_ns[rows]
        is_outer = _outer(start, end)
        return _with_phases(spans, number[is_outer], start[is_outer], end[is_outer]), "marks"
    ends = _update_ends(spans)
    if ends.size >= 3:
        number = np.arange(ends.size - 1, dtype=np.int64)
        return _with_phases(spans, number, ends[:-1], ends[1:]), "updates"
    return no_steps(), ""


def _outer(start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
    """Which intervals lie within no other one: marks of a part of a step are no steps.

    Those without length are kept, for the report counts them.
    """
    order = np.lexsort((-end, start))
    reached = np.maximum.accumulate(end[order])
    found = np.ones(start.size, dtype=bool)
    found[order[1:]] = end[order[1:]] > reached[:-1]
    return found | (end <= start)


def _update_ends(spans: Spans) -> Ints:
    updates = _rows(spans, _UPDATE)
    return np.sort(spans.start_ns[updates] + spans.duration_ns[updates])


def _rows(spans: Spans, prefixes: tuple[str, ...]) -> Ints:
    names = [number for number, text in enumerate(spans.texts) if text.startswith(prefixes)]
    return np.flatnonzero(np.isin(spans.name, names))


def _with_phases(spans: Spans, number: Ints, start: Ints, end: Ints) -> Steps:
    phases = np.full((number.size, len(PHASES)), np.nan)
    known = np.zeros(number.size)
    for phase, prefixes in (
        (Phase.DATA, _DATA),
        (Phase.UPDATE, _UPDATE),
        (Phase.BACKWARD, _BACKWARD),
    ):
        rows = _rows(spans, prefixes)
        if rows.size:
            begin = spans.start_ns[rows]
            covered = union_within(begin, begin + spans.duration_ns[rows], start, end) / 1e9
            phases[:, PHASES.index(phase)] = covered
            known += covered
    if rows_of_forward := _forward(spans, start, end):
        phases[:, PHASES.index(Phase.FORWARD)] = rows_of_forward
    return Steps(number, start, end, phases)


def _forward(spans: Spans, start: Ints, end: Ints) -> list[float]:
    """From the end of the data's arrival to the first operator of the backward pass."""
    backward = _rows(spans, _BACKWARD)
    if not backward.size:
        return []
    begins = np.sort(spans.start_ns[backward])
    data = _rows(spans, _DATA)
    _, data_ends = merge(spans.start_ns[data], spans.start_ns[data] + spans.duration_ns[data])
    seconds = []
    for first, last in zip(start, end, strict=True):
        at = np.searchsorted(begins, first)
        stop = begins[at] if at < begins.size and begins[at] < last else last
        ready = data_ends[(data_ends > first) & (data_ends <= stop)]
        seconds.append(float(stop - (ready[-1] if ready.size else first)) / 1e9)
    return seconds
