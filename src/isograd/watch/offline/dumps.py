"""Dumps of operators: the first in execution order whose output is not finite and inputs are.

Dumps of MindSpore name operator, time and slot in each file's name; the dumped graph (`*.ir`) has
the source line of each operator.  msprobe's dump.json has statistics in execution order, also
where no tensors were dumped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isograd.checkpoints.dump_names import parse_dump_name
from isograd.checkpoints.jsons import read_json
from isograd.checkpoints.open import open_source
from isograd.errors import CheckpointError
from isograd.watch.alerts.library import BY_CODE
from isograd.watch.alerts.rule import Severity
from isograd.watch.judge import Alert
from isograd.watch.model import WatchReport, verdict_of
from isograd.watch.origin import Origin, Phase, TensorFacts, facts_of

_MOST_FILES = 2_000_000
_LARGEST_GRAPH = 512 << 20
_FULL_NAME = re.compile(r"# Fullname with scope: \((.+?)\)")
_IN_FILE = re.compile(r"# In file (.+?):(\d+)")
_OVERFLOW = re.compile(r"Opdebug\.|overflow", re.IGNORECASE)


@dataclass
class Operator:
    """One run of an operator with what is known of its tensors."""

    name: str
    kind: str
    order: float
    inputs: list[Path | TensorFacts] = field(default_factory=list)
    outputs: list[Path | TensorFacts] = field(default_factory=list)
    is_backward: bool = False


def dump_operators(folder: Path) -> list[Operator]:
    """The operators of a dump in execution order; empty where the folder holds none."""
    if (folder / "dump.json").is_file():
        return list(_of_msprobe(folder / "dump.json"))
    found: dict[tuple[str, int], Operator] = {}
    for count, path in enumerate(folder.rglob("*.npy")):
        name = parse_dump_name(path.stem)
        if name is None or path.is_symlink() or count > _MOST_FILES:
            continue
        key = name.operator, name.time_us
        operator = found.setdefault(key, Operator(name.operator, name.operator_type, name.time_us))
        side = operator.inputs if name.side == "input" else operator.outputs
        side.append(path)
        operator.is_backward = name.operator.startswith("Gradients")
    return sorted(found.values(), key=lambda operator: operator.order)


def _of_msprobe(path: Path) -> Iterator[Operator]:
    data = read_json(path)
    entries = data.get("data") if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        raise CheckpointError(f"{path}: is no dump of msprobe's", "Give the folder of one step.")
    for order, (name, entry) in enumerate(entries.items()):
        if not isinstance(entry, dict):
            continue
        parts = str(name).split(".")
        is_backward = "backward" in parts
        kind = parts[-3] if len(parts) > 3 else parts[0]
        operator = Operator(str(name), kind, order, is_backward=is_backward)
        keys = ("input", "output") if is_backward else ("input_args", "output")
        operator.inputs += list(_facts_in([entry.get(keys[0]), entry.get("input_kwargs")]))
        operator.outputs += list(_facts_in(entry.get(keys[1])))
        yield operator


def _facts_in(nested: Any, depth: int = 0) -> Iterator[TensorFacts]:
    """Statistics of the tensors in an entry of dump.json."""
    if depth > 20:
        return
    if isinstance(nested, dict):
        if "Max" in nested or "Norm" in nested:
            yield _facts(nested)
        else:
            for part in nested.values():
                yield from _facts_in(part, depth + 1)
    elif isinstance(nested, list):
        for part in nested:
            yield from _facts_in(part, depth + 1)


def _facts(entry: Mapping[str, Any]) -> TensorFacts:
    numbers = {key: _number(entry.get(key)) for key in ("Max", "Min", "Mean", "Norm")}
    nans = sum(math.isnan(v) for v in numbers.values() if v is not None)
    infinities = sum(math.isinf(v) for v in numbers.values() if v is not None)
    shape = entry.get("shape")
    return TensorFacts(
        tuple(int(n) for n in shape) if isinstance(shape, list) else (),
        str(entry.get("dtype", "")),
        numbers["Min"] if numbers["Min"] is not None else math.nan,
        numbers["Max"] if numbers["Max"] is not None else math.nan,
        int(nans > 0),
        int(infinities > 0),
    )


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def judge_dump(folder: Path, operators: list[Operator]) -> WatchReport:
    """Where the first value arose in a dumped step; CheckpointError where a file is damaged."""
    origin = _origin(folder, operators)
    overflows = [path for path in folder.rglob("*") if _OVERFLOW.search(path.name)]
    notes = [f"{len(operators):,} runs of operators in execution order"]
    alerts: list[Alert] = []
    if origin is not None:
        alerts.append(_alert("tensor.nonfinite", origin.module, origin))
    alerts += [_flagged(path) for path in overflows[:20]]
    return WatchReport(
        source=str(folder),
        verdict=verdict_of(tuple(alerts), 1),
        run={"name": folder.name, "kind": "dump"},
        steps=1,
        alerts=tuple(alerts),
        first_nonfinite=None if origin is None else origin.to_json(),
        notes=tuple(notes),
    )


def _origin(folder: Path, operators: list[Operator]) -> Origin | None:
    found: Operator | None = None
    path: list[str] = []
    for operator in operators:
        bad = [one for one in map(_measure, operator.outputs) if one and _kind(one)]
        if not bad:
            continue
        if found is not None:
            path.append(_scope(operator.name))
            continue
        inputs = [one for one in map(_measure, operator.inputs) if one]
        if any(_kind(one) == "nan" for one in inputs):
            continue
        found, first, given = operator, bad[0], inputs
    if found is None:
        return None
    return Origin(
        step=0,
        phase=Phase.BACKWARD if found.is_backward else Phase.FORWARD,
        module=_scope(found.name),
        operator=found.kind,
        kind=str(_kind(first)),
        where=_lines(folder).get(found.name.replace("_", "/"), "")
        or _lines(folder).get(found.name, ""),
        inputs=tuple(given),
        propagation=tuple(dict.fromkeys(name for name in path if name != _scope(found.name)))[:50],
    )


def _measure(one: Path | TensorFacts) -> TensorFacts | None:
    if isinstance(one, TensorFacts):
        return one
    with open_source(one) as source:
        value = source.read(source.names()[0])
    if not np.issubdtype(value.values.dtype, np.floating):
        return None
    return facts_of(value.values, value.dtype)


def _kind(facts: TensorFacts) -> str | None:
    if facts.nan_count:
        return "nan"
    return "inf" if facts.infinity_count else None


def _scope(name: str) -> str:
    """The module of an operator: its scope without the network's own and the operator's number."""
    parts = name.replace("/", "_").split("_")
    if name.startswith(("Module.", "Cell.")):
        return ".".join(name.split(".")[1:-3])
    kept = [part for part in parts[:-1] if part not in ("Default", "Gradients", "network")]
    return ".".join((part.rpartition("-")[0] and part.partition("-")[0]) or part for part in kept)


def _lines(folder: Path) -> dict[str, str]:
    """The source line of each operator of the dumped graphs."""
    found: dict[str, str] = {}
    # rank_0/graphs stands beside rank_0/NET/GRAPH/ITERATION, where the tensors are.
    around = [sorted((one / "graphs").glob("*.ir")) for one in [*folder.parents][:4]]
    graphs = next((g for g in (sorted(folder.rglob("graphs/*.ir")), *around) if g), [])
    for path in graphs[:8]:
        if path.stat().st_size > _LARGEST_GRAPH:
            continue
        name = ""
        with path.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if match := _FULL_NAME.search(line):
                    name = match[1]
                elif name and (match := _IN_FILE.search(line)):
                    if "site-packages" not in match[1]:
                        found.setdefault(name, f"{match[1]}:{match[2]}")
                        name = ""
    return found


def _flagged(path: Path) -> Alert:
    """What an overflow-debug file of Ascend says: the hardware's flag of one operator."""
    return Alert(
        code="operator.overflow",
        severity=Severity.ALERT,
        first_step=0,
        last_step=0,
        count=1,
        module="",
        tensor="",
        value=math.nan,
        limit=None,
        source="MindInsight debugger, condition operator_overflow (Ascend's own flag)",
        message=f"the device flagged an overflow: {path.name}",
        advice="Keep this operator in float32, or scale what comes in.",
    )


def _alert(code: str, module: str, origin: Origin) -> Alert:
    rule = BY_CODE[code]
    return Alert(
        code=code,
        severity=Severity.ALERT,
        first_step=origin.step,
        last_step=origin.step,
        count=1,
        module=module,
        tensor="",
        value=math.nan,
        limit=None,
        source=rule.source,
        message=f"{origin.operator} gave {origin.kind} from finite inputs",
        advice="Look at its inputs: what stands there is outside of what the operator can take.",
        where=origin.where,
    )
