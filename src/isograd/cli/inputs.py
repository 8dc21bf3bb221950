"""Types of arguments: what a verb reads, which must be readable, and what it writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from isograd.errors import UsageError


class Input(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions
    """A file or a folder that a verb reads: it must be there and readable."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path; UsageError where it cannot be read."""
        path = Path(value)
        require_readable(path)
        return path


def require_readable(path: Path) -> None:
    """Raise UsageError for a path that is not there or cannot be read."""
    try:
        is_there = path.exists()
        is_folder = is_there and path.is_dir()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if not is_there:
        raise UsageError(f"there is no file or folder {path}", "Correct the path.")
    needed = os.R_OK | os.X_OK if is_folder else os.R_OK
    if not os.access(path, needed):
        raise _unreadable(path, PermissionError(13, "permission denied"))


def _unreadable(path: Path, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or str(error)
    return UsageError(
        f"{path} cannot be read: {str(reason).lower()}",
        "Give a path that you may read.",
    )


#: The type of an argument that is read, and of an option that names a file to write.
INPUT = Input()
OUTPUT = click.Path(path_type=Path)
