"""Waits for a run, and says what happens meanwhile."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from isograd.runs.reader import Run

_PAUSE_S = 1.0


def wait_until_ended(folder: Path, say: Callable[[str], object] | None = None) -> None:
    """Return when the run has ended, failed or crashed; each alert is said as it comes."""
    run, seen = Run(folder), 0
    out = say or (lambda text: sys.stderr.write(text + "\n"))
    last = -1
    while True:
        entries = list(run.alerts())
        for entry in entries[seen:]:
            if entry.get("entry") == "alert" and entry.get("count") == 1:
                out(f"step {entry.get('first_step')}: {entry.get('code')}: {entry.get('message')}")
            elif entry.get("entry") == "origin":
                out(f"step {entry.get('step')}: origin: {entry.get('operator')} "
                    f"({entry.get('where')}) gave {entry.get('kind')}")  # fmt: skip
        seen = len(entries)
        row = run.scalars.last_row()
        if row is not None and row[0] != last:
            last = row[0]
            loss = row[1].get("loss")
            out(f"step {last}" + ("" if loss is None else f": loss {loss:.6g}"))
        if not run.is_running:
            return
        time.sleep(_PAUSE_S)
        run.refresh()
