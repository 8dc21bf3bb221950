"""Workers that are split off behave as workers that are started, whatever becomes of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from isograd.errors import FrameworkMissingError, WorkerError
from isograd.frameworks.base import SideSpec
from isograd.progress import SilentProgress
from isograd.verify.ladder import verify_case
from isograd.worker.warm import WarmWorkers

EXAMPLES = Path(__file__).parents[2] / "examples" / "fake"


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmWorkers]:
    with WarmWorkers() as found:
        yield found


def _network(folder: Path, body: str) -> SideSpec:
    (folder / "net.py").write_text(f"import os, signal, sys, time\n\ndef build():\n    {body}\n")
    return SideSpec("fake", "net.py:build", str(folder))


def _has_ended(pid: int) -> bool:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_each_worker_is_a_process_of_its_own_with_the_imports_done(warm: WarmWorkers) -> None:
    with warm.worker("fake", "port") as first, warm.worker("fake", "port") as second:
        assert first.call("describe")["framework"] == "fake"
        assert second.call("describe")["framework"] == "fake"
        pids = [first._process.pid, second._process.pid]
        assert len({*pids, os.getpid()}) == 3
    assert [_has_ended(pid) for pid in pids] == [True, True]


@pytest.mark.parametrize(
    ("body", "how"),
    [
        pytest.param("print('full', flush=True); os._exit(3)", "exit status 3", id="exit"),
        pytest.param("print('full', flush=True); os.abort()", "signal SIGABRT", id="abort"),
        pytest.param(
            "print('full', flush=True); os.kill(os.getpid(), 9)", "signal SIGKILL", id="killed"
        ),
    ],
)
def test_how_it_ended_is_known(body: str, how: str, warm: WarmWorkers, tmp_path: Path) -> None:
    with warm.worker("fake", "port") as worker:
        worker.stage = "parameters"
        with pytest.raises(WorkerError) as caught:
            worker.call("build", _network(tmp_path, body), 0)
    assert f"ended with {how} in stage parameters" in caught.value.what
    assert caught.value.what.endswith("its last words: full")
    with warm.worker("fake", "port") as worker:  # the next one is not touched
        assert worker.call("describe")["framework"] == "fake"


def test_a_busy_worker_that_ignores_signals_is_ended(warm: WarmWorkers, tmp_path: Path) -> None:
    body = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    with warm.worker("fake", "port") as worker:
        worker.send("build", _network(tmp_path, body), 0)
        pid = worker._process.pid
        time.sleep(0.2)
    assert _has_ended(pid)


def test_a_worker_keeps_the_callers_folder(
    warm: WarmWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warm.worker("fake", "port") as worker, pytest.raises(WorkerError) as caught:
        worker.call("build", _network(tmp_path, "print(os.getcwd(), flush=True); os._exit(1)"), 0)
    assert str(tmp_path) in caught.value.what


def test_other_variables_take_another_process(
    warm: WarmWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOGRAD_TEST_COLOUR", "green")
    body = "print(os.environ['ISOGRAD_TEST_COLOUR'], flush=True); os._exit(1)"
    with warm.worker("fake", "port") as worker, pytest.raises(WorkerError, match="green"):
        worker.call("build", _network(tmp_path, body), 0)


def test_a_missing_framework_is_the_same_error(tmp_path: Path) -> None:
    """What cannot be imported ahead starts as always, and says what is missing."""
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch')\n")
    variables = {"PYTHONPATH": str(tmp_path)}
    with pytest.MonkeyPatch.context() as patch, WarmWorkers() as warm:
        for name, value in variables.items():
            patch.setenv(name, value)
        with warm.worker("torch", "reference") as worker, pytest.raises(FrameworkMissingError):
            worker.call("describe")


@pytest.mark.parametrize("case", ["faithful.toml", "divergent.toml"])
def test_a_case_has_the_same_verdict(case: str, warm: WarmWorkers) -> None:
    options = {"seed": 0, "keep": None, "progress": SilentProgress()}
    cold = verify_case(EXAMPLES / case, **options)
    split = verify_case(EXAMPLES / case, **options, start=warm.worker)
    assert (split.verdict, split.first_divergence) == (cold.verdict, cold.first_divergence)
    assert [f.message for f in split.findings] == [f.message for f in cold.findings]


def test_nothing_stays_when_it_closes() -> None:
    with WarmWorkers() as warm:
        with warm.worker("fake", "port") as worker:
            worker.call("describe")
        servers = [s._process.pid for s in warm._servers.values() if s is not None]
    assert servers
    assert all(_has_ended(pid) for pid in servers)


def test_the_name_of_the_running_test_starts_no_other_process(
    warm: WarmWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = warm.worker("fake", "port")
    held = set(warm.processes)
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "another")
    second = warm.worker("fake", "port")
    for worker in (first, second):
        worker.close()
    assert set(warm.processes) == held


def test_few_processes_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with WarmWorkers() as own:
        for number in range(9):
            monkeypatch.setenv("ISOGRAD_TEST_NUMBER", str(number))
            own.worker("fake", "port").close()
        assert len(own.processes) == 6
