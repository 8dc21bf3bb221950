"""The knowledge in the static graph: examples of entries and runtime functions, compiled.

A verdict is the gravest of the examples; where some are the same and others not, it depends on the
arguments.  A runtime function's examples are those that use no other runtime function by name.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isograd import runtime
from isograd.knowledge.check import table
from isograd.knowledge.check.batches import jobs_of
from isograd.knowledge.check.torch_side import split_module
from isograd.knowledge.entry import Entry
from isograd.knowledge.store import COMPILED_FILE, Knowledge
from isograd.static_graph.check.run import (
    environment,
    header,
    kept_verdicts,
    verdicts,
    write_verdicts,
)
from isograd.static_graph.executed import DEPENDS, OUTSIDE_GRAPHS, RUNTIME_FILE, SAME
from isograd.static_graph.executed import fingerprint as fingerprint_of
from isograd.static_graph.find import find_reached_in
from isograd.static_graph.scope import FileScope

_BATCH = 10
#: So many examples of a runtime function are executed.
_EXAMPLES = 3
_CHILD = "isograd.knowledge.check.compiled_child"
#: The gravest first: what an entry's verdict is.
_WORDS = {"gradient-lost": "differs", "gradient-differs": "differs"}
_ORDER = ("differs", "gradient-lost", "gradient-differs", "refused", "same")


def check_entries(
    knowledge: Knowledge,
    entries: Sequence[Entry],
    report: Callable[[str, str], None],
    device: str = "CPU",
    target: Path = COMPILED_FILE,
) -> dict[str, Any]:
    """Execute entries whose verdicts are missing or old; the table is written as it grows."""
    results = kept_verdicts(target, header(device))
    waiting = [e for e in entries if results.get(e.api, {}).get("of") != fingerprint(e)]
    for start in range(0, len(waiting), _BATCH):
        batch = waiting[start : start + _BATCH]
        found = executed_jobs([job for entry in batch for job in _jobs(entry, knowledge)], device)
        for entry in batch:
            row = _row(entry, found.get(entry.api, []))
            results[entry.api] = row
            report(entry.api, row["compiled"])
        write_verdicts(target, header(device), results)
    return results


def fingerprint(entry: Entry) -> str:
    """Changes with what is executed of an entry in a graph."""
    return table.fingerprint(entry, OUTSIDE_GRAPHS)


def check_runtime(
    knowledge: Knowledge,
    report: Callable[[str, str], None],
    device: str = "CPU",
    target: Path = RUNTIME_FILE,
    wanted: Callable[[str], bool] = lambda name: True,
) -> dict[str, Any]:
    """Execute runtime functions whose verdicts are missing or old, the doubtful ones first."""
    results = kept_verdicts(target, header(device))
    jobs = _jobs_of_runtime(knowledge)
    prints = runtime_fingerprints({*jobs, *results})
    results = {name: row for name, row in results.items() if prints.get(name) == row["of"]}
    waiting = sorted(
        (name for name in jobs if name not in results and wanted(name)),
        key=lambda name: (not find_reached_in(*_reached_by(name)), -len(jobs[name]), name),
    )
    for start in range(0, len(waiting), _BATCH):
        batch = waiting[start : start + _BATCH]
        found = executed_jobs([job for name in batch for job in jobs[name][:_EXAMPLES]], device)
        for name in batch:
            if found.get(name):
                results[name] = {"of": prints[name], **_row_of_runtime(found[name])}
            report(name, results.get(name, {}).get("verdict", "not executed"))
        write_verdicts(target, header(device), results)
    return results


def runtime_fingerprints(names: Iterable[str]) -> dict[str, str]:
    """The fingerprints of runtime functions and layers that are there, by their names."""
    known = _definitions()
    return {name: fingerprint_of(*known[name]) for name in names if name in known}


@dataclass(frozen=True)
class _Count:
    """What became of the examples; gravest: of all verdicts, with its first reason."""

    same: int
    examples: int
    gravest: str
    reason: str

    @property
    def verdict(self) -> str:
        return DEPENDS if 0 < self.same < self.examples else self.gravest


def _count(found: list[dict[str, list[str]]]) -> _Count:
    """found: by example, verdict and reason of each way."""
    worst = [
        min(answers, key=lambda answer: _ORDER.index(answer[0]))
        for one in found
        if (answers := [a for a in one.values() if a[0] in _ORDER])
    ]
    gravest, reason = min(worst, key=lambda answer: _ORDER.index(answer[0]), default=("", ""))
    return _Count(sum(verdict == SAME for verdict, _ in worst), len(worst), gravest, reason)


def _row_of_runtime(found: list[dict[str, list[str]]]) -> dict[str, Any]:
    count = _count(found)
    row = {"verdict": count.verdict, "same": count.same, "examples": count.examples}
    return row | ({"detail": count.reason} if count.reason and count.verdict != DEPENDS else {})


def _jobs_of_runtime(knowledge: Knowledge) -> dict[str, list[dict[str, Any]]]:
    """The examples whose port names one runtime function, by that function."""
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for entry in knowledge.entries:
        for job in _jobs(entry, knowledge):
            text = f"{job['construction']}\n{job['code']}"
            names = set(re.findall(r"\bcomposites\.(\w+)", text))
            if len(names) == 1 and (name := names.pop()) in _definitions():
                found[name].setdefault(text, {**job, "key": name})
    return {name: list(jobs.values()) for name, jobs in found.items()}


@functools.cache
def _definitions() -> dict[str, tuple[FileScope, str]]:
    """The file of each runtime function and layer, and its name."""
    folder = Path(runtime.__file__).parent
    found = {name: (_scope(folder / f"{stem}.py"), name) for name, stem in runtime.homes().items()}
    return {name: place for name, place in found.items() if place[0].definition(name) is not None}


def _reached_by(name: str) -> tuple[FileScope, str, str]:
    """The arguments of `find_reached_in` for a runtime function or layer."""
    file, _ = _definitions()[name]
    return (file, name, "") if name in file.classes else (file, "", name)


@functools.cache
def _scope(path: Path) -> FileScope:
    def module(name: str) -> FileScope | None:
        package, _, stem = name.rpartition(".")
        other = path.with_name(f"{stem}.py")
        return _scope(other) if package == runtime.__name__ and other.is_file() else None

    return FileScope(ast.parse(path.read_text(encoding="utf-8")), module)


def _builds_cells(code: str) -> bool:
    """Whether code makes a cell, which belongs outside of the static graph."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            package, _, name = ast.unparse(node.func).rpartition(".")
            if package in ("nn", "mint.nn", "ms.nn"):
                return True
            home, _ = (
                _definitions().get(name, (None, "")) if package == "composites" else (None, "")
            )
            if home is not None and (home.is_cell(name) or home is _scope(_CELLS)):
                return True
    return False


#: Its functions make MindSpore's layers by torch's arguments.
_CELLS = Path(runtime.__file__).with_name("cells.py")


def _jobs(entry: Entry, knowledge: Knowledge) -> Iterator[dict[str, Any]]:
    """The entry's examples that are calls with values; a construction stays outside the graph."""
    for job in jobs_of(entry, knowledge):
        if not isinstance(job, dict) or job["compare"] != "values":
            continue
        if job["kind"] not in ("module", "call"):
            continue
        construction, code = "", job["port"]
        if job["kind"] == "module" and (parts := split_module(job["port"])) is not None:
            construction, call = parts
            code = call.replace("call(", "CELL(", 1)
        if _builds_cells(code):
            continue
        yield {
            "key": entry.api,
            "code": code,
            "construction": construction,
            "inputs": job["inputs"],
        }


def _row(entry: Entry, found: list[dict[str, list[str]]]) -> dict[str, Any]:
    """The verdict of an entry's examples and ways in words, with the first reason."""
    count = _count(found)
    word = _WORDS.get(count.gravest, count.gravest)
    if word == "refused" and count.reason:
        word = f"refused ({count.reason})"
    if count.verdict == DEPENDS:
        word = f"same in {count.same} of {count.examples} examples, else {word}"
    return {"of": fingerprint(entry), "compiled": word, "verdict": count.verdict}


def executed_jobs(jobs: list[dict[str, Any]], device: str) -> dict[str, list[dict[str, list[str]]]]:
    """The verdicts of jobs by key: of each job what each way makes of it."""
    found: dict[str, list[dict[str, list[str]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        jobs_file, out_file = Path(folder, "jobs.json"), Path(folder, "out.jsonl")
        jobs_file.write_text(json.dumps(jobs), encoding="utf-8")
        out_file.touch()
        subprocess.run(
            [sys.executable, "-m", _CHILD, str(jobs_file), str(out_file), device],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        for line in out_file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.setdefault(row["key"], []).append(verdicts(row["runs"]))
    return found
