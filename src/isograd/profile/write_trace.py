"""A trace as Chrome's format, repaired: times are exact, clocks begin at 0, intervals nest.

MindSpore and torch_npu write microseconds since 1970 as text with 19 digits, of which a viewer's
float64 keeps 16 (Ascend/pytorch#133: a fifth of the kernels is drawn in the wrong place). Here time
counts from the first event, so that every microsecond with its three decimals is exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from isograd.errors import UsageError
from isograd.profile.model import Profile
from isograd.profile.report import ProfileReport
from isograd.profile.spans import NONE, Spans


def trace_text(report: ProfileReport) -> str:
    """The intervals of a report's run as JSON; raise UsageError where it has none."""
    spans = report.analysis.profile.spans
    if spans is None:
        raise UsageError(
            f"{report.analysis.profile.source} holds no intervals, so no trace can be written",
            "Leave --trace out, or give a run that holds a trace.",
        )
    events = ",\n".join((*_names(spans), *_steps(report.analysis.profile), *_intervals(spans)))
    return '{"displayTimeUnit": "ms", "traceEvents": [\n' + events + "\n]}\n"


def _names(spans: Spans) -> Iterator[str]:
    processes = {track.process: number for number, track in enumerate(spans.tracks)}
    for name, number in processes.items():
        yield _metadata("process_name", number, 0, name)
    for number, track in enumerate(spans.tracks):
        name = track.name or f"thread {track.thread}"
        yield _metadata("thread_name", processes[track.process], number, name)


def _metadata(kind: str, pid: int, tid: int, name: str) -> str:
    event = {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
    return json.dumps(event)


def _steps(profile: Profile) -> Iterator[str]:
    """The recorder's marks of steps, as a process of their own."""
    marks = profile.marks
    if marks is None:
        return
    for row in marks.chosen("profiled"):
        begin = int(marks.steps.start_ns[row]) - profile.base_ns
        length = int(marks.steps.end_ns[row] - marks.steps.start_ns[row])
        name = f"ProfilerStep#{int(marks.steps.number[row])}"
        yield (
            f'{{"ph": "X", "cat": "user_annotation", "name": "{name}", "pid": "steps", '
            f'"tid": 0, "ts": {microseconds(begin)}, "dur": {microseconds(length)}}}'
        )


def _intervals(spans: Spans) -> Iterator[str]:
    processes = {track.process: number for number, track in enumerate(spans.tracks)}
    texts = [json.dumps(text) for text in spans.texts]
    pids = [processes[track.process] for track in spans.tracks]
    columns = zip(
        spans.name.tolist(),
        spans.category.tolist(),
        spans.track.tolist(),
        spans.start_ns.tolist(),
        spans.duration_ns.tolist(),
        spans.shapes.tolist(),
        strict=True,
    )
    for name, category, track, start, length, shapes in columns:
        arguments = "" if shapes == NONE else f', "args": {{"shapes": {texts[shapes]}}}'
        yield (
            f'{{"ph": "X", "cat": {texts[category]}, "name": {texts[name]}, "pid": {pids[track]}, '
            f'"tid": {track}, "ts": {microseconds(start)}, "dur": {microseconds(length)}'
            f"{arguments}}}"
        )


def microseconds(time_ns: int) -> str:
    """Nanoseconds as microseconds with three decimals, exact."""
    sign = "-" if time_ns < 0 else ""
    whole, rest = divmod(abs(time_ns), 1000)
    return f"{sign}{whole}.{rest:03d}"
