"""Files about memory: what the allocator held over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isograd.errors import ProfileError
from isograd.profile.analyse.memory import Owner, peak_of
from isograd.profile.analyse.operators import module_of, type_of
from isograd.profile.model import Instants, Phase, Profile
from isograd.profile.read.tables import nanoseconds_of, number, rows

_MIB = 1 << 20
#: What stands where a time is not known.
_MISSING = ("", "N/A")


def memory_record(path: Path) -> Profile:
    """`memory_record.csv` (µs, MiB) and the CPU's `cpu_ms_memory_record_0.txt` (ns, bytes)."""
    times, totals = [], []
    for row in rows(path):
        if "Timestamp(us)" in row:
            if row.get("Component") not in (None, "", "MindSpore", "PTA", "WORKSPACE+MS", "MS"):
                continue
            times.append(nanoseconds_of(row["Timestamp(us)"], path))
            totals.append(round(number(row, "Total Allocated(MB)", path, 0.0) * _MIB))
        elif "Timestamp(ns)" in row:
            times.append(nanoseconds_of(row["Timestamp(ns)"], path, 1))
            totals.append(round(number(row, "Total Allocated(Byte)", path, 0.0)))
        else:
            raise ProfileError(f"{path}: line 1 has no Timestamp", "Give the profiler's file.")
    if not times:
        raise ProfileError(f"{path}: it holds no record", "Record with profile_memory=True.")
    order = np.argsort(np.asarray(times), kind="stable")
    time, total = np.asarray(times)[order], np.asarray(totals)[order]
    change = np.diff(total, prepend=total[:1])  # what was held before the first line is not known
    memory = Instants(time - time[0], change, total)
    return Profile(source=str(path), framework="mindspore", memory=memory, base_ns=int(time[0]))


def operator_memory(path: Path) -> Profile:
    """`operator_memory.csv`: blocks with the time of allocation and of release, by operator."""
    events: list[tuple[int, int, int]] = []
    owners: list[Owner] = []
    for block, row in enumerate(rows(path, "Name", "Size(KB)")):
        size = round(number(row, "Size(KB)", path, 0.0) * 1024)
        begin = row.get("Allocation Time(us)", "")
        owners.append(_owner(row["Name"]))
        if size > 0 and begin not in _MISSING:
            events.append((nanoseconds_of(begin, path), size, block))
            end = row.get("Release Time(us)", "")
            if end not in _MISSING:
                events.append((nanoseconds_of(end, path), -size, block))
    if not events:
        return Profile(source=str(path), framework="mindspore")
    # A block that is released when another one is allocated makes room for it.
    time, change, block = np.asarray(sorted(events), dtype=np.int64).T
    memory = Instants(time - time[0], change, np.cumsum(change), address=block)
    peak = peak_of(memory, [owners[number] for number in block])
    return Profile(source=str(path), framework="mindspore", memory_peak=peak)


def _owner(name: str) -> Owner:
    """By an operator's full name; graphs name gradients `Gradients/Default/…`."""
    is_gradient = name.startswith("Gradients/")
    phase = Phase.BACKWARD if is_gradient else Phase.FORWARD if "/" in name else Phase.OTHER
    return Owner(module_of(name.removeprefix("Gradients/")) or None, phase, type_of(name))
