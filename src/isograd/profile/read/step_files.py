"""Files about steps and ranks: step traces, cluster analyses, links, FLOPs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from isograd.errors import ProfileError
from isograd.profile.analyse.nesting import union_within
from isograd.profile.model import PHASES, Collectives, Link, Phase, Profile, RankTimes, Steps
from isograd.profile.read.tables import Row, cell_json, load_json, number, rows
from isograd.profile.spans import Floats, Ints

#: Ascend's step traces count in ticks of 10 ns, its GPU files in ns.
TICK_NS = 10
_RANK = re.compile(r"_(\d+)(?:_detail_time)?\.\w+$")
_MESSAGE = re.compile(r"^(stream_\w+?_\d+_[A-Za-z]\w*?-op\d+|stream_\w+?_parallel_\d+)$")


def rank_of(path: Path) -> int:
    """The rank that a file name ends with, 0 where it has none."""
    found = _RANK.search(path.name)
    return int(found.group(1)) if found else 0


def step_trace_raw(path: Path) -> Profile:
    """`step_trace_raw_R_detail_time.csv`: one row per step; the last row, the mean, is dropped."""
    table = list(rows(path, "step_num", "start_point", "end_point", "total"))
    table = [row for row in table if row["step_num"] not in ("", "0", "-")]
    if not table:
        raise ProfileError(f"{path}: it holds no step", "Record again, at least one whole step.")
    ticks = {
        name: np.asarray([number(row, name, path) for row in table], dtype=np.float64)
        for name in ("start_point", "end_point", "iteration_interval", "fp_and_bp", "tail")
    }
    start = ticks["start_point"].astype(np.int64) * TICK_NS
    # A step begins when the one before ended: the gap between is its wait for data.
    begin = start - (ticks["iteration_interval"] * TICK_NS).astype(np.int64)
    base = int(begin.min())
    messages = _messages(table, path, base)
    tail = ticks["tail"] * TICK_NS / 1e9
    end = ticks["end_point"].astype(np.int64) * TICK_NS - base
    exposed = _after(messages, end - (ticks["tail"] * TICK_NS).astype(np.int64), end)
    phases = np.full((len(table), len(PHASES)), np.nan)
    for phase, seconds in (
        (Phase.DATA, ticks["iteration_interval"] * TICK_NS / 1e9),
        (Phase.FORWARD, ticks["fp_and_bp"] * TICK_NS / 1e9),
        (Phase.UPDATE, tail - exposed),
        (Phase.COMMUNICATION, exposed),
    ):
        phases[:, PHASES.index(phase)] = seconds
    number_of = [int(number(row, "step_num", path, -1)) for row in table]
    steps = Steps(np.asarray(number_of, dtype=np.int64), begin - base, end, phases)
    note = "This file joins forward and backward: both stand as forward."
    return Profile(
        source=str(path),
        framework="mindspore",
        device="Ascend",
        steps=steps,
        collectives=messages,
        notes=(note,),
    )


def _after(messages: Collectives, begin: Ints, end: Ints) -> Floats:
    """Seconds of each tail in which a message is sent: that part of the tail is communication."""
    stop = messages.start_ns + messages.duration_ns
    return np.asarray(union_within(messages.start_ns, stop, begin, end) / 1e9)


def _messages(table: list[Row], path: Path, base: int) -> Collectives:
    rank = rank_of(path)
    found: list[tuple[int, str, int, int]] = []
    for row in table:
        step = int(number(row, "step_num", path, -1))
        for name in row:
            if not _MESSAGE.match(name):
                continue
            begin, end = (number(row, f"{name}_{end}_point", path) for end in ("start", "end"))
            if begin > 0 and end >= begin:
                found.append((step, name, int(begin) * TICK_NS - base, int(end) * TICK_NS - base))
    start = np.asarray([entry[2] for entry in found], dtype=np.int64)
    return Collectives(
        rank=np.full(len(found), rank, dtype=np.int32),
        step=np.asarray([entry[0] for entry in found], dtype=np.int64),
        name=tuple(entry[1] for entry in found),
        start_ns=start,
        duration_ns=np.asarray([entry[3] for entry in found], dtype=np.int64) - start,
        size_bytes=np.full(len(found), -1, dtype=np.int64),
        ready_ns=np.full(len(found), -1, dtype=np.int64),
    )


def step_trace_time(path: Path) -> Profile:
    """`step_trace_time.csv` of MindSpore 2.x: microseconds of each kind per step."""
    table = list(rows(path, "Step", "Computing", "Communication(Not Overlapped)", "Free"))
    if not table:
        raise ProfileError(f"{path}: it holds no step", "Record again, at least one whole step.")
    phases = np.full((len(table), len(PHASES)), np.nan)
    totals = np.zeros(len(table))
    for index, row in enumerate(table):
        computing, exposed, free = (
            number(row, name, path, 0.0) / 1e6
            for name in ("Computing", "Communication(Not Overlapped)", "Free")
        )
        preparing = number(row, "Preparing", path, 0.0) / 1e6
        phases[index, PHASES.index(Phase.FORWARD)] = computing
        phases[index, PHASES.index(Phase.COMMUNICATION)] = exposed
        phases[index, PHASES.index(Phase.DATA)] = min(preparing, free)
        phases[index, PHASES.index(Phase.OTHER)] = max(free - preparing, 0.0)
        totals[index] = computing + exposed + free
    ends = np.cumsum(totals * 1e9).astype(np.int64)
    numbers = [int(number(row, "Step", path, index)) for index, row in enumerate(table)]
    steps = Steps(
        number=np.asarray(numbers, dtype=np.int64),
        start_ns=np.concatenate([[0], ends[:-1]]).astype(np.int64),
        end_ns=ends,
        phases_s=phases,
    )
    note = "step_trace_time.csv has no phases: computing stands as forward, free time as other."
    return Profile(source=str(path), framework="mindspore", steps=steps, notes=(note,))


def cluster_analysis(path: Path) -> Profile:
    """`ascend_cluster_analyse_MODE_STAGES_SIZE_R.csv`: one row per step, milliseconds."""
    table = list(rows(path))
    if not table:
        raise ProfileError(f"{path}: it holds no step", "Give the profiler's file.")
    computing = _mean(table, ("computation_time", "computation"), path)
    alone = _mean(table, ("communication_alone_time",), path)
    if computing != computing:  # data parallel: ticks of 10 ns in other columns
        tick = TICK_NS / 1e6
        computing = _mean(table, ("fp_and_bp",), path) * tick
        alone = _mean(table, ("tail",), path) * tick
    stage = _mean(table, ("stage_time",), path)
    step = stage if stage == stage else computing + alone
    times = RankTimes(rank_of(path), step / 1e3, computing / 1e3, alone / 1e3)
    return Profile(source=str(path), framework="mindspore", device="Ascend", ranks=(times,))


def _mean(table: list[Row], columns: tuple[str, ...], path: Path) -> float:
    name = next((name for name in columns if name in table[0]), None)
    if name is None:
        return float("nan")
    return float(np.mean([number(row, name, path) for row in table]))


def hccl_raw(path: Path) -> Profile:
    """`hccl_raw_R.csv`: cost and wait in ms of each step, and [ms, KB, KB/s] of each link."""
    rank, links, waits, costs = rank_of(path), [], [], []
    for row in rows(path, "step_num", "communication_cost", "wait_cost", "link_info"):
        if row["step_num"] in ("", "-"):  # the mean of all steps
            continue
        costs.append(number(row, "communication_cost", path))
        waits.append(number(row, "wait_cost", path))
        links.extend(_links(cell_json(row["link_info"], path), path))
    if not costs:
        raise ProfileError(f"{path}: it holds no step", "Give the profiler's file.")
    times = RankTimes(
        rank, float("nan"), float("nan"), float(np.mean(costs)) / 1e3, float(np.mean(waits)) / 1e3
    )
    return Profile(
        source=str(path), framework="mindspore", ranks=(times,), links=merge_links(links)
    )


def _links(content: Any, path: Path) -> list[Link]:
    found = []
    try:
        for name, kinds in (content or {}).items():
            source, _, target = name.partition("-")
            for kind, (time_ms, size_kb, *_) in kinds.items():
                found.append(Link(int(source), int(target), kind, time_ms / 1e3, size_kb * 1e3))
    except (AttributeError, TypeError, ValueError) as error:
        raise ProfileError(
            f"{path}: link_info is not {{link: {{kind: [ms, KB, KB/s]}}}}", "Write it again."
        ) from error
    return found


def merge_links(links: list[Link]) -> tuple[Link, ...]:
    """Traffic of the same link and kind added up."""
    sums: dict[tuple[int, int, str], tuple[float, float]] = {}
    for link in links:
        key = (link.source, link.target, link.kind)
        seconds, size = sums.get(key, (0.0, 0.0))
        sums[key] = (seconds + link.seconds, size + link.size_bytes)
    return tuple(Link(*key, *total) for key, total in sorted(sums.items()))


def communication_matrix(path: Path) -> Profile:
    """`communication_matrix.json`: {step: {group: {operator: {"0-1": {…}}}}}; link traffic."""
    links: list[Link] = []
    _walk(load_json(path), links)
    if not links:
        raise ProfileError(f"{path}: it names no link", "Give the profiler's file.")
    return Profile(source=str(path), framework="mindspore", links=merge_links(links))


_LINK = re.compile(r"^(\d+)-(\d+)$")


def _walk(content: Any, links: list[Link], depth: int = 0) -> None:
    if not isinstance(content, dict) or depth > 8:
        return
    for name, inner in content.items():
        found = _LINK.match(name)
        if found is None or not isinstance(inner, dict):
            _walk(inner, links, depth + 1)
            continue
        time_ms, size_mb = inner.get("Transit Time(ms)"), inner.get("Transit Size(MB)")
        if isinstance(time_ms, (int, float)) and isinstance(size_mb, (int, float)):
            kind = str(inner.get("Transport Type", ""))
            links.append(Link(int(found[1]), int(found[2]), kind, time_ms / 1e3, size_mb * 1e6))


def communication(path: Path) -> Profile:
    """`communication.json`: {step: {group: {operator: {"Communication Time Info": {…}}}}}."""
    names: list[str] = []
    starts, durations, steps = [], [], []
    content = load_json(path)
    if not isinstance(content, dict):
        raise ProfileError(f"{path}: it holds no steps", "Give the profiler's file.")
    for step, groups in content.items():
        digits = re.sub(r"\D", "", step) or "-1"
        for operators in groups.values() if isinstance(groups, dict) else ():
            for name, facts in operators.items() if isinstance(operators, dict) else ():
                times = facts.get("Communication Time Info") if isinstance(facts, dict) else None
                if not isinstance(times, dict) or "Total Op Info" in name:
                    continue
                names.append(name)
                steps.append(int(digits))
                starts.append(round(float(times.get("Start Timestamp(us)", 0)) * 1000))
                durations.append(round(float(times.get("Elapse Time(ms)", 0)) * 1e6))
    start = np.asarray(starts, dtype=np.int64)
    missing = np.full(len(names), -1, dtype=np.int64)
    found = Collectives(
        rank=np.zeros(len(names), dtype=np.int32),
        step=np.asarray(steps, dtype=np.int64),
        name=tuple(names),
        start_ns=start - (start.min() if names else 0),
        duration_ns=np.asarray(durations, dtype=np.int64),
        size_bytes=missing,
        ready_ns=missing,
    )
    return Profile(source=str(path), framework="mindspore", collectives=found)


def flops_summary(path: Path) -> Profile:
    """`flops_summary_R.json`: millions of operations per step, 10^9 per second."""
    content = load_json(path)
    try:
        flops, rate = float(content["FLOPs"]) * 1e6, float(content["FLOPS"]) * 1e9
    except (KeyError, TypeError, ValueError) as error:
        raise ProfileError(f"{path}: it lacks {error}", "Give the profiler's file.") from error
    nan = float("nan")
    times = RankTimes(rank_of(path), nan, nan, nan, flops=rate)
    return Profile(source=str(path), framework="mindspore", ranks=(times,), flops=flops)
