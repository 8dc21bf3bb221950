"""Samples of Python's stacks: time is found at the line that takes it."""

from __future__ import annotations

import hashlib
import json
import sys
import time

from isograd.profile.model import Phase
from isograd.profile.record.sampler import Sampler

BLOCK = bytes(4096)
TEXT = json.dumps(list(range(30_000)))


def _parse_and_yield(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        json.loads(TEXT)  # keeps the interpreter's lock for a millisecond or two
        hashlib.sha256(BLOCK)  # gives it away, for microseconds


def test_a_call_that_keeps_the_interpreters_lock_is_found_at_its_own_line() -> None:
    usual = sys.getswitchinterval()
    sampler = Sampler(lambda: Phase.OTHER)
    sampler.start()
    try:
        _parse_and_yield(0.8)
    finally:
        sampler.stop()
    assert sys.getswitchinterval() == usual
    first = _parse_and_yield.__code__.co_firstlineno
    lines = {line.where.rpartition(":")[2]: line.samples for line in sampler.lines()}
    at_parsing, at_yielding = lines.get(str(first + 3), 0), lines.get(str(first + 4), 0)
    assert at_parsing > at_yielding
