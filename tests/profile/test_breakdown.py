"""What counts as work and what as the host's time where a profiler or a run-to-run noise adds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.analyse.breakdown import Limit
from isograd.profile.model import Profile
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
