"""`profile.json` of a recording: what read/recorded.py reads."""

from __future__ import annotations

import dataclasses
import math
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from isograd.files import write_text
from isograd.profile.model import Marks, Profile
from isograd.profile.read.recorded import FILE, SCHEMA
from isograd.recording.format import structure_to_json
from isograd.report.base import json_text


def write_record(folder: Path, profile: Profile, framework_version: str) -> None:
    """Write a recorded profile, atomically; raise UsageError where the folder is not writable."""
    assert profile.marks is not None
    structure = profile.structure
    content = {
        "schema": SCHEMA,
        "framework": profile.framework,
        "framework_version": framework_version,
        "device": profile.device,
        "steps": _steps(profile.marks),
        "intervals": profile.marks.intervals,
        "modules": profile.modules,
        "memory_peak": profile.memory_peak,
        "peaks": profile.peaks,
        "queues": profile.queues,
        "queue_waits": profile.queue_waits,
        "collectives": profile.collectives if len(profile.collectives) else None,
        "source_operators": profile.source_operators,
        "host": profile.host,
        "loader": profile.loader,
        "structure": None if structure is None else structure_to_json(structure),
        "notes": profile.notes,
    }
    write_text(folder / FILE, json_text(_plain(content)))


def _steps(marks: Marks) -> dict[str, Any]:
    steps = marks.steps
    return {
        "window": marks.window,
        "number": steps.number,
        "start_ns": steps.start_ns,
        "end_ns": steps.end_ns,
        "phases_s": steps.phases_s,
        "delayed_ns": steps.delayed_ns,
    }


def _plain(value: Any) -> Any:
    """Values of JSON: dataclasses and arrays as dictionaries and lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
