"""Files about operators: Ascend's, the GPU's and the CPU's tables, older and newer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isograd.errors import ProfileError
from isograd.profile.analyse.operators import module_of, type_of
from isograd.profile.model import Operator, Profile
from isograd.profile.read.tables import (
    cell_json,
    lines,
    load_json,
    nanoseconds_of,
    number,
    rows,
)
from isograd.profile.spans import Spans, Strings, Track

_ADVICE = "Give the file as the profiler wrote it."


def operators_by_type(path: Path) -> Profile:
    """`aicore_intermediate_R_type.csv`: milliseconds per step by type."""
    found = []
    for row in rows(path):
        name = row.get("op_type") or row.get("kernel_type") or ""
        spent = row.get("execution_time") or row.get("total_time") or ""
        calls = int(number(row, "execution_frequency", path, 1))
        seconds = _milliseconds(spent, path)
        found.append(Operator(name, "", "", calls, seconds, seconds, device=True))
    return _operators(path, found, "Ascend")


def operators_by_name(path: Path) -> Profile:
    """`aicore_intermediate_R_detail.csv`: milliseconds by full name, mean of the steps."""
    found = []
    for row in rows(path, "execution_time"):
        name = row.get("full_op_name") or row.get("full_kernel_name") or next(iter(row.values()))
        calls = int(number(row, "execution_frequency", path, 1))
        seconds = _milliseconds(row["execution_time"], path)
        module = module_of(name) or None
        found.append(
            Operator(type_of(name), "", "", calls, seconds, seconds, module=module, device=True)
        )
    return _operators(path, found, "Ascend")


def host_operators(path: Path) -> Profile:
    """`aicpu_intermediate_R.csv` and its text: operators that Ascend ran on its processor."""
    found = []
    for row in rows(path, "kernel_type", "total_time"):
        seconds = _milliseconds(row["total_time"], path)
        found.append(Operator(row["kernel_type"], "", "", 1, seconds, seconds, device=True))
    return _operators(path, found, "Ascend")


def host_operators_text(path: Path) -> Profile:
    """`output_data_preprocess_aicpu_R.txt`: the same in columns."""
    found = []
    for cells in _cells(path, 6):
        if cells[0].isdigit():
            seconds = _milliseconds(cells[2], path)
            found.append(Operator(cells[1], "", "", 1, seconds, seconds, device=True))
    return _operators(path, found, "Ascend")


def compute_times(path: Path) -> Profile:
    """`output_op_compute_time_R.txt`: full name, milliseconds, stream."""
    found = []
    for cells in _cells(path, 3):
        if "/" in cells[0]:
            seconds = _milliseconds(cells[1], path)
            module = module_of(cells[0]) or None
            found.append(
                Operator(type_of(cells[0]), "", "", 1, seconds, seconds, module=module, device=True)
            )
    return _operators(path, found, "Ascend")


def compute_times_by_type(path: Path) -> Profile:
    """`output_op_compute_time_detail_R.txt`: type, milliseconds and calls per step."""
    found = []
    for cells in _cells(path, 4):
        if re.fullmatch(r"[\d.]+", cells[1]):
            seconds, calls = _milliseconds(cells[1], path), int(float(cells[2]))
            found.append(Operator(cells[0], "", "", calls, seconds, seconds, device=True))
    return _operators(path, found, "Ascend")


def timeline_text(path: Path) -> Profile:
    """`output_timeline_data_R.txt`: name, stream, start and duration in milliseconds."""
    builder = _SpanBuilder()
    for line in lines(path):
        cells = [cell.strip() for cell in line.rsplit(",", 3)]
        if len(cells) == 4 and re.fullmatch(r"[\d.]+", cells[2]):
            start, duration = (nanoseconds_of(cell, path, 1_000_000) for cell in cells[2:])
            builder.add(type_of(cells[0]), cells[1], start, duration)
    return builder.profile(path, "Ascend")


def kernel_details(path: Path) -> Profile:
    """`kernel_details.csv` of MindSpore 2.x: one kernel per row, microseconds as decimals."""
    builder = _SpanBuilder()
    for row in rows(path, "Name", "Type", "Start Time(us)", "Duration(us)"):
        start = nanoseconds_of(row["Start Time(us)"], path)
        duration = nanoseconds_of(row["Duration(us)"], path)
        core = row.get("Accelerator Core", "")
        stream = "host" if core == "HOST" else row.get("Stream ID", "0")
        shapes = row.get("Input Shapes", "").strip('"')
        dtypes = row.get("Input Data Types", "")
        builder.add(row["Type"] or row["Name"], stream, start, duration, shapes, dtypes)
    return builder.profile(path, "Ascend")


def operator_details(path: Path) -> Profile:
    """`operator_details.csv`: host and device microseconds by name and shapes."""
    found = []
    for row in rows(path, "Name", "Input Shapes"):
        device = number(row, "Device Self Duration(us)", path, 0.0)
        host = number(row, "Host Self Duration(us)", path, 0.0)
        seconds = (device or host) / 1e6
        found.append(
            Operator(
                row["Name"],
                row["Input Shapes"].strip('"'),
                row.get("Input Type", ""),
                1,
                seconds,
                seconds,
                device=device > 0,
            )
        )
    return _operators(path, merge_operators(found), "Ascend")


def operator_statistics(path: Path) -> Profile:
    """`op_statistic.csv`: CANN's sums by type."""
    found = []
    for row in rows(path, "OP Type", "Count", "Total Time(us)"):
        seconds = number(row, "Total Time(us)", path, 0.0) / 1e6
        calls = int(number(row, "Count", path, 1))
        found.append(Operator(row["OP Type"], "", "", calls, seconds, seconds, device=True))
    return _operators(path, found, "Ascend")


def api_statistics(path: Path) -> Profile:
    """`api_statistic.csv`: host time by call of CANN's interfaces."""
    found = []
    for row in rows(path, "API Name", "Time(us)", "Count"):
        seconds = number(row, "Time(us)", path, 0.0) / 1e6
        calls = int(number(row, "Count", path, 1))
        found.append(Operator(row["API Name"], "", "", calls, seconds, seconds))
    return Profile(source=str(path), framework="mindspore", operators=tuple(found))


def cpu_operator_types(path: Path) -> Profile:
    """`cpu_op_type_info_0.csv`: milliseconds by type."""
    found = []
    for row in rows(path, "op_type", "type_occurrences", "total_compute_time"):
        seconds = number(row, "total_compute_time", path, 0.0) / 1e3
        calls = int(number(row, "type_occurrences", path, 1))
        found.append(Operator(row["op_type"], "", "", calls, seconds, seconds))
    return _operators(path, found, "CPU")


def cpu_operator_details(path: Path) -> Profile:
    """`cpu_op_detail_info_0.csv`: milliseconds by full name."""
    found = []
    for row in rows(path, "op_type", "full_op_name", "op_occurrences", "op_total_time(ms)"):
        seconds = number(row, "op_total_time(ms)", path, 0.0) / 1e3
        calls = int(number(row, "op_occurrences", path, 1))
        module = module_of(row["full_op_name"]) or None
        found.append(Operator(row["op_type"], "", "", calls, seconds, seconds, module=module))
    return _operators(path, found, "CPU")


def cpu_timestamps(path: Path) -> Profile:
    """`cpu_op_execute_timestamp_0.txt`: `name;type;start_ns,duration_ms,thread …`."""
    builder = _SpanBuilder()
    for line in lines(path):
        if not line.strip():
            continue
        name, _, rest = line.partition(";")
        for triple in rest.partition(";")[2].split():
            cells = triple.split(",")
            if len(cells) != 3 or not cells[0].isdigit():
                raise ProfileError(f"{path}: {triple[:40]!r} is not start,duration,thread", _ADVICE)
            duration = round(_milliseconds(cells[1], path) * 1e9)
            builder.add(type_of(name), cells[2], int(cells[0]), duration)
    return builder.profile(path, "CPU")


def dynamic_shapes(path: Path) -> Profile:
    """`dynamic_shape_info_0.json`: GPU operators with shapes, microseconds."""
    content = load_json(path)
    found = []
    try:
        for operators in content["operator"].values():
            for entry in operators:
                seconds, side = float(entry["dur"]) / 1e6, entry["op_side"] != "cpu"
                shapes = ", ".join(
                    str(s).strip("[]").replace(", ", "×") for s in entry["shape_info"]
                )
                name = str(entry["op_type"])
                found.append(Operator(name, shapes, "", 1, seconds, seconds, device=side))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProfileError(f"{path}: it lacks {error}", _ADVICE) from error
    return _operators(path, merge_operators(found), "GPU")


def framework_raw(path: Path) -> Profile:
    """`framework_raw_R.csv`: shapes and dtypes by full name; it has no times."""
    found = []
    for row in rows(path, "op_info"):
        facts = cell_json(row["op_info"], path)
        name = row.get("full_op_name") or row.get("full_kernel_name") or ""
        if isinstance(facts, dict) and name:
            inputs = [value for key, value in facts.items() if key.startswith("input")]
            shapes = ", ".join(_shape(value.get("shape")) for value in inputs)
            dtypes = ", ".join(_dtype(str(value.get("data_type", ""))) for value in inputs)
            module = module_of(name) or None
            found.append(Operator(type_of(name), shapes, dtypes, 0, 0.0, 0.0, module=module))
    return Profile(source=str(path), framework="mindspore", operators=tuple(found))


def merge_operators(operators: Iterable[Operator]) -> list[Operator]:
    """Operators of equal name, shapes, dtypes and module added up, worst first."""
    groups: defaultdict[tuple[Any, ...], list[Operator]] = defaultdict(list)
    for operator in operators:
        key = (operator.name, operator.shapes, operator.dtypes, operator.module, operator.device)
        groups[key].append(operator)
    merged = []
    for same in groups.values():
        times = np.asarray([operator.self_s for operator in same])
        mean = float(times.mean())
        merged.append(
            Operator(
                name=same[0].name,
                shapes=same[0].shapes,
                dtypes=same[0].dtypes,
                calls=sum(operator.calls for operator in same),
                self_s=float(times.sum()),
                total_s=sum(operator.total_s for operator in same),
                spread=float(times.std() / mean) if mean > 0 else 0.0,
                module=same[0].module,
                device=same[0].device,
            )
        )
    return sorted(merged, key=lambda operator: -operator.self_s)


def _operators(path: Path, found: list[Operator], device: str) -> Profile:
    if not found:
        raise ProfileError(f"{path}: it holds no operator", _ADVICE)
    ordered = tuple(sorted(found, key=lambda operator: -operator.self_s))
    return Profile(source=str(path), framework="mindspore", device=device, operators=ordered)


def _milliseconds(text: str, path: Path) -> float:
    return number({"time": text}, "time", path, 0.0) / 1e3


def _cells(path: Path, count: int) -> Iterator[list[str]]:
    for line in lines(path):
        cells = line.split()
        if len(cells) == count and not set(cells[0]) <= {"-", "="}:
            yield cells


def _shape(shape: object) -> str:
    if isinstance(shape, list):
        return "×".join(map(str, shape))
    return str(shape or "").replace(",", "×")


def _dtype(name: str) -> str:
    return name.removeprefix("NUMBER_TYPE_").lower()


class _SpanBuilder:
    """Collects intervals row by row."""

    def __init__(self) -> None:
        self._strings, self._tracks = Strings(), Strings()
        self._rows: list[tuple[int, int, int, int, int, int]] = []

    def add(
        self, name: str, stream: str, start: int, took: int, shapes: str = "", dtypes: str = ""
    ) -> None:
        """Add one interval; times in nanoseconds."""
        text = self._strings.number
        self._rows.append(
            (
                text(name),
                self._tracks.number(stream),
                start,
                max(took, 0),
                text(shapes) if shapes else -1,
                text(dtypes) if dtypes else -1,
            )
        )

    def profile(self, path: Path, device: str) -> Profile:
        """The intervals as a profile; raise ProfileError where there are none."""
        if not self._rows:
            raise ProfileError(f"{path}: it holds no interval", _ADVICE)
        kernel = self._strings.number("kernel" if device == "Ascend" else "cpu_op")
        table = np.asarray(self._rows, dtype=np.int64)
        table = table[np.lexsort((-table[:, 3], table[:, 2], table[:, 1]))]
        codes = [table[:, column].astype(np.int32) for column in (0, 1, 4, 5)]
        is_device = device == "Ascend"
        tracks = tuple(
            Track(device, name, name, is_device and name != "host") for name in self._tracks.texts()
        )
        spans = Spans(
            texts=self._strings.texts(),
            tracks=tracks,
            name=codes[0],
            category=np.full(len(table), kernel, dtype=np.int32),
            track=codes[1],
            start_ns=table[:, 2] - table[:, 2].min(),
            duration_ns=table[:, 3],
            shapes=codes[2],
            dtypes=codes[3],
        )
        return Profile(source=str(path), framework="mindspore", device=device, spans=spans)
