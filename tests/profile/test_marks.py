"""Marks of steps: what other processes take of a step is no part of it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.breakdown import delayed_share
from isograd.profile.analyse.marks import find_steps, of_one_process
from isograd.profile.model import Phase, Steps
from isograd.profile.read.chrome import read_chrome
from isograd.profile.record import marks, schedule
from isograd.profile.rules.making import Call, recording
from isograd.profile.spans import Spans

MS = 1_000_000


def test_time_in_which_others_had_the_processor_is_taken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each look at the clock is 10 ms later; 4 of them are others'.
    reads = iter((number * 10 * MS, number * 4 * MS) for number in range(1_000))
    monkeypatch.setattr(marks.Clock, "read", lambda self: next(reads))
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
    clock = marks.Clock()
    first = clock.read()
    time.sleep(0.01)  # sleeping is no waiting for a processor
    second = clock.read()
    assert second[0] - first[0] >= 10 * MS
    assert 0 <= second[1] - first[1] < 100 * MS
    clock.close()
    assert clock.read()[1] == 0
    monkeypatch.setattr(schedule, "FILE", "/nowhere/{}/schedstat")
    assert marks.Clock().read()[1] == 0


def test_a_wait_beside_a_look_at_the_clock_makes_no_negative_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The thread loses the processor for 5 ms between each look at the clock and the one at the
    # wait, for the first two looks of a read.
    waits = iter([0, 5, 5, 5, 10, 10, 10, 10] + [10] * 100)
    times = iter(range(0, 5_000 * MS, 5 * MS))
    monkeypatch.setattr(marks.time, "time_ns", lambda: next(times))
    monkeypatch.setattr(marks.Clock, "_delay", lambda self: next(waits) * MS)
    clock = marks.Clock()
    first, second = clock.read(), clock.read()
    assert first == (5 * MS, 0)
    assert second == (15 * MS, 5 * MS)


@pytest.mark.parametrize(
    ("ran_ms", "others_ms"),
    [
        pytest.param(60, 40, id="another process runs whenever this one waits"),
        pytest.param(100, 0, id="a thread of this process runs whenever this one waits"),
        pytest.param(85, 15, id="both"),
    ],
)
def test_a_wait_for_a_thread_of_this_process_is_no_wait_for_others(
    monkeypatch: pytest.MonkeyPatch, ran_ms: int, others_ms: int
) -> None:
    # 100 ms on one processor, of which the thread that is measured waits 40.
    times, waits, ran = iter([0, 100]), iter([0, 0, 40, 40]), iter([0, ran_ms])
    monkeypatch.setattr(marks, "processors", lambda: 1)
    monkeypatch.setattr(marks.time, "time_ns", lambda: next(times) * MS)
    monkeypatch.setattr(marks.time, "process_time_ns", lambda: next(ran) * MS)
    monkeypatch.setattr(marks.Clock, "_delay", lambda self: next(waits) * MS)
    clock = marks.Clock()
    first, second = clock.read(), clock.read()
    assert second[1] - first[1] == others_ms * MS


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


def _spans(folder: Path, rows: Sequence[tuple[int, str, float, float]]) -> Spans:
    """rows: process, name, begin and length in microseconds."""
    events = [
        {"ph": "X", "cat": "cpu_op" if name.startswith("aten") else "user_annotation",
         "name": name, "pid": pid, "tid": 1, "ts": begin, "dur": length}
        for pid, name, begin, length in rows
    ]  # fmt: skip
    names = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "python"}}
        for pid in {row[0] for row in rows}
    ]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": [*names, *events]}))
    return read_chrome(folder / "trace.json").spans


def test_marks_within_a_step_are_no_steps(tmp_path: Path) -> None:
    rows = [(1, f"ProfilerStep#{n}", n * 100.0, 100.0) for n in range(4)]
    rows += [(1, f"Step {50 + n}", n * 100.0 + 10, 30.0) for n in range(4)]
    steps, how = find_steps(_spans(tmp_path, rows))
    assert (steps.number.tolist(), how) == ([0, 1, 2, 3], "marks")
    assert steps.seconds == pytest.approx([1e-4] * 4)


@pytest.mark.parametrize(
    ("second", "kept", "is_noted"),
    [
        pytest.param("ProfilerStep#0", 2, True, id="another rank"),
        pytest.param("helper", 4, False, id="a helper without steps"),
    ],
)
def test_merged_ranks_are_not_added_up(
    tmp_path: Path, second: str, kept: int, is_noted: bool
) -> None:
    rows = [(1, "ProfilerStep#0", 0.0, 100.0), (1, "aten::mm", 10.0, 50.0)]
    rows += [(2, second, 5.0, 100.0), (2, "aten::mm", 20.0, 50.0)]
    spans, note = of_one_process(_spans(tmp_path, rows))
    assert len(spans) == kept
    assert ("process 1 is judged" in note) == is_noted


def test_what_an_optimizer_does_after_its_closure_is_the_update() -> None:
    found = marks.StepMarks(lambda number: None, lambda: None)
    for begin in (Phase.UPDATE, Phase.FORWARD, Phase.BACKWARD):
        found.begin(begin)
    found.end(Phase.BACKWARD)
    time.sleep(0.02)
    found.end(Phase.UPDATE)
    found.updated()
    found.step()
    steps = found.marks().steps
    assert steps.phase(Phase.UPDATE)[0] >= 0.015
    assert steps.phase(Phase.BACKWARD)[0] < 0.015
