"""Makes small profiles for examples: a recording of ten plain and two profiled steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isograd.profile.model import (
    PHASES,
    Collectives,
    Compilation,
    Host,
    HostLine,
    Loader,
    Marks,
    Phase,
    Profile,
    SourceOperator,
    Steps,
)
from isograd.profile.spans import NONE, Launches, Spans, Strings, Track

PLAIN, PROFILED = 10, 2
MS = 1_000_000


@dataclass(frozen=True)
class Call:
    """An operator as a step calls it, `count` times for `ms` each, with `pause_ms` after each."""

    name: str
    ms: float
    shapes: str = "[[64, 64], [64, 64]]"
    dtypes: str = '["float", "float"]'
    count: int = 1
    pause_ms: float = 0.0


def recording(
    step_ms: float,
    calls: Sequence[Call] = (),
    *,
    data_ms: float = 0.0,
    update_ms: float = 0.0,
    communication_ms: float = 0.0,
    lines: Sequence[HostLine] = (),
    sources: Sequence[SourceOperator] = (),
    loader: Loader | None = None,
    pause_s: float = 0.0,
    framework: str = "torch",
    steps_ms: Sequence[float] | None = None,
    compilations: Sequence[Compilation] = (),
) -> Profile:
    """A recorded run; its operators follow one another after the wait for data."""
    lengths = list(steps_ms or [step_ms] * PLAIN) + [step_ms] * PROFILED
    ends = np.cumsum(np.asarray(lengths) * MS).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    phases = np.zeros((ends.size, len(PHASES)))
    phases[:, PHASES.index(Phase.DATA)] = data_ms / 1e3
    phases[:, PHASES.index(Phase.UPDATE)] = update_ms / 1e3
    phases[:, PHASES.index(Phase.COMMUNICATION)] = communication_ms / 1e3
    window = ("plain",) * (ends.size - PROFILED) + ("profiled",) * PROFILED
    steps = Steps(np.arange(ends.size, dtype=np.int64), starts, ends, phases)
    wait = round(data_ms * MS)
    update, place = round(update_ms * MS), PHASES.index(Phase.UPDATE)
    rows = [[PHASES.index(Phase.DATA), s, s + wait] for s in starts[-PROFILED:]]
    rows += [[place, e - update, e] for e in ends[-PROFILED:]]
    intervals = np.asarray(rows, dtype=np.int64)
    marks = Marks(window, steps, intervals)
    return Profile(
        source="example",
        framework=framework,
        device="CPU",
        spans=spans([int(s) + wait for s in starts[-PROFILED:]], calls),
        steps=marks.take("plain"),
        source_operators=tuple(sources),
        host=Host(
            lines=tuple(lines),
            sampled_steps=PROFILED,
            pause_s=pause_s,
            pauses=10 if pause_s else 0,
            plain_step_s=step_ms / 1e3,
            profiled_step_s=step_ms / 1e3,
            cores=2,
            compilations=tuple(compilations),
        ),
        marks=marks,
        loader=loader,
    )


def spans(begins: Sequence[int], calls: Sequence[Call], *, device: str = "") -> Spans:
    """Intervals of these calls, one after the other from each beginning on."""
    strings, rows = Strings(), []
    category = strings.number("kernel" if device else "cpu_op")
    for begin in begins:
        now = begin
        for call in calls:
            name, shapes, dtypes = map(strings.number, (call.name, call.shapes, call.dtypes))
            for _ in range(call.count):
                length = round(call.ms * MS)
                rows.append((name, now, length, shapes, dtypes))
                now += length + round(call.pause_ms * MS) + 1
    table = np.asarray(rows or np.zeros((0, 5)), dtype=np.int64)
    code = [table[:, column].astype(np.int32) for column in (0, 3, 4)]
    return Spans(
        texts=strings.texts(),
        tracks=(Track(device or "python", "1", device, bool(device)),),
        name=code[0],
        category=np.full(len(table), category, dtype=np.int32),
        track=np.zeros(len(table), dtype=np.int32),
        start_ns=table[:, 1],
        duration_ns=table[:, 2],
        shapes=code[1],
        dtypes=code[2],
    )


@dataclass(frozen=True)
class Launch:
    """An operator that the host calls for `host_ms`, and the kernel that it launches.

    kernel: its name and category, as CUPTI writes them.
    """

    name: str
    host_ms: float
    kernel_ms: float
    kernel: tuple[str, str] = ("void kernel<float>", "kernel")
    count: int = 1


def on_device(step_ms: float, launches: Sequence[Launch]) -> Profile:
    """A recorded run on one stream of a GPU; at a step's end the host waits for it."""
    found = recording(step_ms)
    assert found.marks is not None
    begins = found.marks.take("profiled").start_ns.tolist()
    return replace(found, device="GPU", spans=_launched(begins, launches))


def _launched(begins: Sequence[int], launches: Sequence[Launch]) -> Spans:
    strings = Strings()
    shapes, dtypes = (strings.number(text) for text in ("[[64, 64]]", '["float"]'))
    host: list[tuple[int, ...]] = []
    kernels: list[tuple[int, ...]] = []
    for begin in begins:
        now, free = begin, begin
        for one in launches:
            for _ in range(one.count):
                length, inner = round(one.host_ms * MS), round(one.host_ms * MS / 2)
                operator = map(strings.number, (one.name, "cpu_op"))
                host.append((*operator, 0, now, length, shapes, dtypes))
                call = map(strings.number, ("cudaLaunchKernel", "cuda_runtime"))
                host.append((*call, 0, now + inner // 2, inner, NONE, NONE))
                start, took = max(free, now + inner), round(one.kernel_ms * MS)
                kernel = map(strings.number, one.kernel)
                kernels.append((*kernel, 1, start, took, NONE, NONE))
                now, free = now + length + 1, start + took
        wait = map(strings.number, ("cudaDeviceSynchronize", "cuda_runtime"))
        host.append((*wait, 0, now, free - now, NONE, NONE))
    table = np.asarray(host + kernels, dtype=np.int64)
    codes = [table[:, column].astype(np.int32) for column in (0, 1, 2, 5, 6)]
    launch = strings.number("cudaLaunchKernel")
    calls = np.flatnonzero(table[:, 0] == launch)
    rows = len(host) + np.arange(len(kernels), dtype=np.int64)
    return Spans(
        texts=strings.texts(),
        tracks=(Track("python", "1"), Track("GPU 0", "7", "stream 7", True)),
        name=codes[0],
        category=codes[1],
        track=codes[2],
        start_ns=table[:, 3],
        duration_ns=table[:, 4],
        shapes=codes[3],
        dtypes=codes[4],
        launches=Launches(rows, calls, table[calls, 3] + table[calls, 4]),
    )


def line(where: str, samples: int, phase: Phase = Phase.OTHER, *calls: str) -> HostLine:
    """A line of the main thread at which samples found it; an interval is a millisecond."""
    return HostLine(where, "train", phase, True, samples, samples / 1e3, calls)


def messages(
    durations_ms: Sequence[Sequence[float]],
    size_bytes: Sequence[float] = (),
    ready_ms: Sequence[float] = (),
) -> Collectives:
    """Messages of ranks: durations of shape (ranks, messages), in milliseconds."""
    rows = [
        (rank, index, duration)
        for rank, row in enumerate(durations_ms)
        for index, duration in enumerate(row)
    ]
    order = [index for _, index, _ in rows]
    missing = [-1.0] * (max(order, default=0) + 1)
    sizes, ready = list(size_bytes) or missing, list(ready_ms) or missing
    ready_ns = np.asarray([ready[i] * MS if ready[i] >= 0 else -1 for i in order], dtype=np.int64)
    return Collectives(
        rank=np.asarray([rank for rank, _, _ in rows], dtype=np.int32),
        step=np.zeros(len(rows), dtype=np.int64),
        name=tuple(f"AllReduce-{index}" for index in order),
        start_ns=np.asarray(order, dtype=np.int64) * MS,
        duration_ns=np.asarray([d * MS for _, _, d in rows], dtype=np.int64),
        size_bytes=np.asarray([sizes[i] for i in order], dtype=np.int64),
        ready_ns=ready_ns,
    )
