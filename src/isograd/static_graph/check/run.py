"""Executes constructs in batches and keeps the verdicts: `check_constructs`."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import isograd
from isograd.files import write_text
from isograd.frameworks.mindspore.static_graph.refusal import reduced
from isograd.static_graph.rule import WAYS, Construct
from isograd.static_graph.table import HEADER, VERIFIED, constructs

SCHEMA = "isograd/static-graph/1"
_BATCH = 12
#: Two float32 runs of an example agree to this, relative and absolute; its numbers are near 1.
_TOLERANCE = 2e-4


def fingerprint(construct: Construct) -> str:
    """Changes with what is executed."""
    text = HEADER + construct.example + construct.counterexample
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_constructs(
    wanted: Sequence[Construct],
    report: Callable[[str, dict[str, Any]], None],
    device: str = "CPU",
    target: Path = VERIFIED,
) -> dict[str, Any]:
    """Execute constructs whose verdicts are missing or old; the table is written as it grows."""
    results = kept_verdicts(target, header(device))
    known = {c.code: fingerprint(c) for c in constructs()}
    results = {code: row for code, row in results.items() if known.get(code) == row["of"]}
    waiting = [c for c in wanted if c.code not in results]
    for start in range(0, len(waiting), _BATCH):
        batch = waiting[start : start + _BATCH]
        found = _executed(batch, device)
        for construct in batch:
            row = {"of": fingerprint(construct), **found.get(construct.code, {})}
            results[construct.code] = row
            report(construct.code, row)
        write_verdicts(target, header(device), results)
    return results


def _executed(batch: Sequence[Construct], device: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    jobs = list(_jobs(batch))
    with tempfile.TemporaryDirectory() as folder:
        jobs_file, out_file = Path(folder, "jobs.json"), Path(folder, "out.jsonl")
        jobs_file.write_text(json.dumps(jobs), encoding="utf-8")
        out_file.touch()
        command = [sys.executable, "-m", "isograd.static_graph.check.frame"]
        subprocess.run(
            [*command, str(jobs_file), str(out_file), device],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        for line in out_file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            code, part = row["key"]
            found.setdefault(code, {})[part] = verdicts(row["runs"])
    return found


def _jobs(batch: Sequence[Construct]) -> Iterator[dict[str, Any]]:
    number = 0
    for construct in batch:
        for part in ("example", "counterexample"):
            code = getattr(construct, part)
            if code:
                number += 1
                yield {"key": [construct.code, part], "number": number, "code": HEADER + code}


def verdicts(runs: dict[str, Any]) -> dict[str, list[str]]:
    """What each way makes of the code, by what the eager run yields."""
    eager = runs["eager"]
    ways = [way for way in WAYS if way in runs]
    if "forward" not in eager:
        return {way: ["eager-fails", _reason(eager["message"])] for way in ways}
    return {way: _verdict(eager, runs[way]) for way in ways}


def _verdict(eager: dict[str, Any], other: dict[str, Any]) -> list[str]:
    if "forward" in other and _differs(eager["forward"], other["forward"]):
        return ["differs", ""]
    if "failed" in other:
        both = other["failed"] == eager.get("failed")
        return ["eager-fails" if both else "refused", _reason(other["message"])]
    if "training" not in eager or "training" not in other:
        return ["same", ""]
    if not _differs(eager["training"], other["training"]):
        return ["same", ""]
    is_lost = _loses(eager["training"]["steps"], other["training"]["steps"])
    return ["gradient-lost" if is_lost else "gradient-differs", ""]


def _reason(message: str) -> str:
    """Why the compiler refuses, without the place: that of the machine that executed it."""
    return reduced(message).partition(" In file ")[0].rstrip(" ,")


def _differs(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        if "tensor" in first and "tensor" in second:
            return not _close(first, second)
        return first.keys() != second.keys() or any(_differs(first[k], second[k]) for k in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) != len(second) or any(
            _differs(a, b) for a, b in zip(first, second, strict=True)
        )
    if isinstance(first, float) and isinstance(second, float):
        return not math.isclose(first, second, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(first != second)


def _close(first: dict[str, Any], second: dict[str, Any]) -> bool:
    if (first["dtype"], first["shape"]) != (second["dtype"], second["shape"]):
        return False
    return all(
        a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= _TOLERANCE * (1.0 + abs(a))
        for a, b in zip(first["tensor"], second["tensor"], strict=True)
    )


def _loses(eager: Any, other: Any) -> bool:
    """Whether a gradient is zero throughout that is not so eagerly."""
    pairs = list(zip(_tensors(eager), _tensors(other), strict=False))
    return any(any(a["tensor"]) and not any(b["tensor"]) for a, b in pairs)


def _tensors(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and "tensor" in value:
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, list):
        for part in value:
            yield from _tensors(part)


def environment() -> dict[str, str]:
    """The variables of a process that executes: quiet, on one thread."""
    source = str(Path(isograd.__file__).parent.parent)
    path = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH", "")) if part)
    quiet = {"GLOG_v": "4", "OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    return {**os.environ, **quiet, "PYTHONPATH": path}


def header(device: str) -> dict[str, str]:
    """Schema, version and device."""
    try:
        mindspore = version("mindspore")
    except PackageNotFoundError:
        mindspore = "none"
    return {"schema": SCHEMA, "mindspore": mindspore, "device": device}


def kept_verdicts(target: Path, head: Mapping[str, str]) -> dict[str, Any]:
    """The verdicts of a table by key; none where its head says another version or device."""
    if not target.is_file():
        return {}
    table = json.loads(target.read_text(encoding="utf-8"))
    if any(table.get(key) != value for key, value in head.items()):
        return {}
    found: dict[str, Any] = table["results"]
    return found


def write_verdicts(target: Path, head: Mapping[str, str], results: Mapping[str, Any]) -> None:
    """Write a table of verdicts, one key a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(results[key])}" for key in sorted(results)]
    begin = json.dumps(head)[:-1]
    write_text(target, begin + ', "results": {\n' + ",\n".join(lines) + "\n}}\n")
