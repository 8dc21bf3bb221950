"""Workers for many cases: the framework is imported once, and each worker is a process of its own.

All adapters of one framework come from one process. A verification of a small network takes half as
long so.  Where a process cannot be split off (not Linux, a framework that is missing or that starts
threads), a worker starts as it always does.
"""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType

from isograd.frameworks.registry import package_of
from isograd.worker.forks import READY, SEPARATOR
from isograd.worker.host import Launch, Process, Worker, environment_of, launched

_IMPORT_S = 120.0
#: A framework takes some hundred megabytes, so that no more than these are held.
_MOST_SERVERS = 6
#: pytest's variable for the test that runs: it changes with every test, and no framework reads it.
_RUNNING_TEST = "PYTEST_CURRENT_TEST"
_Key = tuple[str, str, str, tuple[tuple[str, str], ...]]


class WarmWorkers:
    """Starts workers from processes that have imported their frameworks; closes these at its end.

    Each worker is closed by whoever started it.
    """

    def __init__(self) -> None:
        self._servers: dict[_Key, _Server | None] = {}

    def __enter__(self) -> WarmWorkers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def worker(self, framework: str, side: str, python: str | None = None) -> Worker:
        """A worker as `Worker(framework, side, python)`."""
        return Worker(framework, side, python, launch=self._launch)

    @property
    def processes(self) -> tuple[int, ...]:
        """The identifiers of the processes that hold a framework."""
        return tuple(server.pid for server in self._servers.values() if server is not None)

    def close(self) -> None:
        """End the processes that hold the frameworks; safe to call again."""
        for server in self._servers.values():
            if server is not None:
                server.close()
        self._servers.clear()

    def _launch(self, launch: Launch) -> Process:
        variables = environment_of(launch.framework, os.environ)
        package = package_of(launch.framework)
        same = tuple(sorted(item for item in variables.items() if item[0] != _RUNNING_TEST))
        key = (launch.service, package, launch.python, same)
        # The last one used stands last; the first makes room.
        server = self._servers.pop(key) if key in self._servers else self._begin(launch, variables)
        self._servers[key] = server
        found = None if server is None else server.split(launch)
        return launched(launch) if found is None else found

    def _begin(self, launch: Launch, variables: dict[str, str]) -> _Server | None:
        while len(self._servers) >= _MOST_SERVERS:
            oldest = self._servers.pop(next(iter(self._servers)))
            if oldest is not None:
                oldest.close()
        if sys.platform != "linux":
            return None
        return _Server(launch, package_of(launch.framework), variables)


class _Server:
    """One process that has imported a framework."""

    def __init__(self, launch: Launch, package: str, variables: dict[str, str]) -> None:
        self._control, theirs = socket.socketpair()
        self._is_ready: bool | None = None
        self._process = subprocess.Popen(
            dataclasses.replace(launch, framework=package).command("warm", str(theirs.fileno())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env=variables,
            start_new_session=True,
        )
        theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def split(self, launch: Launch) -> _Split | None:
        """A worker, or None where this process cannot give one."""
        if self._is_ready is None:
            self._is_ready = self._answer() == READY
        if not self._is_ready:
            return None
        reading, status = os.pipe()
        descriptors = (launch.reading, launch.writing, launch.log, status)
        try:
            request = SEPARATOR.join(map(os.fsencode, (launch.framework, os.getcwd())))
            socket.send_fds(self._control, [request], descriptors)
        except OSError:
            os.close(reading)
            self._is_ready = False
            return None
        finally:
            os.close(status)
        return _Split(reading)

    def _answer(self) -> bytes:
        if not select.select([self._control], [], [], _IMPORT_S)[0]:
            return b""
        try:
            return self._control.recv(len(READY))
        except OSError:
            return b""

    def close(self) -> None:
        """End the process; workers that it split off go on."""
        self._control.close()
        try:
            self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Split:
    """A worker that is no child of ours: its identifier and exit status come through a pipe."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._said = b""
        self._code: int | None = None
        self._args: Sequence[str] = ("worker",)

    @property
    def pid(self) -> int:
        """The process's identifier."""
        while b"\n" not in self._said and self._read(None):
            pass
        return int(self._said.partition(b"\n")[0] or 0)

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        while self._code is None and self._read(0.0):
            pass
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; raises `subprocess.TimeoutExpired`."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._code is None:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not self._read(left) and self._code is None:
                raise subprocess.TimeoutExpired(self._args, timeout or 0.0)
        return self._code

    def kill(self) -> None:
        """End the process at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _read(self, patience_s: float | None) -> bool:
        """Take in what was reported; whether anything was."""
        if self._code is not None or not select.select([self._status], [], [], patience_s)[0]:
            return False
        found = os.read(self._status, 64)
        self._said += found
        lines = self._said.split(b"\n")
        if len(lines) > 2 or not found:
            # A guard that ends without a report was killed, and so was all that it guarded.
            self._code = int(lines[1]) if len(lines) > 2 else -signal.SIGKILL
            os.close(self._status)
        return bool(found)
