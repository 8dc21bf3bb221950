"""Files about memory: what the allocator held over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isograd.errors import ProfileError
from isograd.profile.model import Instants, Profile
from isograd.profile.read.tables import nanoseconds_of, number, rows

_MIB = 1 << 20


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
    change = np.diff(total, prepend=total[:1])
    memory = Instants(time - time[0], change, total)
    return Profile(source=str(path), framework="mindspore", memory=memory)


def operator_memory(path: Path) -> Profile:
    """`operator_memory.csv`: the largest allocation, as a note."""
    best, name = 0.0, ""
    for row in rows(path, "Name", "Size(KB)"):
        size = number(row, "Size(KB)", path, 0.0)
        if size > best:
            best, name = size, row["Name"]
    note = f"The largest allocation is {best / 1024:.1f} MiB, by {name} ({path.name})."
    return Profile(source=str(path), framework="mindspore", notes=(note,) if name else ())
