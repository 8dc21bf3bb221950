"""The knowledge's examples in the static graph: every entry's port under `jit` and GRAPH_MODE."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from isograd.knowledge.check.batches import jobs_of
from isograd.knowledge.check.table import fingerprint
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

_BATCH = 10
_CHILD = "isograd.knowledge.check.compiled_child"
#: The gravest first: what an entry's verdict is.
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
        found = _executed([job for entry in batch for job in _jobs(entry, knowledge)], device)
        for entry in batch:
            row = _row(entry, found.get(entry.api, []))
            results[entry.api] = row
            report(entry.api, row["compiled"])
        write_verdicts(target, header(device), results)
    return results


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
        yield {
            "key": entry.api,
            "code": code,
            "construction": construction,
            "inputs": job["inputs"],
        }


def _row(entry: Entry, found: list[dict[str, list[str]]]) -> dict[str, Any]:
    """The gravest verdict of an entry's examples and ways, with the first reason."""
    told = [answer for one in found for answer in one.values() if answer[0] in _ORDER]
    worst = min(told, key=lambda answer: _ORDER.index(answer[0]), default=["", ""])
    words = {"gradient-lost": "differs", "gradient-differs": "differs"}.get(worst[0], worst[0])
    word = f"refused ({worst[1]})" if worst[0] == "refused" and worst[1] else words
    return {"of": fingerprint(entry), "compiled": word, "verdict": worst[0]}


def _executed(jobs: list[dict[str, Any]], device: str) -> dict[str, list[dict[str, list[str]]]]:
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
