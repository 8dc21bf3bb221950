"""Where the benchmarks of watch keep what they found."""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


def write(name: str, found: dict[str, Any]) -> None:
    """Keep the results with commit, machine and date."""
    FOLDER.mkdir(exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        cwd=FOLDER,
    ).stdout.strip()
    facts = {
        "commit": commit,
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.processor() or platform.system()}",
    }
    (FOLDER / f"{name}.json").write_text(json.dumps({**facts, **found}, indent=1) + "\n")


def summary(title: str, rows: list[dict[str, Any]]) -> str:
    """How many of the rows are right, and which are not."""
    right = sum(bool(row["right"]) for row in rows)
    wrong = [f"  {row}" for row in rows if not row["right"]]
    return "\n".join([f"{title}: {right} of {len(rows)} right", *wrong])
