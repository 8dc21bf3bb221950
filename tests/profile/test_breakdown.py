"""What counts as work and what as the host's time where a profiler or a run-to-run noise adds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.breakdown import Limit, stretch
from isograd.profile.model import PHASES, Phase, Profile
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


def test_where_no_pass_is_timed_a_line_in_mindspore_is_as_long_as_its_thread_runs() -> None:
    """Profiled steps take 15 ms on the clock, 3 of them while another thread has the processor."""
    run = _profiled(15.0, 10.0, 9.0, "mindspore")
    assert run.marks is not None
    steps = run.marks.steps
    late = ((steps.number >= PLAIN) * 3 * MS).astype("int64")
    run = replace(run, marks=replace(run.marks, steps=replace(steps, delayed_ns=late)))
    assert stretch(run, Phase.OTHER) == pytest.approx(15 / 12)
    assert stretch(replace(run, framework="torch"), Phase.OTHER) == pytest.approx(1.5)
