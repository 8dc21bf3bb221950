"""Files about data pipelines: queues of MindSpore's dataset operators and of the device."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from isograd.errors import ProfileError
from isograd.profile.model import Profile, Queue
from isograd.profile.read.tables import cell_json, lines, load_json, number, rows

_INTEGERS = re.compile(r"-?\d+")


def pipeline_profiling(path: Path) -> Profile:
    """`pipeline_profiling_R.json`: one queue per operator, with its samples."""
    content = load_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("op_info"), list):
        raise ProfileError(f"{path}: it holds no list op_info", "Give the profiler's file.")
    try:
        queues = tuple(_queue(entry) for entry in content["op_info"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProfileError(
            f"{path}: an operator of op_info is not as MindSpore writes it ({error})",
            "Write the profile again.",
        ) from error
    return Profile(source=str(path), framework="mindspore", queues=queues)


def _queue(entry: dict[str, Any]) -> Queue:
    output = (entry.get("metrics") or {}).get("output_queue") or {}
    throughput = [float(value) for value in output.get("throughput") or ()]
    return Queue(
        number=int(entry["op_id"]),
        name=str(entry["op_type"]).removesuffix("Op"),
        capacity=int(output.get("length") or 0),
        sizes=np.asarray(output.get("size") or (), dtype=np.int64),
        workers=int(entry.get("num_workers") or 0),
        children=tuple(int(child) for child in entry.get("children") or ()),
        # MindSpore writes elements per microsecond.
        rate=float(np.mean(throughput)) * 1e6 if throughput else float("nan"),
    )


def minddata_pipeline(path: Path) -> Profile:
    """`minddata_pipeline_raw_R.csv`: the same as a table."""
    queues = []
    for row in rows(path, "op_id", "op_type", "num_workers"):
        sizes = cell_json(row.get("output_queue_size", ""), path) or []
        children = _INTEGERS.findall(row.get("children_id", ""))
        queues.append(
            Queue(
                number=int(number(row, "op_id", path, -1)),
                name=row["op_type"].removesuffix("Op"),
                capacity=int(number(row, "output_queue_length", path, 0)),
                sizes=np.asarray(sizes, dtype=np.int64),
                workers=int(number(row, "num_workers", path, 0)),
                children=tuple(map(int, children)),
            )
        )
    return Profile(source=str(path), framework="mindspore", queues=tuple(queues))


def minddata_summary(path: Path) -> Profile:
    """`minddata_pipeline_summary_R.csv` or `.json`: mean sizes and shares per operator."""
    if path.suffix == ".json":
        table = load_json(path)
        if not isinstance(table, dict):
            raise ProfileError(f"{path}: it holds no table", "Give the profiler's file.")
    else:
        table = _columns_of_summary(path)
    try:
        queues = tuple(_summary_queues(table))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ProfileError(
            f"{path}: its columns do not fit together ({error})", "Write the profile again."
        ) from error
    return Profile(source=str(path), framework="mindspore", queues=queues)


def _columns_of_summary(path: Path) -> dict[str, Any]:
    """MindSpore writes this table on its side: a row per quantity, a column per operator."""
    table: dict[str, Any] = {}
    for line in lines(path):
        name, *cells = line.split(",")
        table[name.strip()] = [cell.strip() for cell in cells]
    return table


def _summary_queues(table: dict[str, Any]) -> list[Queue]:
    names = table.get("op_names") or []
    shares = table.get("queue_utilization_pct") or []
    queues = []
    for index, name in enumerate(names):
        share = float(shares[index]) if index < len(shares) and shares[index] != "" else 0.0
        workers = table.get("num_workers") or []
        queues.append(
            Queue(
                number=int((table.get("op_ids") or range(len(names)))[index]),
                name=str(name).removesuffix("Op"),
                capacity=100,
                sizes=np.asarray([round(share)], dtype=np.int64),
                workers=int(float(workers[index] or 0)) if index < len(workers) else 0,
                children=(),
            )
        )
    return queues


def device_queue(path: Path) -> Profile:
    """`device_queue_profiling_R.txt`, `dataset_iterator_profiling_R.txt`: `kind sub step value`.

    Kind 0 is a time in milliseconds (0 get, 1 push, 2 total), kind 1 a queue (capacity, size).
    """
    times: defaultdict[str, list[float]] = defaultdict(list)
    sizes: list[int] = []
    capacity = 0
    for line in lines(path):
        cells = line.split()
        if not cells:
            continue
        try:
            kind, sub, value = int(cells[0]), int(cells[1]), float(cells[3])
        except (ValueError, IndexError) as error:
            raise ProfileError(
                f"{path}: {line[:40]!r} is not `kind sub step value`", "Give the profiler's file."
            ) from error
        if kind == 0 and sub in (0, 1, 2):
            times[("get", "push", "total")[sub]].append(value)
        elif kind == 1:
            capacity = sub
            sizes.append(int(value))
    name = "device queue" if path.name.startswith("device_queue") else "dataset iterator"
    queue = Queue(-1, name, capacity, np.asarray(sizes, dtype=np.int64), 1)
    waits = {f"{name} {key}": float(np.mean(found)) / 1e3 for key, found in times.items()}
    return Profile(source=str(path), framework="mindspore", queues=(queue,), queue_waits=waits)


def get_next(path: Path) -> Profile:
    """`minddata_aicpu_R.txt`, `minddata_getnext_profiling_R.txt`: `GetNext… start end size`."""
    waits, sizes = [], []
    for line in lines(path):
        cells = line.split()
        if len(cells) == 4 and cells[0].startswith("GetNext"):
            try:
                waits.append(float(cells[2]) - float(cells[1]))
                sizes.append(int(cells[3]))
            except ValueError as error:
                raise ProfileError(
                    f"{path}: {line[:40]!r} is not `GetNext start end size`",
                    "Give the profiler's file.",
                ) from error
    if not sizes:
        raise ProfileError(f"{path}: it holds no GetNext", "Give the profiler's file.")
    queue = Queue(-2, "get next", max(sizes), np.asarray(sizes, dtype=np.int64), 1)
    wait = {"get next": float(np.mean(waits)) / 1e6}
    return Profile(source=str(path), framework="mindspore", queues=(queue,), queue_waits=wait)


def dataset_statistics(path: Path) -> Profile:
    """`dataset.csv`: seconds per operation of the pipeline."""
    waits = {
        f"{row['Operation']} {row['Stage']}".strip(): number(row, "Avg. time (us)", path) / 1e6
        for row in rows(path, "Operation", "Stage", "Avg. time (us)")
    }
    return Profile(source=str(path), framework="mindspore", queue_waits=waits)


def cpu_utilization(path: Path) -> Profile:
    """`minddata_cpu_utilization_R.json`: mean share of all processors that was busy."""
    content = load_json(path)
    try:
        device = content["device_info"]
        idle = [float(value) for value in device["idle_utilization"]]
        cores = int(content["cpu_processor_num"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProfileError(f"{path}: it lacks {error}", "Give the profiler's file.") from error
    busy = 100.0 - float(np.mean(idle)) if idle else float("nan")
    note = f"{busy:.0f} % of {cores} processors were busy ({path.name})."
    return Profile(source=str(path), framework="mindspore", notes=(note,))
