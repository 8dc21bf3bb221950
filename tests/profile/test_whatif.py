"""What-if: steps of a few tasks whose answer can be worked out by hand, and traces of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd.profile.analyse.analysis import analyse
from isograd.profile.model import Loader, Phase, Queue
from isograd.profile.read.open import open_profile
from isograd.profile.rules import examples as made
from isograd.profile.rules.catalogue import apply_rules
from isograd.profile.rules.making import Call, recording
from isograd.profile.whatif.changes import (
    Change,
    with_operators,
    with_overlap,
    with_phase,
    without_data_wait,
    without_dispatch,
    without_host,
    without_synchronisation,
)
from isograd.profile.whatif.predict import fitted, operators_factor, standard_answers
from isograd.profile.whatif.tasks import (
    CHANNEL,
    MAIN,
    NOTHING,
    PIPELINE,
    Role,
    Work,
    critical_path,
    run,
    step_seconds,
    tasks,
)

MS = 1_000_000
STREAM, OTHER_STREAM = 1, 2
Row = tuple[Role, int, float, int, int]


def work(*rows: Row, capacity: int = 1, phase: Phase = Phase.OTHER) -> Work:
    """A step of tasks: role, lane, milliseconds, after, joined; row i is span i."""
    full = [
        (role, lane, number, phase, round(ms * MS), after, joined)
        for number, (role, lane, ms, after, joined) in enumerate(rows)
    ]
    return Work((tasks(full),), capacity=capacity)


def operator(ms: float) -> Row:
    return (Role.OPERATOR, MAIN, ms, NOTHING, NOTHING)


def host(ms: float) -> Row:
    return (Role.HOST, MAIN, ms, NOTHING, NOTHING)


def kernel(ms: float, launch: int, joined: int = NOTHING, lane: int = STREAM) -> Row:
    return (Role.KERNEL, lane, ms, launch, joined)


def synchronise() -> Row:
    return (Role.SYNCHRONISE, MAIN, 0, NOTHING, NOTHING)


def batch(making: float, taking: float) -> tuple[Row, Row]:
    return (
        (Role.PRODUCE, PIPELINE, making, NOTHING, NOTHING),
        (Role.TAKE, MAIN, taking, NOTHING, NOTHING),
    )


def message(ms: float, ready: int) -> Row:
    return (Role.MESSAGE, CHANNEL, ms, ready, NOTHING)


def receive() -> Row:
    return (Role.RECEIVE, MAIN, 0, NOTHING, NOTHING)


def halved(*rows: int) -> Change:
    return with_operators("halved", lambda given: np.where(np.isin(given, rows), 0.5, 1.0))


SERIAL = work(*batch(0, 30), operator(20), host(10))
PIPELINED = work(*batch(40, 0), operator(20), host(10), capacity=4)
KEEPING_UP = work(*batch(25, 0), operator(20), host(10), capacity=4)
LAUNCHING = work(operator(5), kernel(30, 0), operator(5), kernel(10, 2))
SYNCHRONISED = work(operator(5), kernel(30, 0), synchronise(), host(15))
TWO_STREAMS = work(operator(1), kernel(20, 0), kernel(30, 0, joined=1, lane=OTHER_STREAM))
SENDING = work(operator(20), message(25, 0), operator(10), receive(), operator(5))


@pytest.mark.parametrize(
    ("before", "step_ms"),
    [
        pytest.param(SERIAL, 60, id="one thread: all in turn"),
        pytest.param(PIPELINED, 40, id="a pipeline that is slower than the step sets the pace"),
        pytest.param(KEEPING_UP, 30, id="a pipeline that is faster is hidden"),
        pytest.param(LAUNCHING, 40, id="a device that is slower than its launches sets the pace"),
        pytest.param(SYNCHRONISED, 50, id="a synchronised device and the host in turn"),
        pytest.param(SENDING, 50, id="the host receives before it goes on"),
    ],
)
def test_a_step_takes_what_its_dependencies_take(before: Work, step_ms: float) -> None:
    assert step_seconds(before) == pytest.approx(step_ms / 1e3)


@pytest.mark.parametrize(
    ("before", "change", "step_ms"),
    [
        pytest.param(SERIAL, without_data_wait(), 30, id="data wait of one thread"),
        pytest.param(PIPELINED, without_data_wait(), 30, id="data wait of a pipeline"),
        pytest.param(PIPELINED, halved(2), 40, id="a faster operator behind a slow pipeline"),
        pytest.param(SERIAL, halved(2), 50, id="a faster operator of one thread"),
        pytest.param(LAUNCHING, without_host(0.009), 40, id="a faster host before a slow device"),
        pytest.param(LAUNCHING, halved(1), 25, id="a faster kernel"),
        pytest.param(SYNCHRONISED, without_synchronisation(), 30, id="no synchronisation"),
        pytest.param(SYNCHRONISED, halved(1), 35, id="a faster kernel that the host waits for"),
        pytest.param(SENDING, with_overlap(), 35, id="messages beside the next steps"),
        pytest.param(SENDING, halved(2), 50, id="a shorter backward pass under a message"),
    ],
)
def test_a_change_wins_what_it_takes_off_the_critical_path(
    before: Work, change: Change, step_ms: float
) -> None:
    assert step_seconds(change.apply(before)) == pytest.approx(step_ms / 1e3)


def test_streams_overlap_unless_one_waits_for_the_other() -> None:
    schedule = run(TWO_STREAMS, 1)
    assert schedule.end_ns[-1] == 51 * MS
    free = work(operator(1), kernel(20, 0), kernel(30, 0, lane=OTHER_STREAM))
    assert run(free, 1).end_ns[-1] == 31 * MS


def test_the_channel_carries_one_message_at_a_time_however_complete_the_overlap() -> None:
    busy = work(operator(20), message(70, 0), receive(), operator(5))
    assert step_seconds(with_overlap().apply(busy)) == pytest.approx(0.070)


def test_the_critical_path_goes_through_what_was_waited_for() -> None:
    schedule = run(SYNCHRONISED, 1)
    assert critical_path(schedule).tolist() == [0, 1, 2, 3]
    schedule = run(SENDING, 1)
    assert critical_path(schedule).tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize(
    ("factor", "step_ms"),
    [
        pytest.param(0.0, 20 + 30, id="removed, with as much of the Python behind it"),
        pytest.param(0.5, 20 + 5 + 40, id="faster: Python stays"),
    ],
)
def test_python_that_only_serves_an_operator_goes_with_it(factor: float, step_ms: float) -> None:
    before = work(operator(20), operator(10), host(40))
    change = with_operators("x", lambda rows: np.where(rows == 1, factor, 1.0))
    assert step_seconds(change.apply(before)) == pytest.approx(step_ms / 1e3)


READS = work(operator(40), *[host(0.01), operator(0.01)] * 100, operator(5))


@pytest.mark.parametrize(
    ("change", "step_ms"),
    [
        pytest.param(without_host(0.001, Phase.OTHER), 46, id="the time between reads"),
        pytest.param(without_host(0.002, Phase.OTHER), 45, id="and the reads themselves"),
        pytest.param(without_dispatch(0.002), 45, id="as dispatch"),
    ],
)
def test_reads_of_elements_are_pythons_time(change: Change, step_ms: float) -> None:
    assert step_seconds(change.apply(READS)) * 1e3 == pytest.approx(step_ms)


def test_a_step_that_was_stopped_does_not_count() -> None:
    profile = recording(20.0, [Call("aten::mm", 10.0)])
    assert profile.marks is not None
    steps = [work(operator(10), host(10)).steps[0], work(operator(10), host(5000)).steps[0]]
    usual = fitted((steps[0], *steps), profile)
    assert [float(step.duration_ns.sum()) / MS for step in usual] == pytest.approx([20, 20])


def test_a_phase_takes_a_share_of_its_time() -> None:
    update = work(operator(40), phase=Phase.UPDATE)
    assert step_seconds(with_phase(Phase.UPDATE, 0.25).apply(update)) == pytest.approx(0.010)


def loader(workers: int, ready: int = 0) -> Loader:
    at_steps = np.full(3, ready, dtype=np.int64)
    return Loader(workers, 8, 2, False, at_steps, sample_s=0.001, cpu_share=1.0, collate_s=0.0)


def mindspore(size: int) -> dict[str, Any]:
    """What a recording has of a pipeline in MindSpore with so many batches in its queue."""
    queue = Queue(0, "Batch", 16, np.full(9, size, dtype=np.int64), 1)
    return {"framework": "mindspore", "queues": (queue,)}


CONVERSION = Call("aten::_to_copy", 10.0, "[[4096, 512]]")
PRODUCT = Call("aten::mm", 20.0, "[[512, 512], [512, 512]]")


@pytest.mark.parametrize(
    ("data", "is_note", "step_ms"),
    [
        pytest.param({"loader": loader(0)}, False, 25, id="in turn: conversions could be won"),
        pytest.param({"loader": loader(1)}, True, 35, id="a worker sets the pace: nothing won"),
        pytest.param({"loader": loader(1, ready=2)}, False, 25, id="batches wait to be taken"),
        pytest.param(mindspore(0), True, 35, id="an empty queue sets the pace"),
        pytest.param(mindspore(15), False, 25, id="a full queue: the wait is the handover"),
    ],
)
def test_what_runs_beside_a_slow_pipeline_is_a_note(
    data: dict[str, Any], is_note: bool, step_ms: float
) -> None:
    profile = replace(recording(35.0, [PRODUCT, CONVERSION], data_ms=5.0), **data)
    found = next(one for one in apply_rules(analyse(profile)) if "conversion" in one.code)
    assert found.is_note is is_note
    assert found.what_if is not None
    assert found.what_if.step_s == pytest.approx(step_ms / 1e3, rel=0.01)
    assert ("stay as it is" in found.message) is is_note


def test_the_model_of_a_recording_is_fitted_to_its_plain_steps() -> None:
    analysis = analyse(recording(100.0, [PRODUCT, CONVERSION], data_ms=30.0, loader=loader(0)))
    model = analysis.model
    assert model is not None
    assert model.simulated_s == pytest.approx(0.1, rel=1e-3)
    assert sum(model.path_shares().values()) == pytest.approx(1.0)
    first = standard_answers(model, analysis.profile, analysis.operators)[0]
    assert (first.name, first.step_s) == ("no Python between operators", pytest.approx(0.06))
    assert analysis.profile.spans is not None
    removed = operators_factor(analysis.profile.spans, [(analysis.operators[0], 0.5)])
    faster = model.predict(with_operators("faster", removed))
    assert faster == pytest.approx(0.09, rel=1e-3)


def _event(name: str, ts: float, dur: float, **other: Any) -> dict[str, Any]:
    common = {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op"}
    return {**common, "name": name, "ts": ts, "dur": dur, **other}


def _gpu_step(begin: float, number: int) -> list[dict[str, Any]]:
    """100 µs of host per kernel of 400 µs, four times, then a synchronisation, then 500 µs."""
    events = []
    for n in range(4):
        at, key = begin + n * 100, number * 10 + n
        call = {"cat": "cuda_runtime", "args": {"correlation": key}}
        events.append(_event("aten::mm", at, 100))
        events.append(_event("cudaLaunchKernel", at + 90, 10, **call))
        start = begin + 100 + n * 400
        device = {"cat": "kernel", "pid": 0, "tid": 7, "args": {"correlation": key}}
        events.append(_event("sgemm", start, 400, **device))
    events.append(_event("cudaDeviceSynchronize", begin + 400, 1300, cat="cuda_runtime"))
    mark = {"cat": "user_annotation"}
    return [_event(f"ProfilerStep#{number}", begin, 2200, **mark), *events]


def test_kernels_follow_their_launches_and_the_host_waits_where_it_synchronises(
    tmp_path: Path,
) -> None:
    name = {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "GPU 0"}}
    events = [name, *(event for n in range(5) for event in _gpu_step(n * 2200.0, n))]
    trace = tmp_path / "gpu.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    model = analyse(open_profile(trace)).model
    assert model is not None
    assert model.simulated_s == pytest.approx(2200e-6)
    # The device works 1600 µs of each step, and the host 900: without the wait both overlap.
    assert model.predict(without_synchronisation()) == pytest.approx(1600e-6, abs=30e-6)
    assert model.predict(without_host(500e-6)) == pytest.approx(1700e-6)


def test_an_example_of_a_healthy_run_has_no_data_to_win() -> None:
    model = analyse(made.healthy()).model
    assert model is not None
    assert model.predict(without_data_wait()) == pytest.approx(0.0615, rel=0.01)
