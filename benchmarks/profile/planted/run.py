"""Run the planted and the healthy trainings and write what was found as JSON lines and a table.

`python benchmarks/profile/planted/run.py [--sample] [--only WORD] [--out FILE --resume]`. Every
case is a process of its own: `isograd profile --out FOLDER script.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
from benchmarks.profile.planted.cases import CASES, Case
from benchmarks.profile.planted.healthy import healthy
from benchmarks.profile.planted.simulated import SIMULATED

#: Most planted runs end within 30 s on an idle machine.
LIMIT_S = 600
#: Pages that go back to the system and come anew are up to a third of a step, now more, now less.
KEEPS_MEMORY = f"glibc.malloc.mmap_threshold={1 << 40}:glibc.malloc.trim_threshold={1 << 40}"


def profiled(script: str, folder: Path, *, on_one_processor: bool = False) -> dict[str, Any]:
    """The report of a script as JSON, or {"error": …}."""
    (folder / "train.py").write_text(script)
    call = ["--out", str(folder / "run"), "--steps", "16", str(folder / "train.py")]
    return _report(call, folder, on_one_processor=on_one_processor)


def read(write: Callable[[Path], None], folder: Path) -> dict[str, Any]:
    """The report of files that `write` leaves in a folder."""
    (folder / "run").mkdir()
    write(folder / "run")
    return _report([str(folder / "run")], folder)


def _report(
    arguments: list[str], folder: Path, *, on_one_processor: bool = False
) -> dict[str, Any]:
    call = [sys.executable, "-m", "isograd", "profile", "--quiet", *arguments]
    call += ["--json", str(folder / "report.json")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLIBC_TUNABLES": KEEPS_MEMORY}
    if on_one_processor:
        call = ["taskset", "--cpu-list", str(max(os.sched_getaffinity(0))), *call]
    try:
        done = subprocess.run(
            call, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no end within {LIMIT_S} s"}
    if done.returncode == 2:
        return {"error": done.stderr[-400:]}
    return json.loads((folder / "report.json").read_text())  # type: ignore[no-any-return]


def planted_lines(script: str) -> list[int]:
    """Numbers of the lines that end in `#!`."""
    return [number for number, line in enumerate(script.splitlines(), 1) if line.endswith("#!")]


def judged(case: Case, write: Callable[[Path], None] | None = None) -> dict[str, Any]:
    """One planted case: is the verdict right, is the culprit named? write: its files, no script."""
    script = case.script() if write is None else ""
    planted = planted_lines(script)
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        folder = Path(name)
        report = profiled(script, folder) if write is None else read(write, folder)
    found = report.get("findings", [])[:2]
    places = [str(one["where"] or "") for one in found]
    named = any(place.endswith(f"train.py:{line}") for place in places for line in planted)
    coded = any(one["code"] in case.codes for one in found)
    return {
        "case": case.name,
        "framework": case.framework,
        "expected": case.limit,
        "verdict": report.get("verdict", report.get("error", "")),
        "limit_right": report.get("verdict") == case.limit,
        "culprit_right": named or coded,
        "line_named": named,
        "findings": [(one["code"], one["where"], round(one["share"], 3)) for one in found],
        "limits": report.get("step", {}).get("limits"),
    }


def judged_healthy(name: str, script: str) -> dict[str, Any]:
    """One healthy case: what is claimed."""
    with tempfile.TemporaryDirectory(prefix="healthy-") as folder:
        report = profiled(script, Path(folder))
    claimed = [(one["code"], round(one["share"], 3)) for one in report.get("findings", [])]
    return {
        "case": name,
        "framework": "torch",
        "healthy": True,
        "verdict": report.get("verdict", report.get("error", "")),
        "claimed": [one for one in claimed if one[1] > 0.05],
    }


def jobs(only: str) -> dict[str, Callable[[], dict[str, Any]]]:
    """What can be run, by a name that a resumed run knows again."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for case in CASES:
        found[f"{case.framework} {case.name} planted"] = lambda case=case: judged(case)
    for case, write in SIMULATED:
        name = f"{case.framework} {case.name} simulated"
        found[name] = lambda case=case, write=write: judged(case, write)
    for one in healthy():
        found[f"torch {one[0]} healthy"] = lambda one=one: judged_healthy(*one)
    return {name: job for name, job in found.items() if only in name}


def main() -> None:
    """Run, print each result, and write the rows with their summary, and the table for the docs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="every sixth case")
    parser.add_argument("--only", default="", help="cases whose name or framework holds this")
    parser.add_argument("--out", type=Path, help="JSON lines: one per case")
    parser.add_argument("--resume", action="store_true", help="skip the cases that --out holds")
    parser.add_argument("--table", type=Path, help="where the table in Markdown goes")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    began = time.time()
    rows = finished(given.out) if given.resume else {}
    chosen = list(jobs(given.only).items())[:: 6 if given.sample else 1]
    for name, job in chosen:
        if time.time() - began > given.seconds:
            break
        if name in rows:
            continue
        rows[name] = {"name": name, **job()}
        print(json.dumps(rows[name]), flush=True)
        if given.out is not None:
            given.out.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    summary = summarise(list(rows.values()))
    print(json.dumps(summary))
    if given.table is not None:
        given.table.write_text(table(list(rows.values()), summary), encoding="utf-8")


def finished(path: Path | None) -> dict[str, dict[str, Any]]:
    """The rows that an earlier run has written."""
    if path is None or not path.is_file():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["name"]: row for row in rows}


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts, with the machine and the date."""
    planted = [row for row in rows if not row.get("healthy")]
    good = [row for row in rows if row.get("healthy")]
    return {
        "planted": len(planted),
        "limit_right": sum(row["limit_right"] for row in planted),
        "culprit_right": sum(row["culprit_right"] for row in planted),
        "healthy": len(good),
        "healthy_claimed": sum(bool(row["claimed"]) for row in good),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
    }


def commit() -> str:
    """The commit that is measured."""
    call = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(call, cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def table(rows: list[dict[str, Any]], summary: dict[str, Any]) -> str:
    """The rows as Markdown, with where and when they were measured."""
    head = (
        "# Planted bottlenecks\n\n"
        f"`benchmarks/profile/planted/run.py` at {summary['commit']}, {summary['machine']}, "
        f"{summary['date']}: limiting class right {summary['limit_right']} of "
        f"{summary['planted']}, culprit right {summary['culprit_right']} of {summary['planted']}; "
        f"{summary['healthy_claimed']} of {summary['healthy']} healthy runs with a claim above "
        "5 % of the step.\n\n"
        "| case | framework | expected | verdict | first findings |\n|---|---|---|---|---|\n"
    )
    lines = []
    for row in rows:
        found = row["claimed"] if row.get("healthy") else row["findings"]
        first = ", ".join(f"{one[0]} ({one[-1]:.0%})" for one in found) or "nothing"
        expected = "nothing" if row.get("healthy") else row["expected"]
        cells = (row["case"], row["framework"], expected, row["verdict"], first)
        lines.append("| " + " | ".join(cells) + " |\n")
    return head + "".join(lines)


if __name__ == "__main__":
    main()
