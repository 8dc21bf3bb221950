"""Samples of Python's stacks: time is found at the line that takes it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from isograd.profile.model import HostLine, Phase
from isograd.profile.record.sampler import Sampler

BLOCK = bytes(4096)
TEXT = json.dumps(list(range(30_000)))
LONG = json.dumps(list(range(500_000)))
NUMBERS = np.random.default_rng(0).random(500_000)


def _parse_and_yield(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        json.loads(TEXT)  # keeps the interpreter's lock for a millisecond or two
        hashlib.sha256(BLOCK)  # gives it away, for microseconds


def _sampled() -> tuple[HostLine, ...]:
    """The lines of 0.8 s that mostly keep the lock."""
    usual = sys.getswitchinterval()
    sampler = Sampler(lambda: Phase.OTHER)
    sampler.start()
    try:
        _parse_and_yield(0.8)
    finally:
        sampler.stop()
    assert sys.getswitchinterval() == usual
    return sampler.lines()


def test_a_call_that_keeps_the_interpreters_lock_is_found_at_its_own_line() -> None:
    first = _parse_and_yield.__code__.co_firstlineno
    samples: Counter[int] = Counter()
    for line in _sampled():
        samples[int(line.where.rpartition(":")[2])] += line.samples
    at_parsing, at_yielding = samples[first + 3], samples[first + 4]
    assert at_parsing > at_yielding


def _parse_until(stop: threading.Event) -> None:
    while not stop.is_set():
        json.loads(LONG)  # keeps the lock for some 20 ms


def _sort_until(stop: threading.Event) -> None:
    while not stop.is_set():
        np.sort(NUMBERS)  # gives the lock away


def _sleep_until(stop: threading.Event) -> None:
    while not stop.is_set():
        time.sleep(0.02)


def _nothing_for(seconds: float) -> None:
    time.sleep(seconds)


def _hash_for(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        hashlib.sha256(BLOCK)  # gives the lock away, and must get it back


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux counts waits")
@pytest.mark.parametrize(
    ("beside", "main", "is_kept"),
    [
        pytest.param(_parse_until, _hash_for, True, id="parsing keeps the lock"),
        pytest.param(_sort_until, _hash_for, False, id="sorting gives it away"),
        pytest.param(_sleep_until, _hash_for, False, id="sleeping needs none"),
        pytest.param(_sleep_until, _nothing_for, False, id="both sleep"),
    ],
)
def test_a_thread_that_keeps_the_lock_is_named(
    beside: Callable[[threading.Event], None], main: Callable[[float], None], is_kept: bool
) -> None:
    stop, sampler = threading.Event(), Sampler(lambda: Phase.FORWARD)
    thread = threading.Thread(target=beside, args=(stop,))
    thread.start()
    sampler.start()
    try:
        main(1.0)
    finally:
        sampler.stop()
        stop.set()
        thread.join()
    kept = {line.function: line.lock_s for line in sampler.lines() if line.lock_s > 0.05}
    assert set(kept) == ({beside.__name__} if is_kept else set())


#: What stands above the user's line: calls and generators whose stack grows and shrinks.
LIBRARY = """
import random

def deep(n, *more, **named):
    if n:
        return deep(n - 1, *range(n % 7), **{str(i): i for i in range(n % 5)})
    for _ in range(random.randrange(20)):
        sum(range(100))
    return sum(i for i in range(10))

def generated(n):
    if n:
        yield from generated(n - 1)
    yield deep(n % 11)
"""
#: A garbage collector that is often at work and lets other threads run.
SCRIPT = """
import gc, random, sys, threading, time
from isograd.profile.model import Phase
from isograd.profile.record.sampler import Sampler

exec(compile(sys.argv[1], "<library>", "exec"))

def work():
    while not stop.is_set():
        for _ in generated(random.randrange(30)):
            deep(random.randrange(40))

stop = threading.Event()
gc.callbacks.append(lambda phase, _: time.sleep(0.00005) if phase == "stop" else None)
gc.set_threshold(100)
threads = [threading.Thread(target=work) for _ in range(3)]
sampler = Sampler(lambda: Phase.OTHER)
sampler.start()
for thread in threads:
    thread.start()
time.sleep(3)
sampler.stop()
stop.set()
for thread in threads:
    thread.join()
assert gc.isenabled()
print([line.function for line in sampler.lines()])
"""


def test_sampling_beside_a_collector_of_garbage_does_not_end_the_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(script), LIBRARY]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "'work'" in run.stdout
