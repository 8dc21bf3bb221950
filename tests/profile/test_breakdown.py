"""What counts as work and what as the host's time where a profiler or a run-to-run noise adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.breakdown import Limit, plain_lines_s, slowdown, stretch
from isograd.profile.model import PHASES, Host, HostLine, Phase, Profile, Queue
from isograd.profile.rules.making import MS, PLAIN, Call, recording


def _profiled(step_ms: float, plain_ms: float, work_ms: float, framework: str) -> Profile:
    plain = [plain_ms] * PLAIN
    return recording(step_ms, [Call("aten::mm", work_ms)], steps_ms=plain, framework=framework)


@pytest.mark.parametrize(
    ("framework", "host_ms"),
    [
        pytest.param("torch", 1.0, id="torch adds around operators"),
        pytest.param("mindspore", 4.0, id="MindSpore adds within them"),
    ],
)
def test_what_the_profiler_adds(framework: str, host_ms: float) -> None:
    """Plain steps take 10 ms, profiled ones 15, and a product 9 in them."""
    found = analyse(_profiled(15.0, 10.0, 9.0, framework)).breakdown
    assert found.of(Limit.HOST) * 1e3 == pytest.approx(host_ms, abs=0.01)


def test_where_others_have_the_processor_work_takes_longer() -> None:
    """A profiled step of 15 ms waits 5 ms for a processor: its product takes 6 of 9 ms."""
    run = _profiled(15.0, 10.0, 9.0, "torch")
    assert run.marks is not None
    steps = run.marks.steps
    is_plain = steps.number < PLAIN
    steps = replace(steps, delayed_ns=(~is_plain * 5 * MS).astype("int64"))
    found = analyse(replace(run, marks=replace(run.marks, steps=steps))).breakdown
    assert found.of(Limit.COMPUTE) * 1e3 == pytest.approx(6.0, abs=0.01)


def test_the_hosts_time_is_known_as_well_as_the_work() -> None:
    calls = [Call("aten::mm", 6.0), Call("aten::mm", 2.0, "[[64, 64], [64, 32]]")]
    found = analyse(recording(10.0, calls)).breakdown
    assert found.work_noise_s == pytest.approx(0.0, abs=1e-9)


def _with_passes(run: Profile, plain_ms: float, profiled_ms: float) -> Profile:
    """The same run with the seconds of its forward passes, in plain and in profiled steps."""
    assert run.marks is not None
    steps = run.marks.steps
    phases = steps.phases_s.copy()
    phases[:, PHASES.index(Phase.FORWARD)] = plain_ms / 1e3
    phases[steps.number >= PLAIN, PHASES.index(Phase.FORWARD)] = profiled_ms / 1e3
    marks = replace(run.marks, steps=replace(steps, phases_s=phases))
    return replace(run, marks=marks, steps=marks.take("plain"))


def test_operators_take_no_longer_than_the_pass_that_calls_them() -> None:
    """The product takes 12 of the 13 ms of a profiled pass; plain passes take 10."""
    run = _with_passes(_profiled(24.0, 20.0, 12.0, "torch"), 10.0, 13.0)
    found = analyse(run).breakdown
    assert found.of(Limit.COMPUTE) * 1e3 == pytest.approx(10.0, abs=0.01)
    assert found.of(Limit.HOST) * 1e3 == pytest.approx(10.0, abs=0.01)


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        pytest.param(Phase.FORWARD, 1.3, id="of the pass, 13 ms for 10"),
        pytest.param(Phase.OTHER, 1.1, id="of what is outside, 11 ms for 10"),
    ],
)
def test_a_line_is_longer_by_what_its_phase_is(phase: Phase, expected: float) -> None:
    run = _with_passes(_profiled(24.0, 20.0, 12.0, "torch"), 10.0, 13.0)
    assert stretch(run, phase) == pytest.approx(expected)


def test_where_no_pass_is_timed_the_part_of_a_line_in_which_it_waits_takes_no_longer() -> None:
    """Profiled steps take 15 ms instead of 10, in 4 of which a line sleeps."""
    run = _profiled(15.0, 10.0, 9.0, "mindspore")
    sleeping = HostLine("train.py:9", "<module>", Phase.OTHER, True, 40, 0.02, waited_s=0.008)
    host = Host(lines=(sleeping,), sampled_steps=2)
    assert slowdown(run) == pytest.approx(1.5)
    assert slowdown(replace(run, host=host)) == pytest.approx(11 / 6)
    # 10 ms a step, of which 4 are waited
    (plain_s,) = plain_lines_s(replace(run, host=host), [sleeping])
    assert plain_s == pytest.approx(0.004 + 0.006 * 6 / 11)


@pytest.mark.parametrize(
    ("plain_ms", "seen_ms", "hindered_ms"),
    [
        pytest.param(16.0, 5.0, 6.0, id="the lock is kept longer in plain steps"),
        pytest.param(15.0, 5.0, 5.0, id="as long as in profiled steps"),
        pytest.param(40.0, 5.0, 15.0, id="at most three times as long"),
        pytest.param(16.0, 0.0, 0.0, id="no thread makes batches"),
    ],
)
def test_threads_of_the_pipeline_that_run_beside_the_training_belong_to_its_data(
    plain_ms: float, seen_ms: float, hindered_ms: float
) -> None:
    run = _profiled(15.0, plain_ms, 9.0, "mindspore")
    queue = Queue(0, "Map", 16, np.zeros(9, dtype=np.int64), 1)
    host = Host(sampled_steps=2, beside_s=2 * seen_ms / 1e3)
    found = analyse(replace(run, host=host, queues=(queue,))).breakdown
    assert found.hindered_s == pytest.approx(hindered_ms / 1e3)
    assert found.of(Limit.DATA) == pytest.approx(hindered_ms / 1e3)
    assert found.seconds.sum(axis=1) == pytest.approx(found.step_s)
