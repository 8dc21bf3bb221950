"""The tasks of recorded steps, from a profile's spans and marks.

What depends on what: tasks of one thread or stream follow one another; a kernel follows its launch
(by the trace's correlation numbers, else it is launched when it starts), and the kernel of another
stream after whose end it starts at once; a synchronisation follows all kernels; a batch of a
pipeline that works beside the training is made before it is taken, and not too far ahead; a message
follows the work that makes its data, and the host receives it before it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isograd.profile.analyse.breakdown import data_rows, waits
from isograd.profile.analyse.kinds import Kind, kind_of
from isograd.profile.analyse.nesting import merge, parents, union_ns
from isograd.profile.analyse.operators import covered, operator_rows
from isograd.profile.model import PHASES, Phase, Profile
from isograd.profile.spans import Ints, Spans
from isograd.profile.whatif.tasks import CHANNEL, MAIN, NOTHING, PIPELINE, Role, Step, Work, tasks

#: Spans of this many rows become tasks; of longer traces the last steps count.
MOST_ROWS = 60_000
#: A kernel that starts within this of another stream's end, after waiting, waited for it.
AT_ONCE_NS = 20_000
#: A thread that runs beside the main one for this share of its time does not hold it up.
BESIDE = 0.2
#: Kernels before it among which the one is looked for that a kernel waited for.
RECENT = 64
SYNCHRONISING = (
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize",
    "hipDeviceSynchronize", "hipStreamSynchronize", "aclrtSynchronize", "cuStreamSynchronize",
)  # fmt: skip
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Windows:
    """The steps whose spans become tasks. begin_ns, end_ns: (steps,); data: merged waits.

    phases: rows of phase, begin and end, shape (intervals, 3). All in ns of the trace.
    """

    begin_ns: Ints
    end_ns: Ints
    data: tuple[Ints, Ints]
    phases: Ints


def windows_of(profile: Profile, steps: tuple[Ints, Ints] | None) -> Windows | None:
    """The profiled steps of a recording, else the given ones, with their waits and phases.

    steps: begins and ends in ns, both of shape (steps,), int64.
    """
    nothing = np.zeros((0, 3), dtype=np.int64)
    if profile.marks is None:
        if steps is None or profile.spans is None:
            return None
        return Windows(*steps, data_rows(profile.spans), nothing)
    profiled = profile.marks.take("profiled")
    if not len(profiled):
        return None
    phases = profile.marks.intervals - [0, profile.base_ns, profile.base_ns]
    begin, end = profiled.start_ns - profile.base_ns, profiled.end_ns - profile.base_ns
    return Windows(begin, end, waits(profile), phases)


def build_steps(profile: Profile, windows: Windows, self_ns: Ints) -> tuple[Step, ...]:
    """Tasks of each window; of a long trace only the last windows.

    self_ns: of every span, shape (spans,), int64.
    """
    spans = profile.spans
    if spans is None or not windows.begin_ns.size:
        return ()
    host, kernels = _host_rows(spans, windows), _kernel_rows(spans)
    first = _first_window(spans, windows, np.concatenate([host, kernels]))
    messages, synchronisations = _messages(profile, windows), _synchronisations(spans)
    found = []
    for at in range(first, windows.begin_ns.size):
        begin, end = int(windows.begin_ns[at]), int(windows.end_ns[at])
        sent = messages[(messages[:, 0] >= begin) & (messages[:, 0] < end)]
        own, on_device = (_within(spans, rows, begin, end) for rows in (host, kernels))
        builder = _StepBuilder(spans, windows, self_ns, synchronisations)
        found.append(builder.build(begin, end, own, on_device, sent))
    return tuple(found)


def _within(spans: Spans, rows: Ints, begin: int, end: int) -> Ints:
    start = spans.start_ns[rows]
    return rows[(start >= begin) & (start < end)]


def _first_window(spans: Spans, windows: Windows, rows: Ints) -> int:
    """The first of the last windows that hold at most MOST_ROWS spans."""
    start = np.sort(spans.start_ns[rows])
    before = np.searchsorted(start, windows.begin_ns)
    is_few = start.size - before <= MOST_ROWS
    return int(np.argmax(is_few)) if is_few.any() else windows.begin_ns.size - 1


def _kernel_rows(spans: Spans) -> Ints:
    rows = operator_rows(spans)
    return np.asarray(rows[spans.is_on_device[rows]])


def _host_rows(spans: Spans, windows: Windows) -> Ints:
    """Operators of the main thread, of threads that work while it waits, and synchronisations."""
    rows = operator_rows(spans)
    rows = np.union1d(rows, _synchronisations(spans))
    rows = rows[~spans.is_on_device[rows]]
    rows = rows[~covered(spans.start_ns[rows], *windows.data)]
    rows = rows[spans.start_ns[rows] >= windows.begin_ns[0]]
    return np.sort(_one_after_the_other(spans, rows))


def _synchronisations(spans: Spans) -> Ints:
    """Calls in which the host waits for the device: by name, and by a kernel that ends in them."""
    names = [n for n, text in enumerate(spans.texts) if text.startswith(SYNCHRONISING)]
    by_name = np.flatnonzero(np.isin(spans.name, names))
    return np.union1d(by_name, spans.blocking().call)


def _one_after_the_other(spans: Spans, rows: Ints) -> Ints:
    by_track = [rows[spans.track[rows] == track] for track in np.unique(spans.track[rows])]

    def busy(chosen: Ints) -> int:
        start = spans.start_ns[chosen]
        return union_ns(start, start + spans.duration_ns[chosen])

    kept = np.zeros(0, dtype=np.int64)
    for own in sorted(by_track, key=busy, reverse=True):
        alone, both = busy(own), np.concatenate([kept, own])
        shared = busy(kept) + alone - busy(both)
        if not kept.size or shared <= BESIDE * alone:
            kept = both
    return kept


def _messages(profile: Profile, windows: Windows) -> Ints:
    """Ready, start and duration of the messages that the host's recorder timed, (messages, 3)."""
    found = profile.collectives
    known = found.ready_ns >= 0
    if not known.any() or profile.marks is None:
        return np.zeros((0, 3), dtype=np.int64)
    base = profile.base_ns
    columns = (found.ready_ns - base, found.start_ns - base, found.duration_ns)
    table = np.stack([column[known] for column in columns], axis=1)
    return np.asarray(table[np.argsort(table[:, 0], kind="stable")])


class _StepBuilder:
    """Puts the tasks of one step into the order of their recorded starts."""

    def __init__(
        self, spans: Spans, windows: Windows, self_ns: Ints, synchronisations: Ints
    ) -> None:
        self._spans, self._windows, self._self_ns = spans, windows, self_ns
        self._synchronisations = synchronisations
        # When it started, its role, lane, span, own time; then what else it waits for.
        self._entries: list[tuple[int, int, Role, int, int, int]] = []
        self._recent: list[tuple[int, int]] = []

    def build(self, begin: int, end: int, host: Ints, kernels: Ints, messages: Ints) -> Step:
        """The tasks of one step."""
        self._add_waits(begin, end)
        self._add_host(begin, end, host, messages)
        self._add_messages(messages)
        self._add_kernels(kernels)
        self._entries.sort(key=lambda entry: entry[:2])
        last_main, rows = NOTHING, []
        for place, (start, _, role, lane, row, own) in enumerate(self._entries):
            after = NOTHING if lane in (MAIN, PIPELINE) else last_main
            joined = self._joined(row) if lane > MAIN else NOTHING
            rows.append((role, lane, row, self._phase(start), own, after, joined))
            if lane == MAIN:
                last_main = place
            elif lane > MAIN:
                self._recent.append((row, place))
        return tasks(rows)

    def _add(self, start: int, role: Role, lane: int, row: int, own: int, rank: int = 1) -> None:
        self._entries.append((start, rank, role, lane, row, max(own, 0)))

    def _add_waits(self, begin: int, end: int) -> None:
        starts, ends = self._windows.data
        for start, stop in zip(starts.tolist(), ends.tolist(), strict=True):
            if begin <= start < end:
                self._add(start, Role.PRODUCE, PIPELINE, NOTHING, 0, rank=0)
                self._add(start, Role.TAKE, MAIN, NOTHING, min(stop, end) - start)

    def _add_host(self, begin: int, end: int, host: Ints, messages: Ints) -> None:
        spans = self._spans
        start, length = spans.start_ns[host], spans.duration_ns[host]
        own = self._self_ns[host].copy()
        is_sync = np.isin(host, self._synchronisations)
        parent = parents(spans.track[host], start, length)
        for at in np.flatnonzero(is_sync & (parent >= 0)).tolist():
            own[parent[at]] -= length[at]
        own[is_sync] = length[is_sync]
        # A synchronisation within an operator goes with it.
        rows = np.where(is_sync & (parent >= 0), host[parent], host)
        for at, row in enumerate(rows.tolist()):
            role = Role.SYNCHRONISE if is_sync[at] else Role.OPERATOR
            self._add(int(start[at]), role, MAIN, row, int(own[at]))
        waits = self._windows.data
        busy = merge(np.concatenate([start, waits[0]]), np.concatenate([start + length, waits[1]]))
        self._add_gaps(begin, end, busy, messages)

    def _add_gaps(self, begin: int, end: int, busy: tuple[Ints, Ints], messages: Ints) -> None:
        """Python between operators; where the last message ends in it, it waited for that."""
        received = int((messages[:, 1] + messages[:, 2]).max()) if len(messages) else NOTHING
        now = begin
        for start, stop in (*zip(*(b.tolist() for b in busy), strict=True), (end, end)):
            if stop <= begin:
                continue
            start = min(start, end)
            if now < received <= start:
                self._add(now, Role.RECEIVE, MAIN, NOTHING, 0)
                self._add(received, Role.HOST, MAIN, NOTHING, start - received)
            elif start > now:
                self._add(now, Role.HOST, MAIN, NOTHING, start - now)
            now = max(now, stop)
            if now >= end:
                break

    def _add_messages(self, messages: Ints) -> None:
        for ready, _, duration in messages.tolist():
            self._add(ready, Role.MESSAGE, CHANNEL, NOTHING, duration)

    def _add_kernels(self, kernels: Ints) -> None:
        """Kernels at their launch; synchronisations keep only what they take themselves."""
        spans = self._spans
        launched = spans.launch_ns(kernels)
        for row, at in zip(kernels.tolist(), launched.tolist(), strict=True):
            is_message = kind_of(spans.texts[spans.name[row]]) is Kind.COMMUNICATION
            role = Role.MESSAGE if is_message else Role.KERNEL
            lane = int(spans.track[row]) + 1
            self._add(int(at), role, lane, row, int(spans.duration_ns[row]), rank=0)
        if not kernels.size:
            return
        ends = np.sort(spans.start_ns[kernels] + spans.duration_ns[kernels])
        for place, entry in enumerate(self._entries):
            start, rank, role, lane, row, own = entry
            if role is Role.SYNCHRONISE:
                before = ends[ends <= start + own]
                waited = int(before[-1]) - start if before.size else 0
                self._entries[place] = (start, rank, role, lane, row, max(own - max(waited, 0), 0))

    def _joined(self, row: int) -> int:
        """The task of another stream at whose end this one started, after its stream had idled."""
        spans = self._spans
        start, track = int(spans.start_ns[row]), int(spans.track[row])
        best, best_end, is_own = NOTHING, start - AT_ONCE_NS, True
        for other, place in self._recent[-RECENT:]:
            end = int(spans.start_ns[other] + spans.duration_ns[other])
            if best_end < end <= start:
                best, best_end, is_own = place, end, int(spans.track[other]) == track
        return NOTHING if is_own else best

    def _phase(self, at: int) -> Phase:
        table = self._windows.phases
        inside = (table[:, 1] <= at) & (at < table[:, 2])
        found = table[inside]
        return PHASES[int(found[-1, 0])] if len(found) else Phase.OTHER


def total_ns(steps: Iterable[Step], *roles: Role) -> float:
    """Mean nanoseconds per step of the tasks with these roles on the main lane."""
    sums = [float(s.duration_ns[s.of(*roles) & (s.lane == MAIN)].sum()) for s in steps]
    return float(np.mean(sums)) if sums else 0.0


def work_of(steps: tuple[Step, ...], capacity: int) -> Work:
    """Steps whose pipeline works ahead by `capacity` batches; 0: the host makes its batches."""
    return Work(steps, capacity=max(capacity, 1))
