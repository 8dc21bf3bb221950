"""Output files that appear whole or not at all, and are known to be writable before work begins.

Also standard output, where a report and the user's code would both write to it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isograd.errors import UsageError


@contextmanager
def standard_output_kept(is_for_report: bool) -> Iterator[None]:
    """Send what the user's code prints to standard error, where a report has standard output."""
    if not is_for_report:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)  # also for what frameworks and their processes print
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def cache_folder() -> Path:
    """Where isograd remembers things for the user: XDG_CACHE_HOME, else ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isograd"


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, atomically; a lone surrogate is written as its escape.

    Raises UsageError where the file cannot be written.
    """
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes, atomically: readers see the old file or the whole new one.

    A link is followed; a device or a pipe is written to directly, never replaced.
    Raises UsageError where the file cannot be written.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        partial = _partial(target)
        try:
            with partial.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            if target.exists():
                partial.chmod(target.stat().st_mode & 0o777)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise _unwritable(path, error) from error


def require_writable(path: Path) -> None:
    """Raise UsageError unless a file can be written at this path now."""
    try:
        target = path.resolve()
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if target.exists() and not target.is_file():
            return
        partial = _partial(target)
        partial.open("xb").close()
        partial.unlink()
    except (OSError, RuntimeError) as error:
        raise _unwritable(path, error) from error


def require_path(path: Path, advice: str, *, what: str = "", is_readable: bool = True) -> None:
    """Raise UsageError for a path that is not there or cannot be looked at, or not be read.

    what: what stands before the path in the message, as "the case file ".
    """
    try:
        is_there = path.exists()
        is_folder = is_there and path.is_dir()
    except (OSError, ValueError) as error:
        raise UsageError(f"{what}{path} cannot be read: {_reason(error)}", advice) from error
    if not is_there:
        raise UsageError(f"{what}{path} does not exist", advice)
    if is_readable and not os.access(path, os.R_OK | os.X_OK if is_folder else os.R_OK):
        raise UsageError(f"{what}{path} cannot be read: permission denied", advice)


def resolved(path: Path) -> Path:
    """The absolute path without links; UsageError where the system knows no such path."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        advice = "Correct the path, or the rights of its folder."
        raise UsageError(f"{path} cannot be looked at: {_reason(error)}", advice) from error


def prepare_folder(path: Path) -> None:
    """Make a folder for a run's files; UsageError where it is not empty or cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        occupied = any(path.iterdir())
        require_writable(path / "probe")
    except OSError as error:
        raise UsageError(
            f"the folder {path} cannot be made: {_reason(error)}",
            "Give a folder in which you may write.",
        ) from error
    if occupied:
        raise UsageError(
            f"the folder {path} is not empty",
            "Give a new or an empty folder, so that nothing is mixed up.",
        )


def _partial(target: Path) -> Path:
    return target.with_name(f".isograd-{os.getpid()}-{os.urandom(4).hex()}.partial")


def _unwritable(path: Path, error: Exception) -> UsageError:
    return UsageError(
        f"{path} cannot be written: {_reason(error)}",
        "Give a file in a folder that exists and in which you may write.",
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
