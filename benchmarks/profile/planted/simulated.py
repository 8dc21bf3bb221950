"""Bottlenecks between ranks, as the files that profilers of clusters write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.profile.planted.cases import Case

#: Ascend's step traces count in ticks of 10 ns.
TICKS_PER_MS = 100_000
STEPS = 12


def step_traces(
    folder: Path, durations_ms: list[list[float]], *, compute_ms: float, update_ms: float = 1.0
) -> None:
    """One `step_trace_raw_R_detail_time.csv` per rank; its messages follow the backward pass."""
    for rank, durations in enumerate(durations_ms):
        names = [f"stream_9_{n}_AllReduce-op{n}" for n in range(len(durations))]
        columns = ["step_num", "start_point", "end_point", "total", "fp_point", "bp_point"]
        columns += ["iteration_interval", "fp_and_bp", "tail"]
        for name in names:
            columns += [name, f"{name}_start_point", f"{name}_end_point"]
        lines, now = [",".join(columns)], 1e6
        for step in range(1, STEPS + 1):
            wave = 1.0 + 0.01 * (step % 3)
            compute, sent = compute_ms * wave, [ms * wave for ms in durations]
            tail = sum(sent) + update_ms
            ticks = [now, now + (compute + tail) * TICKS_PER_MS, (compute + tail) * TICKS_PER_MS]
            ticks += [now, now + compute * TICKS_PER_MS, 0, compute * TICKS_PER_MS]
            ticks += [tail * TICKS_PER_MS]
            at = now + compute * TICKS_PER_MS
            for ms in sent:
                ticks += [ms * TICKS_PER_MS, at, at + ms * TICKS_PER_MS]
                at += ms * TICKS_PER_MS
            lines.append(",".join([str(step), *(str(round(tick)) for tick in ticks)]))
            now = ticks[1]
        file = folder / f"step_trace_raw_{rank}_detail_time.csv"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def device_trace(folder: Path, sent_ms: list[float], *, compute_ms: float) -> None:
    """A Chrome trace of torch on a GPU: kernels, then AllReduce kernels on their own stream."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "GPU 0"}},
    ]
    now = 0.0
    for step in range(STEPS):
        length = (compute_ms + sum(sent_ms)) * 1000
        mark = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1}
        events.append({**mark, "tid": 1, "ts": now, "dur": length})
        at = now
        for n in range(40):
            part = compute_ms * 1000 / 40
            kernel = {"ph": "X", "cat": "kernel", "name": f"ampere_sgemm_{n % 4}", "pid": 0}
            events.append({**kernel, "tid": 7, "ts": at, "dur": part * 0.98})
            at += part
        for ms in sent_ms:
            kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 20}
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            events.append({**kernel, "name": name, "ts": at, "dur": ms * 1000})
            at += ms * 1000
        now += length
    content = json.dumps({"traceEvents": events})
    (folder / "rank0.pt.trace.json").write_text(content, encoding="utf-8")


def _simulated(name: str, framework: str, code: str) -> Case:
    return Case(name, framework, "communication-bound", {}, (code,))


SIMULATED: tuple[tuple[Case, Callable[[Path], None]], ...] = (
    (
        _simulated("AllReduce in one segment", "mindspore", "communication.exposed"),
        lambda folder: step_traces(folder, [[60.0], [60.0]], compute_ms=40.0),
    ),
    (
        _simulated("each gradient alone", "mindspore", "communication.exposed"),
        lambda folder: step_traces(folder, [[0.5] * 160] * 2, compute_ms=40.0),
    ),
    (
        _simulated("one slow rank", "mindspore", "communication.slow_rank"),
        lambda folder: step_traces(
            folder, [[30.0] * 3, [30.0] * 3, [2.0] * 3, [30.0] * 3], compute_ms=40.0
        ),
    ),
    (
        _simulated("one slow rank of eight", "mindspore", "communication.slow_rank"),
        lambda folder: step_traces(
            folder,
            [[50.0, 50.0] if rank != 5 else [4.0, 4.0] for rank in range(8)],
            compute_ms=60.0,
        ),
    ),
    (
        _simulated("AllReduce in one segment", "torch", "communication.exposed"),
        lambda folder: device_trace(folder, [60.0], compute_ms=40.0),
    ),
)
