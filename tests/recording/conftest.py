"""Runs scripts in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"
RunScript = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_script() -> RunScript:
    """Run a Python script in a process of its own."""

    def run(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(SOURCES), "GLOG_v": "3"}
        return subprocess.run(
            [sys.executable, "-c", text, *map(str, arguments)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def succeed(run_script: RunScript) -> Callable[..., str]:
    """Run a script that must end well, and return what it printed."""

    def run(text: str, *arguments: object) -> str:
        done = run_script(text, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
