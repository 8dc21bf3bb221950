"""Training scripts are converted with no hand edit, import no torch, and follow the original."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

ROOT = Path(__file__).parents[2]
BENCHMARK = ROOT / "benchmarks" / "convert" / "training.py"


@pytest.mark.parametrize(
    "name", ["classification", "language_model", "segmentation", "fine_tuning", "gan"]
)
def test_example_follows_its_original(name: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    command = [sys.executable, str(BENCHMARK), "--small", "--no-verify", "--only", name]
    done = subprocess.run(
        [*command, "--json", str(answer)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for row in json.loads(answer.read_text(encoding="utf-8"))["scripts"]:
        assert row["left"] == 0
        assert row["steps"] >= 1
        assert row["numbers"] >= 20
        assert row["early"] < 1e-4
