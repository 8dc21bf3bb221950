"""docs/guide.md: every command runs, ends as it says, and prints what it shows."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_STATUS = re.compile(r"# exit status (\d)$")


@dataclass(frozen=True)
class Step:
    """A command with its exit status and the lines that are shown of its output."""

    command: tuple[str, ...]
    status: int
    shown: tuple[str, ...]


def _steps(text: str) -> list[Step]:
    found = []
    for block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *shown = part.rstrip("\n").split("\n")
            status = _STATUS.search(first)
            words = shlex.split(first, comments=True)
            found.append(Step(tuple(words), int(status[1]) if status else 0, tuple(shown)))
    return found


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
    reason="the guide needs both frameworks",
)
def test_every_command_of_the_guide(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "examples" / "guide", tmp_path / "guide")
    text = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    steps = _steps(text)
    assert [step.command[1] for step in steps if step.command[0] == "isograd"] == (
        "scan convert init verify explain verify verify weights params".split()
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    programs = {"isograd": [sys.executable, "-m", "isograd"], "python": [sys.executable]}
    for step in steps:
        program, *arguments = step.command
        done = subprocess.run(
            [*programs[program], *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == step.status, (step, done.stdout, done.stderr)
        lines = done.stdout.splitlines()
        assert [line for line in step.shown if line not in lines] == [], (step, done.stdout)
    port = (folder / "converted" / "net_torch.py").read_text(encoding="utf-8")
    _, shown_step = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert shown_step in port
