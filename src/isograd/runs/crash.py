"""Says that a process crashed, which it cannot say itself."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

#: Waits until the pipe is closed; a process that leaves well has written a byte before.
_WATCHMAN = "import sys\nif not sys.stdin.buffer.read():\n    sys.stderr.write(sys.argv[1])\n"


@contextlib.contextmanager
def crash_notice(message: str) -> Iterator[None]:
    """Have another process write the message to standard error if this one ends inside."""
    command = [sys.executable, "-I", "-S", "-c", _WATCHMAN, f"{message}\n"]
    try:
        watchman = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    except OSError:  # no process can be made: the training matters more
        yield
        return
    try:
        yield
    finally:
        watchman.communicate(b".")
