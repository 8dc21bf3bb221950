"""Predicted against measured: profile a planted training, remove the plant, and measure again.

`python benchmarks/profile/planted/what_if.py [--only WORD] [--out FILE --resume] [--table FILE]`.
The prediction is the one of the finding that names the plant; the measured step is the median plain
step of the same script without the plant. Both runs alternate; of each the least round counts.
Meanwhile processes that run when nothing else does keep the processors from sleeping: after a wait
of 0.3 s a step takes a third longer here (a virtual machine), which no trace can tell. MindSpore
has one processor (taskset): with two its eager step takes 31 or 52 ms, now so, now so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
import numpy as np
from benchmarks.profile.planted.cases import CASES, Case
from benchmarks.profile.planted.run import finished, planted_lines, profiled, summarise

#: Width, batch and rows. A step that is nothing but its plant leaves the plant's own noise to
#: compare; and weights that fill the caches are read anew after each wait, 15 of 50 ms beside other
#: tenants of the machine. So much work is done with few weights.
SIZE = (2048, 16, 32)
#: Advice that changes which steps update, so that no single step shows what is won.
LEFT_OUT = frozenset({"update.dominates"})


_AWAKE = "import os\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"


@contextlib.contextmanager
def awake() -> Iterator[None]:
    """Every processor has something to do, which gives way to anything else (Linux)."""
    count = (os.cpu_count() or 1) if hasattr(os, "SCHED_IDLE") else 0
    spinning = [subprocess.Popen([sys.executable, "-c", _AWAKE]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def compared(case: Case, rounds: int) -> dict[str, Any]:
    """Predicted and measured seconds of a step without the plant."""
    before, predicted, after, errors = [], [], [], []
    is_bound = case.framework == "mindspore"
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="what-if-") as name:
            report = profiled(case.script(*SIZE), Path(name), on_one_processor=is_bound)
        with tempfile.TemporaryDirectory(prefix="what-if-") as name:
            script = case.script(*SIZE, is_mended=True)
            mended = profiled(script, Path(name), on_one_processor=is_bound)
        found = prediction(case, report)
        if found is None or "step" not in mended:
            errors.append(str(report.get("error") or mended.get("error") or "not predicted"))
            continue
        before.append(report["step"]["median_s"])
        predicted.append(found)
        after.append(mended["step"]["median_s"])
    row: dict[str, Any] = {"case": case.name, "framework": case.framework, "errors": errors}
    if not after:
        return row
    best = int(np.argmin(predicted))  # other work on the machine only adds
    error = predicted[best] / min(after) - 1.0
    times = {"before_s": before[best], "predicted_s": predicted[best], "measured_s": min(after)}
    return {**row, **times, "error": error, "rounds": [before, predicted, after]}


def prediction(case: Case, report: dict[str, Any]) -> float | None:
    """The step that the finding of the plant predicts; where none names it, the first finding."""
    planted = planted_lines(case.script(*SIZE))
    found = [one for one in report.get("findings", []) if one["what_if"] is not None]
    for one in found:
        is_named = any(str(one["where"] or "").endswith(f"train.py:{n}") for n in planted)
        if is_named or one["code"] in case.codes:
            return float(one["what_if"]["step_s"])
    return float(found[0]["what_if"]["step_s"]) if found else None


def main() -> None:
    """Run, print each result, and write rows, summary and table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", action="store_true", help="every sixth case")
    parser.add_argument("--only", default="", help="cases whose name or framework holds this")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON lines: one per case")
    parser.add_argument("--resume", action="store_true", help="skip the cases that --out holds")
    parser.add_argument("--table", type=Path, help="where the table in Markdown goes")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    began, rows = time.time(), finished(given.out) if given.resume else {}
    chosen = [case for case in CASES if not LEFT_OUT & set(case.codes)]
    for case in chosen[:: 6 if given.sample else 1]:
        name = f"{case.framework} {case.name}"
        if time.time() - began > given.seconds:
            break
        if given.only not in name or name in rows:
            continue
        with awake():
            rows[name] = {"name": name, **compared(case, given.rounds)}
        print(json.dumps(rows[name]), flush=True)
        if given.out is not None:
            given.out.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    text = table(list(rows.values()))
    print(text)
    if given.table is not None:
        given.table.write_text(text, encoding="utf-8")


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, with the errors' median and 90th percentile."""
    known = [row for row in rows if "error" in row]
    errors = np.abs([row["error"] for row in known]) if known else np.asarray([np.nan])
    facts = summarise([])
    head = (
        f"`benchmarks/profile/planted/what_if.py` at {facts['commit']}, {facts['machine']}, "
        f"{facts['date']}: {len(known)} of {len(rows)} predicted; error of the predicted step, "
        f"median {np.median(errors):.1%}, 90 % at most {np.quantile(errors, 0.9):.1%}.\n\n"
        "| case | framework | step, ms | predicted, ms | measured, ms | error |\n"
        "|---|---|---|---|---|---|\n"
    )
    lines = [
        f"| {row['case']} | {row['framework']} | {row['before_s'] * 1e3:.1f} | "
        f"{row['predicted_s'] * 1e3:.2f} | {row['measured_s'] * 1e3:.2f} | {row['error']:+.1%} |\n"
        for row in known
    ]
    return head + "".join(lines)


if __name__ == "__main__":
    main()
