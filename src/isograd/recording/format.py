"""What a recording consists of, as values; docs/recording-format.md describes the folder.

manifest.json        what was recorded, on what, and what was changed to observe it
structure.json       the network: modules, parameters, buffers
steps/000000/        one complete step
    step.json        calls, values, and where each value occurs
    statistics.safetensors
    tensors-000.safetensors, …
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isograd.errors import RecordingError
from isograd.frameworks.base import CallInfo, ModuleInfo, ParameterInfo, Structure

SCHEMA = "isograd/recording/1"
MANIFEST = "manifest.json"
STRUCTURE = "structure.json"
STEPS = "steps"
STEP = "step.json"
STATISTICS = "statistics.safetensors"
MAX_JSON_BYTES = 256 * 1024 * 1024

#: What a named value of a step is; `before` is there only where the step before was not recorded.
ROLES = ("before", "gradient", "after", "loss")


@dataclass(frozen=True)
class Manifest:
    """What was recorded and how.

    tensors: `statistics` or `full`.
    status: `open` while recording (or after a crash), then `complete` or `failed`.
    seeds: by library; changed: what was done to the network in order to observe it.
    silent: modules that were watched and never called.
    """

    framework: str
    framework_version: str
    isograd_version: str
    python_version: str
    numpy_version: str
    device: str
    machine: str
    tensors: str
    kernel: str
    created: str
    seeds: dict[str, int] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    modules: tuple[str, ...] | None = None
    silent: tuple[str, ...] = ()
    status: str = "open"
    reason: str = ""
    schema: str = SCHEMA


@dataclass(frozen=True)
class Slot:
    """A tensor's place among a call's inputs or outputs: its path and the number of its value."""

    name: str
    value: int


@dataclass(frozen=True)
class Call:
    """One call of a module or of an operation between modules, in the order of the calls' starts.

    kind: `module` or `operation`; name: as in `named_modules`, or of the operation.
    parent: index of the enclosing module's call, or None.
    """

    kind: str
    name: str
    occurrence: int
    parent: int | None
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]


@dataclass(frozen=True)
class ValueInfo:
    """One tensor of a step; it may occur in several places.

    file: of its elements, or None where only statistics were recorded.
    missing: why neither was recorded, or an empty text.
    """

    dtype: str
    shape: tuple[int, ...]
    file: str | None = None
    missing: str = ""


@dataclass(frozen=True)
class StepInfo:
    """The tables of one step.

    gradients: pairs of a value and the gradient of the loss with respect to it, in the order in
    which the backward pass reached them.
    named: by role (see `ROLES`) and name, the value of each parameter and buffer.
    files: sizes in bytes of the step's tensor files.
    """

    number: int
    loss: float | None
    elapsed_s: float
    calls: tuple[Call, ...]
    values: tuple[ValueInfo, ...]
    gradients: tuple[tuple[int, int], ...]
    named: dict[str, dict[str, int]]
    files: dict[str, int]


def step_to_json(step: StepInfo) -> dict[str, Any]:
    """Turn a step into plain data: rows instead of objects, for size."""
    return {
        "schema": SCHEMA,
        "number": step.number,
        "loss": None if step.loss is None else repr(step.loss),
        "elapsed_s": step.elapsed_s,
        "calls": [
            [
                call.kind,
                call.name,
                call.occurrence,
                call.parent,
                [[slot.name, slot.value] for slot in call.inputs],
                [[slot.name, slot.value] for slot in call.outputs],
            ]
            for call in step.calls
        ],
        "values": [[v.dtype, v.shape, v.file, v.missing] for v in step.values],
        "gradients": step.gradients,
        "named": step.named,
        "files": step.files,
    }


def step_from_json(data: Any) -> StepInfo:
    """Rebuild a step; raises ValueError, TypeError or KeyError where it is malformed."""
    values = tuple(
        ValueInfo(d, _naturals(shape), file, why) for d, shape, file, why in data["values"]
    )
    count = len(values)
    calls = tuple(
        Call(
            str(kind),
            str(name),
            int(occurrence),
            None if parent is None else _below(parent, position),
            _slots(inputs, count),
            _slots(outputs, count),
        )
        for position, (kind, name, occurrence, parent, inputs, outputs) in enumerate(data["calls"])
    )
    return StepInfo(
        number=_below(data["number"], 1 << 62),
        loss=None if data["loss"] is None else float(data["loss"]),
        elapsed_s=float(data["elapsed_s"]),
        calls=calls,
        values=values,
        gradients=tuple((_below(a, count), _below(b, count)) for a, b in data["gradients"]),
        named={
            str(role): {str(name): _below(value, count) for name, value in names.items()}
            for role, names in data["named"].items()
        },
        files={str(name): _below(size, 1 << 62) for name, size in data["files"].items()},
    )


def structure_to_json(structure: Structure) -> dict[str, Any]:
    """Turn a structure into plain data."""
    return {"schema": SCHEMA, **dataclasses.asdict(structure)}


def structure_from_json(data: Any) -> Structure:
    """Rebuild a structure; raises ValueError, TypeError or KeyError where it is malformed."""
    return Structure(
        framework=str(data["framework"]),
        modules=tuple(ModuleInfo(**fields) for fields in data["modules"]),
        parameters=tuple(
            ParameterInfo(**{**fields, "shape": _naturals(fields["shape"])})
            for fields in data["parameters"]
        ),
        calls=tuple(CallInfo(**fields) for fields in data["calls"]),
        extra=dict(data["extra"]),
    )


def manifest_from_json(data: Any) -> Manifest:
    """Rebuild a manifest; raises ValueError, TypeError or KeyError where it is malformed."""
    fields = dict(data)
    for name in ("changed", "silent", "modules"):
        if fields[name] is not None:
            fields[name] = tuple(str(item) for item in fields[name])
    return Manifest(**fields)


def read_json(path: Path) -> Any:
    """Read a JSON object and check its schema.

    Raises RecordingError for anything else.
    """
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise RecordingError(
                f"{path}: is larger than {MAX_JSON_BYTES:,} bytes", "It is no recording's file."
            )
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RecordingError(
            f"{path}: cannot be read ({error})", "Give the folder that a recording was written to."
        ) from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise RecordingError(
            f"{path}: has the schema {schema!r}, and this isograd reads {SCHEMA!r}",
            "Read it with the version of isograd that wrote it, or record it again.",
        )
    return data


def _slots(rows: Any, count: int) -> tuple[Slot, ...]:
    return tuple(Slot(str(name), _below(value, count)) for name, value in rows)


def _naturals(numbers: Any) -> tuple[int, ...]:
    return tuple(_below(number, 1 << 62) for number in numbers)


def _below(number: Any, limit: int) -> int:
    if type(number) is not int or not 0 <= number < limit:
        raise ValueError(f"{number!r} is no number below {limit:,}")
    return number
