"""A user's file is read as it is, whatever bytecode of it lies beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LOAD = """
from isograd.frameworks.user_code import load_callable
print(load_callable({!r}, {!r}, 'model')())
"""


def loaded(folder: Path, reference: str) -> str:
    """What the callable returns, in a process that may write and read bytecode."""
    command = [sys.executable, "-c", LOAD.format(reference, str(folder))]
    without = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=without)
    return done.stdout.strip()


def write(path: Path, text: str) -> None:
    """A file that was changed in the same second."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, (1_700_000_000, 1_700_000_000))


def test_a_file_that_changes_within_a_second_is_read_again(tmp_path: Path) -> None:
    port, part = tmp_path / "port.py", tmp_path / "part.py"
    text = "import part\n\n\ndef build():\n    return 'relu', part.SIZE\n"
    write(port, text)
    write(part, "SIZE = 1\n")
    assert loaded(tmp_path, "port.py:build") == "('relu', 1)"
    write(port, text.replace("relu", "tanh"))
    write(part, "SIZE = 2\n")
    assert loaded(tmp_path, "port.py:build") == "('tanh', 2)"
    assert loaded(tmp_path, "port:build") == "('tanh', 2)"
    assert not (tmp_path / "__pycache__").exists()
