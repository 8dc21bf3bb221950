"""Run the planted and the healthy trainings and write what was found as JSON lines and a table.

`python benchmarks/profile/planted/run.py [--sample] [--only WORD] [--out FILE]`. Every case is a
process of its own: `isograd profile --out FOLDER script.py`.
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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
from benchmarks.profile.planted.cases import CASES, Case
from benchmarks.profile.planted.healthy import healthy

LIMIT_S = 150


def profiled(script: str, folder: Path) -> dict[str, Any]:
    """The report of a script as JSON, or {"error": …}."""
    file = folder / "train.py"
    file.write_text(script)
    call = [sys.executable, "-m", "isograd", "profile", "--quiet", "--out", str(folder / "run")]
    call += ["--steps", "16", "--json", str(folder / "report.json"), str(file)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            call, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no end within {LIMIT_S} s"}
    if done.returncode == 2:
        return {"error": done.stderr[-400:]}
    return json.loads((folder / "report.json").read_text())  # type: ignore[no-any-return]


def judged(case: Case) -> dict[str, Any]:
    """One planted case: is the verdict right, is the culprit named?"""
    script = case.script()
    planted = [number for number, line in enumerate(script.splitlines(), 1) if line.endswith("#!")]
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        report = profiled(script, Path(name))
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


def main() -> None:
    """Run, print each result, and write the summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="every sixth case")
    parser.add_argument("--only", default="", help="cases whose name or framework holds this")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    began, rows = time.time(), []
    cases = [case for case in CASES if given.only in f"{case.framework} {case.name} planted"]
    good = [one for one in healthy() if given.only in f"torch {one[0]} healthy"]
    stride = 6 if given.sample else 1
    jobs = [lambda case=case: judged(case) for case in cases[::stride]]
    jobs += [lambda one=one: judged_healthy(*one) for one in good[::stride]]
    for job in jobs:
        if time.time() - began > given.seconds:
            break
        rows.append(job())
        print(json.dumps(rows[-1]), flush=True)
    summary = summarise(rows)
    print(json.dumps(summary))
    if given.out is not None:
        given.out.write_text("".join(json.dumps(row) + "\n" for row in [*rows, summary]))


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
        "date": time.strftime("%Y-%m-%d"),
    }


if __name__ == "__main__":
    main()
