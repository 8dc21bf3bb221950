"""Temporary folders of a process, named by it, so that what it leaves is found after its end."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path


def scratch_prefix(pid: int) -> str:
    """How the names of a process's temporary folders begin."""
    return f"isograd-{pid}-"


def clear_scratch(pid: int) -> None:
    """Remove what a process that has ended left in the folder for temporary files."""
    for folder in Path(tempfile.gettempdir()).glob(f"{scratch_prefix(pid)}*"):
        shutil.rmtree(folder, ignore_errors=True)
