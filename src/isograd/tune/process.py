"""A trial as a process of its own: started, listened to, stopped with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from isograd.errors import UsageError
from isograd.tune.values import LOG

#: Seconds between two looks at a trial that runs.
_INTERVAL_S = 0.2
#: Seconds that a trial has to end by itself when it is stopped.
_GRACE_S = 5.0


@contextlib.contextmanager
def started(
    command: Sequence[str], working_folder: Path, environment: Mapping[str, str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a trial whose output goes to its log; on leaving, nothing of it runs any longer.

    Raises UsageError where the program cannot be started.
    """
    with (folder / LOG).open("ab") as log:
        try:
            process = subprocess.Popen(
                command,
                cwd=working_folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{command[0]}: cannot be started in {working_folder} ({error})",
                "Name a program that is installed, and a working_folder that exists.",
            ) from error
    try:
        yield process
    finally:
        stop(process)


def wait(
    process: subprocess.Popen[bytes], look: Callable[[], str], limit_s: float | None
) -> tuple[int | None, str]:
    """Wait for the end; (exit status, "") or (None, why the trial was stopped).

    look: called often; what it returns, if anything, is the reason to stop.
    """
    begun = time.monotonic()
    while process.poll() is None:
        reason = look()
        if not reason and limit_s is not None and time.monotonic() - begun > limit_s:
            reason = f"stopped: it ran longer than {limit_s:g} s"
        if reason:
            stop(process)
            return None, reason
        time.sleep(_INTERVAL_S)
    return process.returncode, ""


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children: first politely, then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        if number is signal.SIGTERM and _is_group_gone(process.pid):
            return


def _is_group_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return True
    return False


def last_words(folder: Path) -> str:
    """The last line that a trial printed, for the reason why it failed."""
    from isograd.tune.values import tail

    lines = [line.strip() for line in tail(folder / LOG).splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
