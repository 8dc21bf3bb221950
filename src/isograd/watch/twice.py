"""Runs the first steps of a script twice, and names the first thing that differs.

Two processes run the script as it is; each writes a checksum of every module's output, every batch,
every loss, and of the weights before the first step, in their order (`digests.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isograd.errors import RunError, UsageError
from isograd.watch.alerts.rule import Severity
from isograd.watch.judge import Alert
from isograd.watch.model import WatchReport, verdict_of

_TIMEOUT_S = 3600
_ADVICE = {
    "weights": "The networks begin with different weights: seed before they are built "
    "(torch.manual_seed, mindspore.set_seed).",
    "batch": "The batches differ: seed what shuffles and augments (the DataLoader's generator and "
    "worker_init_fn, numpy.random.seed, random.seed; mindspore.dataset.config.set_seed).",
    "output": "The same inputs and weights give other outputs: a dropout without a seed, or an "
    "operator whose order of sums changes (torch.use_deterministic_algorithms(True), "
    "mindspore.set_deterministic(True)).",
    "loss": "Only the loss differs: look at random numbers that the loss draws.",
    "gradient": "The forward passes agree and the weights after the step do not: an operator's "
    "backward pass adds in another order each time "
    "(torch.use_deterministic_algorithms(True), mindspore.set_deterministic(True)).",
}


def run_twice(
    script: Path, arguments: Sequence[str], steps: int, out: Path | None = None
) -> WatchReport:
    """Compare the first steps of two runs of a script.

    Raises UsageError where there is no script, RunError where it reaches no step.
    """
    if not script.is_file():
        raise UsageError(f"the script {script} does not exist", "Give the path of a Python file.")
    with tempfile.TemporaryDirectory(prefix="isograd-") as folder:
        runs = [_run(script, arguments, steps, Path(folder) / f"{n}.jsonl") for n in (1, 2)]
    (first, seeded), (second, _) = runs
    difference = _first_difference(first, second)
    alerts = tuple(_alert(found) for found in (difference,) if found is not None)
    unseeded = sorted({"random", "numpy", "torch", "mindspore"} - seeded)
    used = [name for name in unseeded if name in ("random", "numpy") or _uses(first, name)]
    lines = [alert.message for alert in alerts]
    if used:
        lines.append(f"not seeded by the script: {', '.join(used)}")
    count = max((int(entry["step"]) for entry in first), default=0) + 1
    return WatchReport(
        source=str(script),
        verdict=verdict_of(alerts, count),
        run={"name": script.stem, "command": [str(script), *arguments]},
        steps=count,
        alerts=alerts,
        randomness={
            "steps": count,
            "is_repeatable": difference is None,
            "first_difference": difference,
            "not_seeded": used,
            "lines": lines,
        },
    )


def _run(
    script: Path, arguments: Sequence[str], steps: int, target: Path
) -> tuple[list[dict[str, Any]], set[str]]:
    command = [sys.executable, "-m", "isograd.watch.digests", str(target), str(steps)]
    done = subprocess.run(
        [*command, str(script), *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    entries: list[dict[str, Any]] = []
    if target.is_file():
        entries = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    events = [entry for entry in entries if "what" in entry]
    if not events:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise RunError(
            f"{script}: no network was called before it ended ({last[:300]})",
            "Let the script train for a few steps, with torch or MindSpore.",
        )
    seeded = {name for entry in entries for name in entry.get("seeded", ())}
    return events, seeded


def _first_difference(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    for here, there in zip(first, second, strict=False):
        if here["what"] != there["what"] or here["name"] != there["name"]:
            return {**here, "what": "order", "name": f"{here['name']} / {there['name']}"}
        if here["digest"] != there["digest"]:
            return dict(here)
    if len(first) != len(second):
        return {"what": "order", "name": "the number of calls", "step": 0, "digest": 0}
    return None


def _uses(events: Sequence[Mapping[str, Any]], framework: str) -> bool:
    return any(event.get("framework") == framework for event in events)


def _alert(difference: Mapping[str, Any]) -> Alert:
    what, name, step = str(difference["what"]), str(difference["name"]), int(difference["step"])
    subject = {
        "weights": f"the weight {name}",
        "batch": f"input {name}",
        "output": f"the output of {name or 'the network'}",
        "gradient": f"the weight {name} after the update",
    }.get(what, name)
    return Alert(
        code="randomness.differs",
        severity=Severity.ALERT,
        first_step=step,
        last_step=step,
        count=1,
        module=name if what == "output" else "",
        tensor=name if what in ("weights", "gradient") else "",
        value=float("nan"),
        limit=None,
        source="two runs of the same command",
        message=f"{subject} is the first that differs between two runs, at step {step}",
        advice=_ADVICE.get(what, "The runs take other ways: look at sets, threads, and the clock."),
    )
