"""All examples in batches, each in a fresh process; a crash or a hang costs one example."""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import isograd
from isograd.knowledge.check.torch_side import split_module
from isograd.knowledge.entry import Entry, Example
from isograd.knowledge.port import NoPortError, mutating_port_of, port_of
from isograd.knowledge.store import Knowledge

SEEDS = (0, 1, 2)
_BATCH = 60
_CHILD = "isograd.knowledge.check.child"
_START_S = 120.0
_HANG_S = 60.0
#: In-place methods that change the shape, which no copy_ can.
_RESHAPING = frozenset(
    "unsqueeze_ squeeze_ transpose_ swapaxes_ swapdims_ t_ as_strided_ resize_ resize_as_".split()
)


@dataclass(frozen=True)
class Outcome:
    """What one example showed."""

    api: str
    forward: bool | None
    gradient: bool | None
    detail: str = ""
    error: float = 0.0


def chosen(knowledge: Knowledge, patterns: Sequence[str]) -> list[Entry]:
    """The entries with examples whose name fits one of the patterns (none: all)."""
    return [
        entry
        for entry in knowledge.entries
        if entry.examples
        and (not patterns or any(fnmatch.fnmatch(entry.api, pattern) for pattern in patterns))
    ]


def jobs_of(entry: Entry, knowledge: Knowledge) -> Iterator[dict[str, Any] | Outcome]:
    """An entry's examples as jobs; an outcome where the rewrite makes no port."""
    for number, example in enumerate(entry.examples):
        try:
            port = example.port or port_of(example.code, knowledge, entry.api)
        except NoPortError as error:
            yield Outcome(entry.api, False, None, f"no port: {error}")
            continue
        job = {
            "key": f"{entry.api}#{number}",
            "code": example.code,
            "port": port,
            "inputs": list(example.inputs),
            "gradient": example.gradient,
            "compare": example.compare,
            "kind": _kind(entry, example),
            "seeds": list(SEEDS),
            "ties": example.ties and example.compare == "values",
        }
        reshapes = entry.api.rpartition(".")[2] in _RESHAPING
        if (
            entry.hazard == "in_place"
            and not reshapes
            and not example.port
            and "\n" in example.code
        ):
            job["mutating"] = mutating_port_of(example.code, knowledge)
        yield job


def _kind(entry: Entry, example: Example) -> str:
    if entry.api.startswith(("torch.optim.lr_scheduler.", "torch.optim.swa_utils.SWALR")):
        return "scheduler"
    if entry.api.startswith("torch.optim."):
        return "optimizer"
    is_module = entry.api.startswith("torch.nn.") and "functional" not in entry.api
    return "module" if is_module and split_module(example.code) else "call"


def run(
    knowledge: Knowledge,
    entries: Sequence[Entry],
    jobs: int,
    report: Callable[[Outcome], None],
    device: str = "CPU",
) -> None:
    """Execute the entries' examples; `report` gets each outcome as it arrives."""
    waiting: list[dict[str, Any]] = []
    for entry in entries:
        for job in jobs_of(entry, knowledge):
            if isinstance(job, Outcome):
                report(job)
            else:
                waiting.append(job)
    batches = [waiting[start : start + _BATCH] for start in range(0, len(waiting), _BATCH)]
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        for outcomes in pool.map(partial(_run_batch, device=device), batches):
            for outcome in outcomes:
                report(outcome)


def _run_batch(jobs: list[dict[str, Any]], device: str = "CPU") -> list[Outcome]:
    """One batch in as many processes as it has crashes, and one more.

    An example that ended its process is run once more alone before that is said of it.
    """
    found: list[Outcome] = []
    suspects: list[dict[str, Any]] = []
    rest = list(jobs)
    while rest:
        done, victim, _ = _run_process(rest, device)
        found += done
        if victim is None:
            rest = rest[len(done) :] if not done else []
            if rest:  # the process did not even start its first job
                found += [Outcome(_api(j["key"]), None, None, "no process started") for j in rest]
                break
            continue
        suspects.append(victim)
        rest = rest[len(done) + 1 :]
    for job in suspects:
        done, victim, how = _run_process([job], device)
        found += done if victim is None else [Outcome(_api(job["key"]), False, None, how)]
    return found


def _run_process(
    jobs: list[dict[str, Any]], device: str
) -> tuple[list[Outcome], dict[str, Any] | None, str]:
    """Run jobs in one process: the outcomes, the job that ended it if one did, and how."""
    with tempfile.TemporaryDirectory() as folder:
        jobs_file, out_file = Path(folder, "jobs.json"), Path(folder, "out.jsonl")
        jobs_file.write_text(json.dumps(jobs), encoding="utf-8")
        out_file.touch()
        with Path(folder, "log.txt").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", _CHILD, str(jobs_file), str(out_file), device],
                stdout=log,
                stderr=log,
                cwd=folder,
                env=_environment(),
            )
            how = _wait(process, out_file)
        lines = [json.loads(line) for line in out_file.read_text(encoding="utf-8").splitlines()]
    done = [
        Outcome(
            _api(line["key"]),
            line["forward"],
            line["gradient"],
            line["detail"],
            max(line["error"], line.get("gradient_error", 0.0)),
        )
        for line in lines
        if "key" in line
    ]
    started = [line["start"] for line in lines if "start" in line]
    victim = jobs[len(done)] if len(started) > len(done) else None
    return done, victim, how


def _wait(process: subprocess.Popen[bytes], out_file: Path) -> str:
    """Wait while lines keep arriving; how the process ended."""
    size, since = 0, time.monotonic()
    while process.poll() is None:
        time.sleep(0.05)
        now = out_file.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > (_HANG_S if size else _START_S):
            process.kill()
            process.wait()
            return f"the process hung for {_HANG_S:.0f} s"
    return f"the process ended with status {process.returncode}"


def _environment() -> dict[str, str]:
    source = str(Path(isograd.__file__).parent.parent)
    path = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH", "")) if part)
    quiet = {"GLOG_v": "3", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **quiet, "PYTHONPATH": path}


def _api(key: str) -> str:
    return key.rpartition("#")[0]
