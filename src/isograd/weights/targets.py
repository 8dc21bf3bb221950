"""Where a conversion writes: a file or a folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isograd.errors import CheckpointError, UsageError


def check_target(target: Path, *, is_folder: bool, is_forced: bool = False) -> None:
    """Raise UsageError where the target cannot be written as a new file or folder.

    is_forced: whether a file that is there is replaced.
    """
    if is_folder:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise UsageError(
                f"{target} is there already, and shards are written into a new folder",
                "Name a folder that does not exist or is empty.",
            )
    elif target.is_dir():
        raise UsageError(
            f"{target} is a folder", "Name a file in it, or write shards with --shard-size."
        )
    elif target.exists() and not target.is_file():
        raise UsageError(f"{target} is no regular file", "Name a file.")
    elif target.exists() and not is_forced:
        raise UsageError(f"{target} is there already", "Name another file, or replace it: --force.")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "Make it first, or name another target.")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{folder} cannot be written", "Name a folder in which you may write.")


def check_space(target: Path, size_bytes: int) -> None:
    """Raise CheckpointError where the disk has less room than the target needs."""
    free = shutil.disk_usage(target.resolve().parent).free
    if size_bytes > free:
        raise CheckpointError(
            f"{target} needs {size_bytes:,} bytes, and its disk has {free:,} free",
            "Make room, or name a target on another disk.",
        )


@contextmanager
def appearing(target: Path, *, is_folder: bool) -> Iterator[Path]:
    """A path to write to, renamed to the target at the end; nothing is left after an error.

    The caller syncs the files.  Raises CheckpointError where writing fails.
    """
    final = target.resolve()
    partial = final.with_name(f".isograd-{os.getpid()}-{os.urandom(4).hex()}.partial")
    try:
        if is_folder:
            partial.mkdir()
        yield partial
        if not is_folder and final.exists():
            partial.chmod(final.stat().st_mode & 0o777)
        partial.replace(final)
        sync(final.parent)
    except OSError as error:
        raise CheckpointError(
            f"{target}: cannot be written ({error.strerror or error})",
            "Check the folder and the space in it.",
        ) from error
    finally:
        if is_folder:
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file or the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
