"""Where others have the processor, what the training itself takes stays what it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.breakdown import Limit, plain_lines_s
from isograd.profile.analyse.delays import without_delays
from isograd.profile.model import HostLine, Phase, Profile
from isograd.profile.record.sampler import Sampler
from isograd.profile.rules.catalogue import apply_rules
from isograd.profile.rules.making import MS, PLAIN, PROFILED, Call, line, recording

CALLS = [Call("aten::mm", 3.0, pause_ms=1.0), Call("aten::addmm", 3.0, pause_ms=1.0)]


def _delayed(delay_ms: int, *, within: bool) -> Profile:
    """Steps of 10 ms, 6 of work; in the last one others have the processor for some more.

    within: while the second operator runs, else between the two.
    """
    run = recording(10.0, CALLS)
    assert run.marks is not None
    assert run.spans is not None
    start, duration = run.spans.start_ns.copy(), run.spans.duration_ns.copy()
    start[-1] += 0 if within else delay_ms * MS
    duration[-1] += delay_ms * MS if within else 0
    steps = run.marks.steps
    last = steps.number == PLAIN + PROFILED - 1
    delay = np.where(last, delay_ms * MS, 0).astype(np.int64)
    steps = replace(steps, end_ns=steps.end_ns + delay, delayed_ns=delay)
    spans = replace(run.spans, start_ns=start, duration_ns=duration)
    return replace(run, spans=spans, marks=replace(run.marks, steps=steps))


@pytest.mark.parametrize("within", [False, True], ids=["between operators", "within one"])
def test_a_delay_is_taken_out_where_it_fell(within: bool) -> None:
    found = analyse(_delayed(20, within=within))
    assert found.breakdown.of(Limit.COMPUTE) * 1e3 == pytest.approx(6.0, abs=0.01)
    assert found.breakdown.work_noise_s * 1e3 == pytest.approx(0.0, abs=0.01)
    seconds = {operator.name: operator.self_s * 1e3 for operator in found.operators}
    assert seconds == pytest.approx({"aten::mm": 3.0, "aten::addmm": 3.0}, abs=0.01)


def test_no_more_is_taken_out_than_was_counted() -> None:
    """An operator that takes 20 ms longer in a step that waited 5 took 15 of them itself."""
    run = _delayed(20, within=True)
    assert run.marks is not None
    steps = run.marks.steps
    assert steps.delayed_ns is not None
    counted = replace(steps, delayed_ns=steps.delayed_ns // 4)
    found = without_delays(replace(run, marks=replace(run.marks, steps=counted)))
    assert found.spans is not None
    assert found.marks is not None
    assert found.spans.duration_ns[-1] / MS == pytest.approx(18.0, abs=0.01)
    assert found.marks.take("profiled").clock_s[-1] == pytest.approx(0.025)


def test_what_cannot_be_known_stays() -> None:
    quiet = recording(10.0, CALLS)
    assert without_delays(quiet) is quiet
    other = replace(_delayed(20, within=True), framework="mindspore")
    assert without_delays(other) is other


def test_a_line_loses_the_delay_that_was_seen_at_it() -> None:
    """Both lines have 40 ms of samples; others had the processor for 36 of the first one's."""
    delayed = replace(line("train.py:3", 40), delayed_s=0.036)
    lines = [delayed, replace(line("train.py:4", 40), delayed_s=0.0)]
    run = recording(50.0, [Call("aten::mm", 10.0)], lines=lines)
    assert plain_lines_s(run, lines) == pytest.approx([0.002, 0.02])


def test_a_wait_for_a_processor_counts_where_the_thread_waited() -> None:
    """The system counts a wait when it ends: here two samples later, at another line."""
    sampler = Sampler(lambda: Phase.OTHER)
    sampler._knows_delays = True
    first, second = (
        (f"train.py:{number}", "train", Phase.OTHER, True, ("train.py", number))
        for number in (1, 2)
    )
    sampler._explain(first, 0.010, 0.020, (0.0, 0.0))
    sampler._explain(first, 0.010, 0.020, (0.0, 0.0))
    sampler._explain(second, 0.001, 0.001, (0.004, 0.019))
    assert sampler._delayed_s[first] == pytest.approx(0.018)
    assert sampler._waited_s[first] == pytest.approx(0.002)
    assert sampler._delayed_s[second] == pytest.approx(0.001)
    assert sampler._waited_s[second] == pytest.approx(0.0)


def test_a_thread_that_sleeps_waits_for_nobody() -> None:
    sampler = Sampler(lambda: Phase.OTHER)
    sampler._knows_delays = True
    key = ("train.py:1", "train", Phase.OTHER, True, ("train.py", 1))
    sampler._explain(key, 0.010, 0.020, (0.0, 0.0))
    sampler._explain(key, 0.001, 0.002, (0.004, 0.0))
    assert sampler._delayed_s[key] == 0.0
    assert sampler._waited_s[key] == pytest.approx(0.011)


def test_lines_of_older_recordings_lose_the_mean_delay() -> None:
    run = _delayed(20, within=False)
    host, old = run.host, HostLine("train.py:3", "train", Phase.OTHER, True, 40, 0.04)
    assert host is not None
    found = without_delays(replace(run, host=replace(host, lines=(old,)))).host
    assert found is not None
    # One step of the two has no delay, the other one 20 of 30 ms: the median is a third.
    assert found.lines[0].delayed_s == pytest.approx(0.04 / 3)


@pytest.mark.parametrize(("delayed_s", "is_named"), [(0.0, True), (0.08, False)])
def test_a_busy_machine_does_not_tell_small_operators(delayed_s: float, is_named: bool) -> None:
    """Where others have the processor for most of the time, a part of it may be in the host's."""
    call = Call("Mul", 0.004, "[[8], [8]]", count=150, pause_ms=0.04)
    run = analyse(recording(20.0, [Call("aten::mm", 12.0), call]))
    found = apply_rules(replace(run, delayed_s=delayed_s))
    assert [one.code for one in found] == (["host.small_operators"] if is_named else [])
