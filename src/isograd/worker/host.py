"""isograd's end of a worker: start it, ask it, end it on every way out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from isograd import errors
from isograd.errors import FrameworkMissingError, IsogradError, UserCodeError, WorkerError
from isograd.frameworks.instructions import instruction_limit
from isograd.frameworks.scratch import clear_scratch
from isograd.worker.asking import Asker
from isograd.worker.wire import read_message, write_message

_PACKAGE = Path(__file__).resolve().parent.parent
_LAST_WORDS_LINES = 12
_PIPE_BYTES = 1 << 20
#: What a worker frees it needs again at once, and clearing new pages takes longer than arithmetic:
#: a verification of AlexNet takes two thirds of the time with pages that are kept, and large.
_KEEPS_MEMORY = ":".join(
    (
        f"glibc.malloc.mmap_threshold={1 << 40}",
        f"glibc.malloc.trim_threshold={1 << 40}",
        "glibc.malloc.hugetlb=1",
    )
)
_EXTRAS = {"torch": "torch", "mindspore": "mindspore", "mindspore-compiled": "mindspore"}


def environment_of(framework: str, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a worker's process: the user's, and where they say nothing ours."""
    found = {"GLOG_v": "3"}
    # Two workers take turns: threads that wait by spinning would halve the speed of both.
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    found |= {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    if sys.platform == "linux":
        found["GLIBC_TUNABLES"] = _KEEPS_MEMORY
    if framework.startswith("mindspore") and not instruction_limit(given):
        # With AVX-512, MindSpore 2.10's convolutions of more than one pixel are oneDNN's reference
        # implementation, 10 to 50 times slower (benchmarks/verify/convolutions.py).
        found["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    found |= given
    found.pop("PYTHONHOME", None)
    return found


class Process(Protocol):
    """What a worker's process can be asked: as `subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """Its identifier, and that of its group."""

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; raises `subprocess.TimeoutExpired`."""

    def kill(self) -> None:
        """End it at once."""


@dataclass(frozen=True)
class Launch:
    """What a worker's process is started from: descriptors to read, to write and to print to."""

    service: str
    framework: str
    python: str
    reading: int
    writing: int
    log: int

    def command(self, *words: str) -> list[str]:
        """The command of a process that runs `child.py`."""
        child = str(_PACKAGE / "worker" / "child.py")
        return [self.python, child, str(_PACKAGE), self.service, self.framework, *words]


def launched(launch: Launch) -> Process:
    """Start a worker's process anew."""
    return subprocess.Popen(
        launch.command(str(launch.reading), str(launch.writing)),
        stdin=subprocess.DEVNULL,
        stdout=launch.log,
        stderr=launch.log,
        pass_fds=(launch.reading, launch.writing),
        env=environment_of(launch.framework, os.environ),
        start_new_session=True,
    )


class Worker(Asker):
    """A process that holds one framework and one network.

    service: the class that answers there, ``module:name``; it is made with the framework's name.
    launch: what starts the process; see `isograd.worker.warm`.
    Raises `FrameworkMissingError` where the interpreter lacks the framework, `UserCodeError`
    where the user's code raises, `WorkerError` where the process dies.
    """

    def __init__(
        self,
        framework: str,
        side: str,
        python: str | None = None,
        service: str = "isograd.worker.service:Service",
        launch: Callable[[Launch], Process] = launched,
    ) -> None:
        self.framework = framework
        self.side = side
        self.stage = "start"
        self._python = _interpreter(python, side)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the worker
        to_child, self._out = _wide_pipe()
        self._in, from_child = _wide_pipe()
        place = to_child, from_child, self._log.fileno()
        self._process = launch(Launch(service, framework, self._python, *place))
        os.close(to_child)
        os.close(from_child)
        self._sink = os.fdopen(self._out, "wb")
        self._source = os.fdopen(self._in, "rb", buffering=0)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, method: str, *arguments: Any) -> Any:
        """Ask the worker and wait for its answer."""
        self.send(method, *arguments)
        return self.receive()

    def send(self, method: str, *arguments: Any) -> None:
        """Ask the worker; the answer is fetched by `receive`."""
        self._method = method
        try:
            write_message(self._sink, (method, list(arguments)))
        except (BrokenPipeError, ValueError):
            raise self._died() from None

    def receive(self, patience_s: float | None = None) -> Any:
        """The answer to the last `send`; a worker that lets wait for longer is ended."""
        if patience_s is not None and not select.select([self._in], [], [], patience_s)[0]:
            self._end_group(signal.SIGKILL)
            raise WorkerError(
                f"the {self.side} worker ({self.framework}) gave no answer within "
                f"{patience_s:.0f} s in stage {self.stage}, method {self._method}",
                "Make the network smaller for the verification, or leave out what hangs.",
            )
        try:
            status, answer = read_message(self._source)
        except EOFError:
            raise self._died() from None
        if status == "ok":
            return answer
        if status == "error":
            raise _rebuilt(*answer)
        text, trace = answer
        if "No module named" in text or "ImportError" in text.partition(":")[0]:
            missing = _missing_framework(text, trace, self.framework)
            if missing:
                raise FrameworkMissingError(
                    f"the {self.side} side needs {self.framework}, which {self._python} "
                    f"cannot import ({missing})",
                    f"Install it there (pip install 'isograd[{_EXTRAS.get(self.framework)}]') "
                    f"or set [{self.side}] python in the case to an interpreter that has it.",
                )
        raise WorkerError(
            f"the {self.side} worker ({self.framework}) failed in stage {self.stage}: {text}",
            "If the network runs on its own, this is a fault of isograd: report it with the "
            "trace in --json.",
            trace,
        )

    def _died(self) -> WorkerError:
        try:
            code = self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        how = f"exit status {code}"
        if code < 0:
            try:
                how = f"signal {signal.Signals(-code).name}"
            except ValueError:
                how = f"signal {-code}"
        words = self.last_words()
        said = words.strip().splitlines()[-1].strip()[:300] if words.strip() else "nothing"
        return WorkerError(
            f"the {self.side} worker ({self.framework}) ended with {how} in stage {self.stage}, "
            f"method {self._method}; its last words: {said}",
            "Run the network on its own in that interpreter, or leave out what crashes it.",
            words,
        )

    def last_words(self) -> str:
        """The last lines that the worker printed."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 8192))
        text = self._log.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-_LAST_WORDS_LINES:])

    def kill(self) -> None:
        """End the process at once; who waits for its answer gets a `WorkerError`."""
        self._end_group(signal.SIGKILL)

    def close(self) -> None:
        """End the process; safe to call again."""
        for stream in (self._sink, self._source):
            with contextlib.suppress(OSError):
                stream.close()
        if self._process.poll() is None:
            try:
                self._process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                self._end_group(signal.SIGTERM)
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._end_group(signal.SIGKILL)
            self._process.wait()
        clear_scratch(self._process.pid)  # a worker leaves at once, and clears nothing itself
        self._log.close()

    def _end_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


def _wide_pipe() -> tuple[int, int]:
    """A pipe that holds more than 64 KiB, where the system grants it: tensors pass 2.5 × as fast.

    Measured on 2 cores, Linux 6: 0.37 GB/s with 64 KiB, 0.88 GB/s with 1 MiB.
    """
    reading, writing = os.pipe()
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # the user's pipes hold as much as they may already
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return reading, writing


def _interpreter(python: str | None, side: str) -> str:
    if python is None:
        return sys.executable
    found = shutil.which(os.path.expanduser(python))
    if found is None:
        raise errors.CaseError(
            f"[{side}] python = {python!r} is not an executable file",
            "Name a Python interpreter that has the framework.",
        )
    return found


def _rebuilt(kind: str, what: str, advice: str, trace: str) -> IsogradError:
    found = getattr(errors, kind, IsogradError)
    if found is UserCodeError:
        return UserCodeError(what, advice, trace)
    error: IsogradError = found(what, advice)
    return error


def _missing_framework(text: str, trace: str, framework: str) -> str | None:
    """What is missing where the adapter itself, not the user's code, failed to import."""
    inside_adapter = f"isograd/frameworks/{framework}" in trace or "isograd/worker" in trace
    return text.partition(":")[2].strip() if inside_adapter else None
