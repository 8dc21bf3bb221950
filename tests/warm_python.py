"""Runs Python code in a process of its own that has imported a framework already.

An import takes two to six seconds of processor time, more than what most tests run.  MindSpore runs
each operator at once there: otherwise its threads wait for each other in loops, and beside other
processes of tests a small network takes nine times as much processor time (12.5 s, 1.4 s).  Tests
that start a command as a process of its own run as users do.
"""

from __future__ import annotations

import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_LONGEST_S = 300.0
#: What a framework imports at an optimizer's first step, which takes as long as its own import.
_LATE = {"torch": "torch._dynamo"}
#: Imports what its arguments name; for each line of its input it splits off a process.  Collections
#: of garbage there leave alone what was imported.
_SERVER = """
import gc
gc.disable()
import importlib, json, os, sys, traceback, types

def run(request):
    os.chdir(request["cwd"])
    for number, name in enumerate(("in", "out", "err")):
        os.dup2(os.open(request[name], os.O_RDWR), number)
    sys.stdin = open(0, closefd=False)
    sys.argv = ["-c", *request["arguments"]]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    status = 0
    if "mindspore" in sys.modules:
        sys.modules["mindspore"].runtime.launch_blocking()
    try:
        exec(compile(request["code"], "<string>", "exec"), vars(main))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else error.code is not None
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

for name in sys.argv[1:]:
    importlib.import_module(name)
gc.enable()
gc.freeze()
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def run_python(
    code: str,
    *arguments: str,
    cwd: Path,
    imported: Sequence[str],
    given: str = "",
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run([sys.executable, "-c", code, *arguments])` with text and captured output.

    imported: modules that are imported when the code begins.  given: the standard input.  Raises
    subprocess.TimeoutExpired after five minutes.
    """
    with tempfile.TemporaryDirectory() as name:
        files = {end: Path(name) / end for end in ("in", "out", "err")}
        for path in files.values():
            path.write_text(given if path.name == "in" else "", encoding="utf-8")
        paths = {end: str(path) for end, path in files.items()}
        status = _ask(
            tuple(imported), {"code": code, "cwd": str(cwd), "arguments": arguments, **paths}
        )
        return subprocess.CompletedProcess(
            [sys.executable, "-c", code, *arguments],
            status,
            files["out"].read_text(encoding="utf-8"),
            files["err"].read_text(encoding="utf-8"),
        )


def run_script(
    command: Sequence[str], imported: Sequence[str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """As `run_python`, for a command that runs a file: the interpreter, the file, its arguments."""
    code = (
        "import os, runpy, sys; sys.argv = sys.argv[1:]; "
        "sys.path[0] = os.path.dirname(sys.argv[0]); "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    return run_python(code, *command[1:], cwd=cwd or Path.cwd(), imported=imported)


def _ask(imported: tuple[str, ...], request: dict[str, object]) -> int:
    server = _server(imported)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], _LONGEST_S)[0]:
        os.killpg(server.pid, signal.SIGKILL)
        _server.cache_clear()
        raise subprocess.TimeoutExpired(["python"], _LONGEST_S)
    return int(server.stdout.readline())


@functools.cache
def _server(imported: tuple[str, ...]) -> subprocess.Popen[str]:
    """The process that has imported these; it ends when its input closes, as ours does."""
    modules = [*imported, *(_LATE[name] for name in imported if name in _LATE)]
    return subprocess.Popen(
        [sys.executable, "-c", _SERVER, *modules],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A thread of the process that splits off would hold its locks for ever in the other.
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
