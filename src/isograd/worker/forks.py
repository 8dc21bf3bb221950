"""A process that has imported a framework and splits off one worker for each request.

An import takes as long as all the arithmetic of a small network.  Nothing of a network ever runs
in this process, so each worker starts as a new process does; no thread runs in it either.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import threading
import traceback
from collections.abc import Callable

#: What is answered once the framework is imported, and by a process that cannot be split.
READY = b"ready"
UNABLE = b"unable"
#: Between the parts of a request.
SEPARATOR = b"\0"
#: Answers as an adapter, by its name, from one descriptor to another.
_Run = Callable[[str, int, int], None]
_LONGEST_PATH_BYTES = 1 << 16
_DESCRIPTORS = 4


def serve(control: socket.socket, run: _Run) -> None:
    """Split off workers until the other end closes.

    A request is the adapter's name and the worker's folder, with the descriptors that it reads
    from, writes to, prints to, and that its process identifier and exit status are written to.
    """
    if threading.active_count() > 1 or _count_of_threads() > 1:
        control.sendall(UNABLE)  # a lock that another thread holds would stay held in the worker
        return
    # No worker's collection of garbage goes through what is imported, nor copies its pages for it.
    gc.freeze()
    control.sendall(READY)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, _LONGEST_PATH_BYTES, _DESCRIPTORS)
        if not request:
            return
        framework, _, folder = map(os.fsdecode, request.partition(SEPARATOR))
        if os.fork() == 0:
            control.close()
            reading, writing, log, status = descriptors
            _guard(folder, framework, reading, writing, log, status, run)
        for descriptor in descriptors:
            os.close(descriptor)


def _count_of_threads() -> int:
    with contextlib.suppress(OSError):
        return len(os.listdir("/proc/self/task"))
    return 1


def _guard(
    folder: str, framework: str, reading: int, writing: int, log: int, status: int, run: _Run
) -> None:
    """Start the worker, and report how it ended; does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker = os.fork()
    if worker == 0:
        _work(folder, framework, reading, writing, log, status, run)
    with contextlib.suppress(OSError):  # the worker may have done it, or have ended
        os.setpgid(worker, worker)
    for descriptor in (reading, writing, log):
        os.close(descriptor)
    with contextlib.suppress(OSError):  # nobody may wait for it any more
        os.write(status, f"{worker}\n".encode())
        _, how = os.waitpid(worker, 0)
        os.write(status, f"{os.waitstatus_to_exitcode(how)}\n".encode())
    os._exit(0)


def _work(
    folder: str, framework: str, reading: int, writing: int, log: int, status: int, run: _Run
) -> None:
    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        os.close(status)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.chdir(folder)
        run(framework, reading, writing)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
