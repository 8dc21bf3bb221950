"""Which interval lies within which, and what each took itself: numpy over all intervals at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isograd.profile.spans import Codes, Ints, Spans

#: Deeper nesting is cut off: its intervals count as siblings at this depth.
DEEPEST = 400


def parents(track: Codes, start_ns: Ints, duration_ns: Ints) -> Ints:
    """The row of the interval that encloses each one on its track most closely, or -1.

    Rows are ordered by track, start, and longest first. Intervals that overlap without nesting
    (clocks that go back) are siblings. Shape (rows,).

    track: shape (rows,), int32.
    start_ns, duration_ns, returns: shape (rows,), int64.
    """
    found = np.full(start_ns.size, -1, dtype=np.int64)
    borders = np.flatnonzero(np.diff(track)) + 1
    for first, last in zip([0, *borders], [*borders, start_ns.size], strict=True):
        rows = slice(int(first), int(last))
        inner = _parents_of_track(start_ns[rows], start_ns[rows] + duration_ns[rows])
        found[rows] = np.where(inner >= 0, inner + first, -1)
    return found


def _parents_of_track(start: Ints, end: Ints) -> Ints:
    count = start.size
    found = np.full(count, -1, dtype=np.int64)
    if count < 2:
        return found
    depth = _depths(start, end)
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
    for level in range(1, len(bounds) - 1):
        outer = order[bounds[level - 1] : bounds[level]]
        inner = order[bounds[level] : bounds[level + 1]]
        if not outer.size or not inner.size:
            continue
        candidate = outer[np.maximum(np.searchsorted(outer, inner) - 1, 0)]
        is_within = (candidate < inner) & (end[inner] <= end[candidate])
        found[inner] = np.where(is_within, candidate, -1)
    return found


def _depths(start: Ints, end: Ints) -> npt.NDArray[np.int16]:
    """How many intervals of the track are open when each one starts."""
    has_length = end > start
    began: Ints = np.cumsum(has_length) - has_length
    ended = np.searchsorted(np.sort(end[has_length]), start, side="right")
    depth = np.clip(began - ended, 0, DEEPEST)
    return np.asarray(depth, dtype=np.int16)


def crossings(spans: Spans, rows: Ints) -> int:
    """How many of these intervals begin within an earlier one of their track and end after it."""
    found = 0
    track, start = spans.track[rows], spans.start_ns[rows]
    end = start + spans.duration_ns[rows]
    borders = np.flatnonzero(np.diff(track)) + 1
    for first, last in zip([0, *borders], [*borders, rows.size], strict=True):
        begins, ends = start[first:last], end[first:last]
        if begins.size > 1:
            reached = np.maximum.accumulate(ends)[:-1]
            found += int(((begins[1:] < reached) & (ends[1:] > reached)).sum())
    return found


def self_times(spans: Spans, parent: Ints) -> Ints:
    """Nanoseconds of each interval that no interval within it covers, at least 0. Shape (rows,).

    parent: shape (rows,), int64: the row that encloses each, or -1.
    returns: shape (rows,), int64.
    """
    inner = parent >= 0
    covered = np.bincount(
        parent[inner], weights=spans.duration_ns[inner], minlength=len(spans)
    ).astype(np.int64)
    return np.asarray(np.maximum(spans.duration_ns - covered[: len(spans)], 0), dtype=np.int64)


def union_ns(start: Ints, end: Ints) -> int:
    """Nanoseconds that at least one of these intervals covers.

    start, end: shape (intervals,), int64 ns.
    """
    if start.size == 0:
        return 0
    order = np.argsort(start, kind="stable")
    begins, reach = start[order], np.maximum.accumulate(end[order])
    gaps = np.maximum(begins[1:] - reach[:-1], 0)
    return int(reach[-1] - begins[0] - gaps.sum())


def union_within(start: Ints, end: Ints, begin: Ints, finish: Ints) -> Ints:
    """Nanoseconds that the intervals cover within each window, shape (windows,).

    start, end: shape (intervals,), int64 ns.
    begin, finish: shape (windows,), int64 ns.
    returns: shape (windows,), int64.
    """
    merged_start, merged_end = merge(start, end)
    return _covered_before(merged_start, merged_end, finish) - _covered_before(
        merged_start, merged_end, begin
    )


def merge(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The same cover as disjoint intervals in order.

    start, end: shape (intervals,), int64 ns.
    returns: begins and ends, both of shape (merged,), int64.
    """
    keep = end > start
    start, end = start[keep], end[keep]
    if start.size == 0:
        return start, end
    order = np.argsort(start, kind="stable")
    begins, reach = start[order], np.maximum.accumulate(end[order])
    is_first = np.concatenate([[True], begins[1:] > reach[:-1]])
    first = np.flatnonzero(is_first)
    last = np.concatenate([first[1:] - 1, [start.size - 1]])
    return begins[first], reach[last]


def _covered_before(start: Ints, end: Ints, at: Ints) -> Ints:
    """Nanoseconds of disjoint ordered intervals that lie before each time."""
    if start.size == 0:
        return np.zeros(at.size, dtype=np.int64)
    whole = np.concatenate([[0], np.cumsum(end - start)])
    index = np.searchsorted(start, at, side="right")
    previous = np.maximum(index - 1, 0)
    overhang = np.where(index > 0, np.maximum(end[previous] - at, 0), 0)
    return np.asarray(whole[index] - overhang, dtype=np.int64)
