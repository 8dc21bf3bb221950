"""The timeline of one step: its operators over time, by thread or stream."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isograd.profile.analyse.analysis import Analysis
from isograd.profile.analyse.operators import operator_rows
from isograd.report.document import Column, Medium, Section, Table

#: Operators of the timeline; the longest ones of the step.
MOST = 400


def timeline(analysis: Analysis) -> Iterator[Section]:
    """The step nearest to the median: when each of its longest operators begins and ends."""
    window = _median_step(analysis)
    spans = analysis.profile.spans
    if window is None or spans is None:
        return
    number, begin, end = window
    rows = operator_rows(spans)
    start = spans.start_ns[rows]
    rows = rows[(start >= begin) & (start < end)]
    longest = rows[np.argsort(-spans.duration_ns[rows], kind="stable")[:MOST]]
    shown = longest[np.argsort(spans.start_ns[longest], kind="stable")]
    columns = (
        Column("begins", "ms", is_number=True, format=".3f"),
        Column("takes", "ms", is_number=True, format=".3f", has_bar=True),
        Column("operator", is_code=True),
        Column("thread", is_code=True),
    )
    table = [
        (
            float(spans.start_ns[row] - begin) / 1e6,
            float(spans.duration_ns[row]) / 1e6,
            spans.texts[spans.name[row]],
            spans.tracks[spans.track[row]].name or spans.tracks[spans.track[row]].thread,
        )
        for row in shown
    ]
    if table:
        more = int(rows.size - shown.size)
        title = f"Timeline of step {number}"
        yield Table(title, columns, table, more=more, medium=Medium.PAGE, is_folded=True)


def _median_step(analysis: Analysis) -> tuple[int, int, int] | None:
    """Number, begin and end in ns of the trace, of the step that is nearest to the median."""
    marks = analysis.profile.marks
    steps = analysis.steps if marks is None else marks.take("profiled")
    base = 0 if marks is None else analysis.profile.base_ns
    if not len(steps):
        return None
    seconds = steps.seconds
    at = int(np.argmin(np.abs(seconds - np.median(seconds))))
    return int(steps.number[at]), int(steps.start_ns[at]) - base, int(steps.end_ns[at]) - base
