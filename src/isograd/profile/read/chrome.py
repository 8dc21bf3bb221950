"""Chrome traces (torch.profiler, MindSpore's trace_view.json, nsys and Perfetto exports).

Read as a stream of blocks into columns: about 60 bytes per event stay in memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isograd.errors import ProfileError
from isograd.profile.model import Instants
from isograd.profile.read.blocks import Blocks
from isograd.profile.read.events import EventDecoder, nanoseconds
from isograd.profile.spans import Codes, Ints, Launches, Spans, Strings, Track

Advance = Callable[[int, int], None]
_DEVICE_WORDS = ("ascend", "npu", "gpu", "cuda", "stream", "hccl", "ai core", "aicpu")
_EPOCH = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})')
_INTEGERS = ("start_ns", "duration_ns")
_CODES = ("name", "category", "track", "shapes", "dtypes")


@dataclass(frozen=True)
class ChromeTrace:
    """A trace as columns. base_ns: when it begins; since 1970 where the file says when that was."""

    spans: Spans
    memory: Instants | None
    base_ns: int
    notes: tuple[str, ...]
    thread_names: dict[tuple[str, str], str] = field(default_factory=dict)


def read_chrome(path: Path, advance: Advance | None = None) -> ChromeTrace:
    """Read a trace, also a truncated one (a note says so); raise ProfileError where it is none."""
    decoder = EventDecoder()
    blocks = Blocks(path, decoder)
    columns = _Columns()
    size = path.stat().st_size if path.exists() else 0
    for events in blocks:
        columns.add(events)
        if advance is not None:
            advance(min(blocks.bytes_read, size), size)
    notes = []
    if not blocks.is_complete:
        notes.append(
            f"{path.name} ends before its list of events does; the {columns.count} events "
            "before that were read."
        )
    if decoder.dropped:
        notes.append(f"{path.name}: {decoder.dropped} entries are no events and were left out.")
    columns.close_pairs(notes)
    if not columns.count:
        raise ProfileError(
            f"{path}: it holds no intervals", "Record again, with steps inside of the profiler."
        )
    trace = columns.finish(notes)
    if found := _EPOCH.search(blocks.head):
        trace = replace(trace, base_ns=trace.base_ns + int(found.group(1)))
    return trace


class _Columns:
    """Grows columns block by block."""

    def __init__(self) -> None:
        self.count = 0
        self._strings = Strings()
        self._tracks: dict[tuple[Any, Any], int] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._process_names: dict[str, str] = {}
        self._parts: defaultdict[str, list[npt.NDArray[Any]]] = defaultdict(list)
        self._memory: list[tuple[int, ...]] = []
        self._open: defaultdict[int, list[int]] = defaultdict(list)
        self._unmatched = 0
        self._pending: list[tuple[Any, int, int]] = []
        self._correlated: list[Ints] = []
        self._sequences: list[Ints] = []

    def add(self, events: list[Any]) -> None:
        """Add one block of decoded events."""
        whole = [event for event in events if event.ph == "X"]
        if len(whole) != len(events):
            self._add_others(events)
        if whole:
            starts = nanoseconds([event.ts for event in whole])
            durations = nanoseconds([event.dur for event in whole])
            self._append(whole, starts, np.maximum(durations, 0))

    def _append(self, events: Sequence[Any], starts: Ints, durations: Ints) -> None:
        number, parts = self._strings.numbers, self._parts
        add = number.setdefault
        parts["name"].append(_codes(add(str(e.name), len(number)) for e in events))
        parts["category"].append(_codes(add(str(e.cat), len(number)) for e in events))
        tracks = self._tracks
        parts["track"].append(
            _codes(tracks.setdefault((e.pid, e.tid), len(tracks)) for e in events)
        )
        parts["start_ns"].append(starts)
        parts["duration_ns"].append(durations)
        self._append_arguments(events)
        self.count += len(events)

    def _append_arguments(self, events: Sequence[Any]) -> None:
        number, parts = self._strings.numbers, self._parts
        add = number.setdefault
        arguments = [event.args for event in events]
        shapes = [b"" if a is None else bytes(a.shapes or a.input_0) for a in arguments]
        dtypes = [b"" if a is None else bytes(a.dtypes) for a in arguments]
        parts["shapes"].append(_codes(add(s.decode(), len(number)) if s else -1 for s in shapes))
        parts["dtypes"].append(_codes(add(s.decode(), len(number)) if s else -1 for s in dtypes))
        correlated = [
            (self.count + place, _integer(a.correlation))
            for place, a in enumerate(arguments)
            if a is not None and a.correlation != -1
        ]
        if correlated:
            self._correlated.append(np.asarray(correlated, dtype=np.int64))
        sequences = [
            (self.count + place, _integer(a.sequence))
            for place, a in enumerate(arguments)
            if a is not None and a.sequence != -1
        ]
        if sequences:
            self._sequences.append(np.asarray(sequences, dtype=np.int64))

    def _add_others(self, events: list[Any]) -> None:
        for event in events:
            if event.ph == "i" and event.name == "[memory]" and event.args is not None:
                self._memory.append(self._instant(event))
            elif event.ph == "M" and event.args is not None and event.args.name:
                process = str(event.pid)
                if event.name == "process_name":
                    self._process_names[process] = str(event.args.name)
                elif event.name == "thread_name":
                    self._names[(process, str(event.tid))] = str(event.args.name)
            elif event.ph in ("B", "E"):
                self._begin_or_end(event)

    def _instant(self, event: Any) -> tuple[int, ...]:
        given, tracks = event.args, self._tracks
        return (
            int(nanoseconds([event.ts])[0]),
            _integer(given.change_bytes, 0),
            _integer(given.total_bytes),
            _integer(given.address),
            tracks.setdefault((event.pid, event.tid), len(tracks)),
            _integer(given.device_number),
        )

    def _begin_or_end(self, event: Any) -> None:
        track = self._tracks.setdefault((event.pid, event.tid), len(self._tracks))
        now = int(nanoseconds([event.ts])[0])
        if event.ph == "B":
            self._open[track].append(len(self._pending))
            self._pending.append((event, now, -1))
        elif self._open[track]:
            at = self._open[track].pop()
            begin, start, _ = self._pending[at]
            self._pending[at] = (begin, start, max(now - start, 0))
        else:
            self._unmatched += 1

    def close_pairs(self, notes: list[str]) -> None:
        """Add the intervals whose beginning and end were separate events."""
        closed = [entry for entry in self._pending if entry[2] >= 0]
        unmatched = self._unmatched + len(self._pending) - len(closed)
        if unmatched:
            notes.append(f"{unmatched} begin or end events have no partner and were left out.")
        if closed:
            starts, durations = (np.asarray([e[i] for e in closed], np.int64) for i in (1, 2))
            self._append([entry[0] for entry in closed], starts, durations)

    def finish(self, notes: list[str]) -> ChromeTrace:
        """Join the columns, count time from the first event, and order by track and time."""
        joined = {name: np.concatenate(self._parts.pop(name)) for name in _CODES + _INTEGERS}
        base = int(joined["start_ns"].min())
        joined["start_ns"] -= base
        order = _order(joined, notes)
        if order is not None:
            for name in list(joined):
                joined[name] = joined[name][order]
        tracks = tuple(self._track(pid, tid) for pid, tid in self._tracks)
        spans = Spans(
            texts=self._strings.texts(),
            tracks=tracks,
            launches=_launches(self._correlated, order, joined, tracks),
            sequence=_numbered(self._sequences, order),
            **joined,
        )
        return ChromeTrace(spans, self._instants(base), base, tuple(notes), self._names)

    def _track(self, pid: Any, tid: Any) -> Track:
        process, thread = str(pid), str(tid)
        name = self._names.get((process, thread), "")
        process_name = self._process_names.get(process, "")
        label = f"{process_name} {name}".lower()
        is_device = any(word in label for word in _DEVICE_WORDS)
        return Track(process_name or process, thread, name, is_device, process)

    def _instants(self, base: int) -> Instants | None:
        if not self._memory:
            return None
        rows = np.asarray(self._memory, dtype=np.int64)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        rows[:, 0] -= base
        return Instants(*rows.T)


def _launches(
    correlated: list[Ints],
    order: Ints | None,
    columns: dict[str, npt.NDArray[Any]],
    tracks: tuple[Track, ...],
) -> Launches | None:
    """Kernels with the host's calls of the same correlation number."""
    numbered = _numbered(correlated, order)
    if numbered is None:
        return None
    rows, number = numbered
    is_device = np.asarray([track.is_device for track in tracks])[columns["track"][rows]]
    host, kernel = np.flatnonzero(~is_device), np.flatnonzero(is_device)
    host = host[np.argsort(number[host], kind="stable")]
    if not host.size or not kernel.size:
        return None
    at = np.minimum(np.searchsorted(number[host], number[kernel]), host.size - 1)
    known = (number[host[at]] == number[kernel]) & (number[kernel] >= 0)
    kernel, launch = kernel[known], rows[host[at[known]]]
    sequence = np.argsort(rows[kernel], kind="stable")
    ended = columns["start_ns"][launch] + columns["duration_ns"][launch]
    return Launches(rows[kernel][sequence], launch[sequence], ended[sequence].astype(np.int64))


def _numbered(found: list[Ints], order: Ints | None) -> tuple[Ints, Ints] | None:
    """Rows, as they lie after ordering, and the number that each was given."""
    if not found:
        return None
    table = np.concatenate(found)
    rows, number = table[:, 0], table[:, 1]
    if order is not None:
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        rows = place[rows]
    return rows, number


def _order(columns: dict[str, npt.NDArray[Any]], notes: list[str]) -> Ints | None:
    """The order by track, start, and longest first; None where the rows already are so."""
    track, start, duration = columns["track"], columns["start_ns"], columns["duration_ns"]
    order = np.argsort(track, kind="stable")
    same_track = np.diff(track[order]) == 0
    later = np.diff(start[order])
    tied = (later == 0) & (np.diff(duration[order]) > 0)
    if not (same_track & ((later < 0) | tied)).any():
        return np.asarray(order)
    return np.asarray(np.lexsort((-duration, start, track)))


def _codes(numbers: Iterator[int]) -> Codes:
    return np.fromiter(numbers, dtype=np.int32)


def _integer(value: Any, missing: int = -1) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return missing
    return number if -(2**63) <= number < 2**63 else missing
