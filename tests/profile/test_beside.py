"""Threads that make batches are told from the training's by what they do while it waits."""

from __future__ import annotations

import hashlib
import multiprocessing
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from isograd.profile.record import beside
from isograd.profile.record.beside import Beside

BLOCK = bytes(1 << 16)
ROUNDS, TURN_S = 6, 0.02

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="Linux counts the time of threads"
)


def _hash_until(stop: threading.Event, allowed: threading.Event) -> None:
    while not stop.is_set():
        if allowed.wait(0.01):
            hashlib.sha256(BLOCK)  # gives the interpreter's lock away


def _train(found: Beside, computes: threading.Event) -> None:
    """Waits for data and computes in turn."""
    for _ in range(ROUNDS):
        for is_waiting in (True, False):
            (computes.clear if is_waiting else computes.set)()
            found.turn(is_waiting)
            time.sleep(TURN_S)


def _seconds_beside(works_on: bool, count: int, processors: int) -> float:
    """What is seen of threads that hash beside a training."""
    stop, computes, always = threading.Event(), threading.Event(), threading.Event()
    always.set()
    given = (stop, always if works_on else computes)
    threads = [threading.Thread(target=_hash_until, args=given) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(beside, "processors", lambda: processors)
            found = Beside(main=threading.get_native_id())
            _train(found, computes)
            return found.close()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """A process without the threads that other tests have left in this one."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as one:
        yield one


@pytest.mark.parametrize(
    ("works_on", "count", "is_found"),
    [
        pytest.param(True, 1, True, id="a thread that goes on while the training waits"),
        pytest.param(False, 1, False, id="a thread that works with the training"),
        pytest.param(True, 0, False, id="no thread"),
    ],
)
@pytest.mark.parametrize(
    "processors", [pytest.param(1, id="one processor"), pytest.param(2, id="two processors")]
)
def test_which_threads_make_batches(
    process: ProcessPoolExecutor, works_on: bool, count: int, is_found: bool, processors: int
) -> None:
    seconds = process.submit(_seconds_beside, works_on, count, processors).result()
    if is_found and processors == 1:
        assert 0.01 < seconds < 2 * ROUNDS * TURN_S
    elif is_found:  # the training queues for nothing: it only sleeps here
        assert 0.0 <= seconds < 0.5 * ROUNDS * TURN_S
    else:
        assert seconds < 0.01


def test_a_training_that_hardly_waits_shows_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "processors", lambda: 1)
    found = Beside(main=0)  # this thread is neither
    found.turn(is_waiting=True)
    found.turn(is_waiting=False)
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:
        hashlib.sha256(BLOCK)
    assert found.close() == 0.0
