"""Networks that nobody wrote: their ports by `isograd convert` raise no alarm.

benchmarks/verify/random_networks draws hundreds; these ten are the same in every run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "benchmarks" / "verify" / "random_networks" / "run.py"
COUNT = 10


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "mindspore")),
    reason="both frameworks are needed",
)
def test_ten_random_networks_raise_no_alarm(tmp_path: Path) -> None:
    out = tmp_path / "outcomes.jsonl"
    command = [sys.executable, str(SCRIPT), "--first", "1000", "--count", str(COUNT)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    found = subprocess.run(
        [*command, "--out", str(out)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    outcomes = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({row["seed"] for row in outcomes}) == COUNT
    assert {row["port"] for row in outcomes} == {"convert", "native"}
    equivalent = [row for row in outcomes if row["verdict"] == "equivalent"]
    assert len(equivalent) >= COUNT  # the rest carries a mark that a person has to look at
