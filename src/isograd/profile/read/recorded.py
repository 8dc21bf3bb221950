"""`profile.json`: what isograd's own recorder wrote beside the framework's trace.

docs/profile.md describes the fields. Everything in it is checked before use.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isograd.errors import ProfileError
from isograd.profile.model import (
    PHASES,
    Collectives,
    Compilation,
    Host,
    HostLine,
    Loader,
    Marks,
    MemoryPeak,
    MemoryShare,
    ModuleTime,
    Peaks,
    Phase,
    Profile,
    Queue,
    SourceOperator,
    Steps,
    no_collectives,
)
from isograd.profile.read.tables import load_json
from isograd.recording.format import structure_from_json

SCHEMA = "isograd/profile-record/1"
FILE = "profile.json"


def recorded(path: Path) -> Profile:
    """Read what the recorder wrote; raise ProfileError where it is of another kind or malformed."""
    content = load_json(path)
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise ProfileError(
            f"{path}: has the schema {schema!r}, and this isograd reads {SCHEMA!r}",
            "Record the run again with this version.",
        )
    try:
        return _profile(path, content)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ProfileError(
            f"{path}: it is damaged ({type(error).__name__}: {error})", "Record the run again."
        ) from error


def _profile(path: Path, content: dict[str, Any]) -> Profile:
    marks = _marks(content["steps"], content["intervals"])
    plain, notes = _with_phases(marks, [str(note) for note in content["notes"]])
    structure = content.get("structure")
    return Profile(
        source=str(path),
        framework=str(content["framework"]),
        device=str(content["device"]),
        steps=plain,
        modules=tuple(_module(entry) for entry in content["modules"]),
        memory_peak=_memory_peak(content.get("memory_peak")),
        peaks=_peaks(content.get("peaks")),
        queues=tuple(_queue(entry) for entry in content["queues"]),
        queue_waits={str(k): float(v) for k, v in content.get("queue_waits", {}).items()},
        collectives=_collectives(content.get("collectives") or {}),
        source_operators=tuple(_source(entry) for entry in content["source_operators"]),
        host=_host(content["host"]),
        loader=_loader(content.get("loader")),
        marks=marks,
        structure=None if structure is None else structure_from_json(structure),
        notes=tuple(notes),
    )


def _marks(columns: dict[str, Any], intervals: list[Any]) -> Marks:
    number = np.asarray(columns["number"], dtype=np.int64)
    phases = np.asarray(columns["phases_s"], dtype=np.float64).reshape(number.size, len(PHASES))
    delayed = columns.get("delayed_ns")
    steps = Steps(
        number,
        np.asarray(columns["start_ns"], dtype=np.int64).reshape(number.size),
        np.asarray(columns["end_ns"], dtype=np.int64).reshape(number.size),
        phases,
        None if delayed is None else np.asarray(delayed, dtype=np.int64).reshape(number.size),
    )
    window = tuple(str(name) for name in columns["window"])
    if len(window) != number.size:
        raise ValueError("the columns of its steps differ in length")
    return Marks(window, steps, np.asarray(intervals, dtype=np.int64).reshape(-1, 3))


def _with_phases(marks: Marks, notes: list[str]) -> tuple[Steps, list[str]]:
    """Plain steps; where their phases could not be timed, those of synchronised steps, scaled."""
    plain, synchronised = marks.take("plain"), marks.take("modules")
    passes = [PHASES.index(p) for p in (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE)]
    if not len(plain) or not len(synchronised) or not np.isnan(plain.phases_s[:, passes]).all():
        return plain, notes
    known = np.nanmedian(synchronised.phases_s[:, passes], axis=0)
    room = np.maximum(plain.seconds - np.nan_to_num(plain.phase(Phase.DATA)), 0.0)
    phases = plain.phases_s.copy()
    phases[:, passes] = np.outer(room, known / max(float(known.sum()), 1e-12))
    note = "Phases are those of steps in which every operator ran at once, scaled to plain steps."
    return replace(plain, phases_s=phases), [*notes, note]


def _module(entry: dict[str, Any]) -> ModuleTime:
    return ModuleTime(
        name=str(entry["name"]),
        kind=str(entry["kind"]),
        forward_s=_number(entry["forward_s"]),
        backward_s=_number(entry["backward_s"]),
        calls=int(entry["calls"]),
        output_shape=str(entry.get("output_shape", "")),
    )


def _memory_peak(entry: dict[str, Any] | None) -> MemoryPeak | None:
    if entry is None:
        return None
    module, phase = entry["at"]
    return MemoryPeak(
        peak_bytes=int(entry["peak_bytes"]),
        before_bytes=int(entry["before_bytes"]),
        device=str(entry["device"]),
        at=(_name(module), Phase(phase)),
        shares=tuple(
            MemoryShare(
                module=_name(share["module"]),
                phase=Phase(share["phase"]),
                operator=str(share["operator"]),
                size_bytes=int(share["size_bytes"]),
            )
            for share in entry["shares"]
        ),
        held={str(name): int(size) for name, size in entry["held"].items()},
    )


def _peaks(entry: dict[str, Any] | None) -> Peaks | None:
    if entry is None:
        return None
    flops, moved = float(entry["flops_per_s"]), float(entry["bytes_per_s"])
    if not min(flops, moved) > 0:
        return None
    return Peaks(flops, moved, str(entry["source"]), _number(entry.get("float64_flops_per_s")))


def _name(value: Any) -> str | None:
    return None if value is None else str(value)


def _queue(entry: dict[str, Any]) -> Queue:
    return Queue(
        number=int(entry["number"]),
        name=str(entry["name"]),
        capacity=int(entry["capacity"]),
        sizes=np.asarray(entry["sizes"], dtype=np.int64),
        workers=int(entry["workers"]),
        children=tuple(int(child) for child in entry["children"]),
        work_s=_number(entry.get("work_s")),
    )


def _collectives(columns: dict[str, Any]) -> Collectives:
    if not columns:
        return no_collectives()
    names = tuple(str(name) for name in columns["name"])
    integer = {
        key: np.asarray(columns[key], dtype=np.int64).reshape(len(names))
        for key in ("step", "start_ns", "duration_ns", "size_bytes", "ready_ns")
    }
    rank = np.asarray(columns["rank"], dtype=np.int32).reshape(len(names))
    return Collectives(rank=rank, name=names, **integer)


def _source(entry: dict[str, Any]) -> SourceOperator:
    return SourceOperator(
        name=str(entry["name"]),
        shapes=str(entry["shapes"]),
        dtypes=str(entry["dtypes"]),
        where=str(entry["where"]),
        module=str(entry["module"]),
        phase=Phase(entry["phase"]),
        count=int(entry["count"]),
        results=str(entry.get("results", "")),
        result_shapes=str(entry.get("result_shapes", "")),
    )


def _host(entry: dict[str, Any]) -> Host:
    return Host(
        lines=tuple(
            HostLine(
                where=str(line["where"]),
                function=str(line["function"]),
                phase=Phase(line["phase"]),
                is_main_thread=bool(line["is_main_thread"]),
                samples=int(line["samples"]),
                seconds=float(line["seconds"]),
                calls=tuple(str(name) for name in line.get("calls", ())),
                lock_s=_number(line.get("lock_s", 0.0)),
                waited_s=_number(line.get("waited_s", 0.0)),
                delayed_s=None if line.get("delayed_s") is None else float(line["delayed_s"]),
            )
            for line in entry["lines"]
        ),
        sampled_steps=int(entry["sampled_steps"]),
        pause_s=_number(entry["pause_s"]),
        pauses=int(entry["pauses"]),
        plain_step_s=_number(entry["plain_step_s"]),
        profiled_step_s=_number(entry["profiled_step_s"]),
        excluded={str(name): _number(value) for name, value in entry["excluded"].items()},
        cores=int(entry["cores"]),
        beside_s=_number(entry.get("beside_s", 0.0)),
        compilations=tuple(
            Compilation(str(c["where"]), str(c["function"]), int(c["count"]), float(c["seconds"]))
            for c in entry.get("compilations", ())
        ),
    )


def _loader(entry: dict[str, Any] | None) -> Loader | None:
    if entry is None:
        return None
    return Loader(
        workers=int(entry["workers"]),
        batch_size=int(entry["batch_size"]),
        prefetch=int(entry["prefetch"]),
        pin_memory=bool(entry["pin_memory"]),
        ready=np.asarray(entry["ready"], dtype=np.int64),
        sample_s=_number(entry["sample_s"]),
        cpu_share=_number(entry["cpu_share"]),
        collate_s=_number(entry["collate_s"]),
        lines=tuple((str(w), str(f), float(s)) for w, f, s in entry["lines"]),
    )


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
