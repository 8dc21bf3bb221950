"""A worker that dies or cannot start is an error with a reason, and none stays behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from numpy import zeros

from isograd.errors import CaseError, FrameworkMissingError, UserCodeError, WorkerError
from isograd.frameworks.base import SideSpec
from isograd.tensors import tensor_value
from isograd.worker.host import Worker, environment_of
from isograd.worker.protocols import Networks, Passes
from isograd.worker.requests import PassRequest

NETWORK = """
    import ctypes, os, signal, sys
    from isograd.frameworks.fake.network import Linear, Module

    class Net(Module):
        def __init__(self):
            self.inner = Linear(2, 2)
        def forward(self, x):
            {body}
            return self.inner(x)

    def build():
        return Net()
"""

Network = Callable[[str], SideSpec]


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """A network whose forward pass begins with this statement."""

    def make(body: str) -> SideSpec:
        text = textwrap.dedent(NETWORK).replace("{body}", body)
        (tmp_path / "net.py").write_text(text)
        return SideSpec("fake", "net.py:build", str(tmp_path))

    return make


@pytest.mark.parametrize(
    ("framework", "given", "expected"),
    [
        ("mindspore", {}, "AVX2"),
        ("mindspore", {"ONEDNN_MAX_CPU_ISA": "ALL"}, "ALL"),
        ("mindspore", {"DNNL_MAX_CPU_ISA": "ALL"}, None),
        ("torch", {}, None),
    ],
)
def test_mindspore_convolves_without_avx512_unless_the_user_says_otherwise(
    framework: str, given: dict[str, str], expected: str | None
) -> None:
    assert environment_of(framework, given).get("ONEDNN_MAX_CPU_ISA") == expected


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
@pytest.mark.parametrize("given", [{}, {"GLIBC_TUNABLES": "glibc.malloc.check=1"}])
def test_workers_keep_freed_memory_unless_the_user_says_otherwise(given: dict[str, str]) -> None:
    found = environment_of("torch", given)["GLIBC_TUNABLES"]
    assert ("trim_threshold" in found) is (not given)


def ended(pid: int) -> bool:
    """Whether no process of this id is left, within a second."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def run(worker: Worker, spec: SideSpec) -> None:
    worker.ask(Networks.build, spec, 0)
    worker.stage = "forward"
    from numpy import zeros

    from isograd.tensors import tensor_value

    given = {"0": tensor_value(zeros((1, 2), "f"))}
    worker.ask(Passes.forward, PassRequest("eval", given, [], record=True))


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("print('the disk is full'); sys.stdout.flush(); os._exit(7)", "exit status 7"),
        (
            "print('the disk is full', file=sys.stderr); sys.stderr.flush(); os.abort()",
            "signal SIGABRT",
        ),
        ("print('the disk is full', flush=True); ctypes.string_at(0)", "signal SIGSEGV"),
        ("print('the disk is full', flush=True); os.kill(os.getpid(), 9)", "signal SIGKILL"),
    ],
    ids=["exit", "abort", "segmentation fault", "killed"],
)
def test_a_crash_is_told_with_stage_and_last_words(body: str, how: str, network: Network) -> None:
    with Worker("fake", "port") as worker:
        with pytest.raises(WorkerError) as caught:
            run(worker, network(body))
        assert caught.value.what == (
            f"the port worker (fake) ended with {how} in stage forward, method forward; "
            "its last words: the disk is full"
        )
        assert "the disk is full" in caught.value.last_words
        with pytest.raises(WorkerError, match=re.escape(how)):
            worker.ask(Networks.describe)


def test_a_worker_can_be_started_again_after_a_crash(network: Network) -> None:
    with Worker("fake", "port") as worker, pytest.raises(WorkerError):
        run(worker, network("os._exit(1)"))
    with Worker("fake", "port") as worker:
        run(worker, network("pass"))


def test_output_of_the_users_code_does_not_disturb_the_pipe(network: Network) -> None:
    body = "print('x' * 100000); os.write(1, b'y' * 100000); os.system('echo z')"
    with Worker("fake", "port") as worker:
        run(worker, network(body))
        assert worker.ask(Networks.describe)["framework"] == "fake"


def test_an_error_of_the_users_code_leaves_the_worker_alive(network: Network) -> None:
    with Worker("fake", "port") as worker:
        with pytest.raises(UserCodeError, match=r"ValueError: no at net\.py:9"):
            run(worker, network("raise ValueError('no')"))
        assert len(worker.ask(Networks.state)) == 2


def test_sys_exit_in_the_users_code_is_an_error_of_it(network: Network) -> None:
    with Worker("fake", "port") as worker, pytest.raises(UserCodeError, match="SystemExit: 3"):
        run(worker, network("sys.exit(3)"))


def test_an_unknown_request_is_a_fault_of_isograd() -> None:
    with Worker("fake", "reference") as worker, pytest.raises(WorkerError) as caught:
        worker.call("invent")
    assert "unknown request 'invent'" in caught.value.what


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_the_worker_ends_on_every_way_out(error: type[BaseException]) -> None:
    pids: list[int] = []

    def work() -> None:
        with Worker("fake", "port") as worker:
            worker.ask(Networks.describe)
            pids.append(worker._process.pid)
            raise error

    with pytest.raises(error):
        work()
    assert ended(pids[0])


def test_a_worker_that_is_busy_ends_too(network: Network) -> None:
    with Worker("fake", "port") as worker:
        spec = network("import time; time.sleep(60)")
        worker.ask(Networks.build, spec, 0)
        given = {"0": tensor_value(zeros((1, 2), "f"))}
        worker.begin(Passes.forward, PassRequest("eval", given, [], record=True))
        time.sleep(0.1)
        begin = time.monotonic()
    assert ended(worker._process.pid)
    assert time.monotonic() - begin < 5


def test_a_worker_that_ignores_signals_is_killed(network: Network) -> None:
    from numpy import zeros

    from isograd.tensors import tensor_value

    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN); import time; time.sleep(60)"
    with Worker("fake", "port") as worker:
        worker.ask(Networks.build, network(body), 0)
        given = {"0": tensor_value(zeros((1, 2), "f"))}
        worker.begin(Passes.forward, PassRequest("eval", given, [], record=True))
        time.sleep(0.3)
    assert ended(worker._process.pid)


@pytest.mark.parametrize("end", [Worker.close, Worker.kill])
def test_a_worker_s_temporary_folders_go_with_it(
    network: Network, tmp_path: Path, end: Callable[[Worker], None]
) -> None:
    body = "import pathlib, tempfile; from isograd.frameworks.scratch import scratch_prefix; "
    body += "made = tempfile.mkdtemp(prefix=scratch_prefix(os.getpid())); "
    body += f"pathlib.Path({str(tmp_path / 'made')!r}).write_text(made)"
    with Worker("fake", "port") as worker:
        worker.ask(Networks.build, network(body), 0)
        given = {"0": tensor_value(zeros((1, 2), "f"))}
        worker.ask(Passes.forward, PassRequest("eval", given, [], record=True))
        made = Path((tmp_path / "made").read_text())
        assert made.is_dir()
        end(worker)
    assert not made.exists()


def test_interruption_of_isograd_leaves_no_process(network: Network, tmp_path: Path) -> None:
    """Ctrl-C reaches isograd, which ends its workers; they sit in sessions of their own."""
    network(
        "print('pid', os.getpid()); import pathlib, time; "
        "pathlib.Path(__file__).with_name(f'pid-{os.getpid()}').touch(); time.sleep(60)"
    )
    case = tmp_path / "case.toml"
    side = 'framework = "fake"\nmodel = "net.py:build"\n'
    case.write_text(f"[reference]\n{side}[port]\n{side}[[inputs]]\nshape = [1, 2]\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "isograd", "verify", str(case)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(600):
        if len(list(tmp_path.glob("pid-*"))) == 2 or process.poll() is not None:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    pids = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
    assert len(pids) == 2
    assert all(ended(pid) for pid in pids)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "isograd: interrupted. No report was written."


def test_an_interpreter_that_does_not_exist() -> None:
    with pytest.raises(CaseError) as caught:
        Worker("fake", "port", "/nowhere/python")
    assert str(caught.value) == (
        "[port] python = '/nowhere/python' is not an executable file. "
        "Name a Python interpreter that has the framework."
    )


def test_a_program_that_is_no_python() -> None:
    with Worker("fake", "port", "/bin/false") as worker, pytest.raises(WorkerError) as caught:
        worker.ask(Networks.describe)
    assert "ended with exit status 1 in stage start, method describe" in caught.value.what


@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_an_interpreter_without_the_framework(framework: str, bare_python: Path) -> None:
    worker = Worker(framework, "port", str(bare_python))
    with worker, pytest.raises(FrameworkMissingError) as caught:
        worker.ask(Networks.build, SideSpec(framework, "net.py:build", "."), 0)
    assert str(caught.value) == (
        f"the port side needs {framework}, which {bare_python} cannot import "
        f"(No module named '{framework}'). Install it there (pip install "
        f"'isograd[{framework}]') or set [port] python in the case to an interpreter that has it."
    )


def test_a_bare_interpreter_runs_the_worker(bare_python: Path, network: Network) -> None:
    """A worker needs nothing but numpy: not isograd installed, not its other dependencies."""
    with Worker("fake", "port", str(bare_python)) as worker:
        run(worker, network("pass"))
