"""Marks of steps: what other processes take of a step is no part of it."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.breakdown import delayed_share
from isograd.profile.model import Phase, Steps
from isograd.profile.record import marks
from isograd.profile.rules.making import Call, recording

MS = 1_000_000


def test_time_in_which_others_had_the_processor_is_taken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each look at the clock is 10 ms later; 4 of them are others'.
    clock = iter(range(0, 10_000 * MS, 10 * MS))
    delay = iter(range(0, 4_000 * MS, 4 * MS))
    monkeypatch.setattr(marks.time, "time_ns", lambda: next(clock))
    monkeypatch.setattr(marks.Delay, "read", lambda self: next(delay))
    found = marks.StepMarks(lambda number: None, lambda: None)
    found.begin(Phase.FORWARD)
    found.end(Phase.FORWARD)
    found.updated()
    found.step()
    (forward,) = found.marks().steps.phase(Phase.FORWARD)
    steps = found.marks().steps
    assert forward == pytest.approx(0.006)
    assert steps.clock_s[0] - steps.seconds[0] == pytest.approx(steps.delayed_ns[0] / 1e9)
    assert steps.delayed_ns[0] > 0


def test_a_thread_without_rivals_is_hardly_delayed_and_a_missing_file_counts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delay = marks.Delay()
    first = delay.read()
    time.sleep(0.01)  # sleeping is no waiting for a processor
    assert 0 <= delay.read() - first < 100 * MS
    delay.close()
    assert delay.read() == 0
    monkeypatch.setattr(marks, "_SCHEDULE", "/nowhere/schedstat")
    assert marks.Delay().read() == 0


def test_a_busy_machine_is_mentioned() -> None:
    profile = recording(50.0, [Call("aten::mm", 40.0)])
    delayed = np.full(len(profile.steps), 30 * MS, dtype=np.int64)
    steps = Steps(
        profile.steps.number,
        profile.steps.start_ns,
        profile.steps.end_ns + 30 * MS,
        profile.steps.phases_s,
        delayed,
    )
    assert delayed_share(steps) == pytest.approx(30 / 80)
    assert steps.seconds[0] == pytest.approx(0.05)
    notes = analyse(replace(profile, steps=steps)).notes
    assert any("38% of the time" in note for note in notes)
