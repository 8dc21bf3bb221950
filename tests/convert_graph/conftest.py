"""Exports run in processes that have imported torch.export, which takes longer than they do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.warm_python import run_script

from isograd.convert.graph import run as run_module


def _run(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
    return run_script(command, ["torch", "torch.export", "torch._dynamo"])


@pytest.fixture(autouse=True)
def warm_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/convert_verifying/test_command.py exports with a process that begins from nothing."""
    warm = SimpleNamespace(run=_run, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(run_module, "subprocess", warm)
