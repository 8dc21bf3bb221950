"""Errors as one message on standard error; what is longer goes to a temporary file."""

from __future__ import annotations

import traceback
from pathlib import Path

import click

from isograd.errors import IsogradError, UserCodeError, WorkerError
from isograd.report.wording import printable

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
    """Write the text to a new file in the temporary folder and return its name."""
    import tempfile

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="isograd-", suffix=".txt", delete=False, encoding="utf-8", errors="replace"
        ) as stream:
            stream.write(text)
    except OSError as error:
        return f"(the temporary folder cannot be written: {error})"
    return stream.name
