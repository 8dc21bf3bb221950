"""Errors as one message on standard error; what is longer goes to a file in the cache folder."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

import click

from isograd.errors import IsogradError, UserCodeError, WorkerError
from isograd.files import cache_folder
from isograd.report.words import printable

#: Details of errors that are kept; the oldest is forgotten first.
MOST_KEPT = 20
UNABLE = 2
INTERRUPTED = 130


def say(message: str) -> None:
    """One message on standard error, without control characters that a name may carry."""
    lines = [printable(line) for line in f"isograd: {message}".split("\n")]
    click.echo("\n".join(lines), err=True)


def report_error(error: IsogradError) -> None:
    """Say what went wrong and what to do; the user's own traceback is kept in a file."""
    message = str(error)
    details = ""
    if isinstance(error, UserCodeError):
        details = error.trace
    elif isinstance(error, WorkerError):
        details = error.last_words
    if details.strip():
        message += f" Details: {_keep(details)}"
    say(message)


def report_unexpected(error: Exception) -> None:
    """Say that isograd itself failed, where, and where the traceback lies."""
    trace = "".join(traceback.format_exception(error))
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"
    what = str(error).strip().split("\n")[0]
    say(
        f"internal error at {where}: {type(error).__name__}: {what}. "
        f"Please report it with the traceback in {_keep(trace)}."
    )


def _keep(text: str) -> str:
    """Write the text to a new file in the user's cache folder and return its name."""
    folder = cache_folder() / "errors"
    file = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="replace")
        kept = sorted(folder.glob("*.txt"), key=lambda one: one.stat().st_mtime, reverse=True)
        for old in kept[MOST_KEPT:]:
            old.unlink(missing_ok=True)
    except OSError as error:
        return f"(the folder {folder} cannot be written: {error})"
    return str(file)
