"""Where each step's time goes, by what limits it, and which of the limits is the greatest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from isograd.profile.analyse.kinds import MOVING, ON_HOST, Kind, kind_of
from isograd.profile.analyse.nesting import merge, union_within
from isograd.profile.analyse.operators import (
    SMALL_CALL_NS,
    Mask,
    covered,
    is_dispatch,
    operator_rows,
    tiny_types,
)
from isograd.profile.model import PHASES, HostLine, Phase, Profile, Steps
from isograd.profile.spans import Floats, Ints, Spans


class Limit(Enum):
    """What the step waits for most."""

    DATA = "data-bound"
    HOST = "host-bound"
    COMPUTE = "compute-bound"
    COMMUNICATION = "communication-bound"
    MEMORY = "memory-bound"
    BALANCED = "balanced"


#: Columns of `Breakdown.seconds`.
LIMITS = (Limit.DATA, Limit.HOST, Limit.COMPUTE, Limit.COMMUNICATION, Limit.MEMORY)
#: A limit below this share of the step, or that leads by less, leaves the step balanced.
LEADING_SHARE = 0.40
LEAD = 0.08
#: A step whose rest is shorter than a tenth does not show how much longer that becomes.
MOST_WAITED = 0.9
#: How many times as long as in profiled steps a thread may run in plain ones: 1.3 to 1.6 with a
#: generator in Python (MindSpore 2.10, one processor); beyond this a plain step is noisy.
MOST_KEPT = 3.0


@dataclass(frozen=True)
class Breakdown:
    """Seconds of each step by limit, shape (steps, len(LIMITS)); rows add up to `step_s`.

    work_noise_s: half of the range of what operators took in the profiled steps. The host's time
    is what they leave, so it is known no better. locked_s: seconds per step for which the training
    waits for the interpreter's lock; a part of DATA where a data pipeline keeps it, else of HOST.
    hindered_s: seconds per step, these among them, for which threads of the data pipeline keep the
    training from running; a part of DATA.
    """

    step_s: Floats
    seconds: Floats
    small_calls: float = 0.0
    known: tuple[Limit, ...] = LIMITS
    work_noise_s: float = 0.0
    locked_s: float = 0.0
    hindered_s: float = 0.0

    def of(self, limit: Limit) -> float:
        """Median seconds per step of a limit."""
        if not len(self.step_s):
            return 0.0
        return float(np.median(self.seconds[:, LIMITS.index(limit)]))

    @property
    def median_s(self) -> float:
        """Median step."""
        return float(np.median(self.step_s)) if len(self.step_s) else float("nan")

    def share(self, limit: Limit) -> float:
        """Median share of the step, in [0, 1]."""
        return self.of(limit) / self.median_s if self.median_s > 0 else 0.0

    def verdict(self) -> tuple[Limit, float]:
        """The greatest limit, or BALANCED; and in which share of the steps it is so."""
        if not len(self.step_s):
            return Limit.BALANCED, 0.0
        shares = self.seconds / np.maximum(self.step_s[:, None], 1e-12)
        median = np.median(shares, axis=0)
        order = np.argsort(-median)
        best, second = int(order[0]), int(order[1])
        if median[best] < LEADING_SHARE or median[best] - median[second] < LEAD:
            is_balanced = (shares.max(axis=1) < LEADING_SHARE) | (
                np.sort(shares, axis=1)[:, -1] - np.sort(shares, axis=1)[:, -2] < LEAD
            )
            return Limit.BALANCED, _confidence(is_balanced)
        return LIMITS[best], _confidence(shares.argmax(axis=1) == best)


def _confidence(agrees: Mask) -> float:
    """Share of the steps that agree, drawn towards one half where there are few (Laplace)."""
    return float((agrees.sum() + 1) / (agrees.size + 2))


def break_down(
    profile: Profile, steps: Steps, self_ns: Ints | None, *, has_marks: bool
) -> Breakdown:
    """Split the steps of a profile.

    has_marks: the steps were found among the spans, so that both have one clock.
    self_ns: of every span, shape (spans,), int64.
    """
    if profile.marks is not None:
        return _of_recording(profile, self_ns)
    if profile.spans is not None and self_ns is not None and has_marks and len(steps):
        return _of_trace(profile.spans, steps, self_ns)
    return _of_phases(steps)


def _of_phases(steps: Steps) -> Breakdown:
    """Files that know phases only: all of a pass counts as computing."""
    seconds = np.zeros((len(steps), len(LIMITS)))
    seconds[:, LIMITS.index(Limit.DATA)] = np.nan_to_num(steps.phase(Phase.DATA))
    exposed = np.nan_to_num(steps.phase(Phase.COMMUNICATION))
    seconds[:, LIMITS.index(Limit.COMMUNICATION)] = exposed
    computing = sum(
        np.nan_to_num(steps.phase(phase)) for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE)
    )
    seconds[:, LIMITS.index(Limit.COMPUTE)] = computing
    rest = np.maximum(steps.seconds - seconds.sum(axis=1), 0.0)
    seconds[:, LIMITS.index(Limit.HOST)] = rest
    return Breakdown(steps.seconds, seconds, known=(Limit.DATA, Limit.COMPUTE))


def _of_trace(spans: Spans, steps: Steps, self_ns: Ints) -> Breakdown:
    if has_device(spans):
        return _of_device(spans, steps)
    data = np.nan_to_num(steps.phase(Phase.DATA))
    seconds, small = _work(spans, self_ns, steps.start_ns, steps.end_ns, data_rows(spans))
    seconds[:, LIMITS.index(Limit.DATA)] = data
    return _rest_is_host(steps.seconds, seconds, small)


def _rest_is_host(step_s: Floats, seconds: Floats, small: float) -> Breakdown:
    known = seconds.sum(axis=1)
    factor = np.minimum(1.0, step_s / np.maximum(known, 1e-12))
    seconds = seconds * factor[:, None]
    seconds[:, LIMITS.index(Limit.HOST)] += np.maximum(step_s - seconds.sum(axis=1), 0.0)
    return Breakdown(step_s, seconds, small)


def data_rows(spans: Spans) -> tuple[Ints, Ints]:
    """The waits for data that a trace shows, merged, in ns of the trace.

    returns: begins and ends, both of shape (waits,), int64.
    """
    from isograd.profile.analyse.marks import _DATA, _rows

    rows = _rows(spans, _DATA)
    return merge(spans.start_ns[rows], spans.start_ns[rows] + spans.duration_ns[rows])


def _work(
    spans: Spans,
    self_ns: Ints,
    begin: Ints,
    end: Ints,
    data: tuple[Ints, Ints],
    tiny: frozenset[str] = frozenset(),
) -> tuple[Floats, float]:
    """Seconds of large operators per step by limit, and the number of small calls per step."""
    rows = operator_rows(spans)
    start = spans.start_ns[rows]
    step = np.searchsorted(begin, start, side="right") - 1
    is_within = (step >= 0) & (start < end[np.maximum(step, 0)])
    is_within &= ~covered(start, *data)
    own = self_ns[rows]
    is_large = ~is_dispatch(spans.texts, spans.name[rows], spans.shapes[rows], own, tiny)
    limits = _limit_of_texts(spans)[spans.name[rows]]
    chosen = is_within & is_large
    cell = step[chosen] * len(LIMITS) + limits[chosen]
    sums = np.bincount(cell, weights=self_ns[rows][chosen], minlength=begin.size * len(LIMITS))
    seconds = sums.reshape(begin.size, len(LIMITS)) / 1e9
    small = float((is_within & ~is_large & (self_ns[rows] > 0)).sum()) / max(begin.size, 1)
    return seconds, small


def _limit_of_texts(spans: Spans) -> Ints:
    return np.asarray([LIMITS.index(limit_of(text)) for text in spans.texts], dtype=np.int64)


def limit_of(name: str) -> Limit:
    """Which limit the time of an operator counts to."""
    kind = kind_of(name)
    if kind in MOVING:
        return Limit.MEMORY
    if kind in ON_HOST:
        return Limit.HOST
    return Limit.COMMUNICATION if kind is Kind.COMMUNICATION else Limit.COMPUTE


def _of_device(spans: Spans, steps: Steps) -> Breakdown:
    """A device works beside the host: what counts is when it works, and at what."""
    seconds, small = _device_work(spans, steps.start_ns, steps.end_ns)
    idle = steps.seconds - seconds.sum(axis=1)
    data = np.minimum(np.nan_to_num(steps.phase(Phase.DATA)), idle)
    seconds[:, LIMITS.index(Limit.DATA)] = data
    return _rest_is_host(steps.seconds, seconds, small)


def _device_work(spans: Spans, begin: Ints, end: Ints) -> tuple[Floats, float]:
    """Seconds of each step in which a device works, by limit, and its short kernels per step."""
    is_device = spans.is_on_device
    limits = _limit_of_texts(spans)[spans.name]
    seconds = np.zeros((begin.size, len(LIMITS)))
    busy_spans = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    before = np.zeros(begin.size)
    for limit in (Limit.COMPUTE, Limit.MEMORY, Limit.COMMUNICATION):
        rows = np.flatnonzero(is_device & (limits == LIMITS.index(limit)))
        start = np.concatenate([busy_spans[0], spans.start_ns[rows]])
        finish = np.concatenate([busy_spans[1], spans.start_ns[rows] + spans.duration_ns[rows]])
        busy_spans = merge(start, finish)
        busy = union_within(*busy_spans, begin, end) / 1e9
        seconds[:, LIMITS.index(limit)] = busy - before
        before = busy
    rows = operator_rows(spans)
    rows = rows[is_device[rows] & (spans.duration_ns[rows] < SMALL_CALL_NS)]
    step = np.searchsorted(begin, spans.start_ns[rows], side="right") - 1
    is_within = (step >= 0) & (spans.start_ns[rows] < end[np.maximum(step, 0)])
    return seconds, float(is_within.sum()) / max(begin.size, 1)


def has_device(spans: Spans) -> bool:
    """Whether the trace holds what a device did."""
    if not any(track.is_device for track in spans.tracks):
        return False
    return bool(spans.is_on_device[operator_rows(spans)].any())


def waits(profile: Profile) -> tuple[Ints, Ints]:
    """The marked waits for data, merged, in ns of the trace.

    returns: begins and ends, both of shape (waits,), int64.
    """
    assert profile.marks is not None
    intervals = profile.marks.intervals
    found = intervals[intervals[:, 0] == PHASES.index(Phase.DATA)]
    return merge(found[:, 1] - profile.base_ns, found[:, 2] - profile.base_ns)


def _plain_and_profiled(profile: Profile) -> tuple[Steps, Steps] | None:
    """The steps of both windows of a recording; None where it lacks one."""
    if profile.marks is None:
        return None
    plain, profiled = profile.marks.take("plain"), profile.marks.take("profiled")
    return (plain, profiled) if len(plain) and len(profiled) else None


def slowdown(profile: Profile) -> float:
    """How many times longer profiled steps take on the clock than plain ones, at least 1.

    Waits for data, and others outside of the passes, are left out of both: a profiler does not
    make them longer.
    """
    both = _plain_and_profiled(profile)
    if both is None:
        return 1.0
    plain, profiled = both
    usual = float(np.median(plain.seconds - np.nan_to_num(plain.phase(Phase.DATA))))
    here = float(np.median(profiled.clock_s - np.nan_to_num(profiled.phase(Phase.DATA))))
    waited = min(_waited_s(profile), MOST_WAITED * min(usual, here))
    return max((here - waited) / (usual - waited), 1.0) if usual > 0 else 1.0


def _waited_s(profile: Profile) -> float:
    """Seconds per step in which a line outside of the passes waits, for a disk for instance."""
    host = profile.host
    if host is None or not host.sampled_steps:
        return 0.0
    lines = (one for one in host.lines if one.is_main_thread and one.phase is Phase.OTHER)
    return sum(line.waited_s for line in lines) / host.sampled_steps


def stretch(profile: Profile, phase: Phase) -> float:
    """How many times longer a phase's lines take in samples of profiled steps than in plain ones.

    By the phase itself, which plain steps time as well. Where its time is not known (eager
    MindSpore issues a phase's operators, and runs them later) the whole step must do.
    """
    both = _plain_and_profiled(profile)
    if both is None:
        return 1.0
    plain, profiled = both
    usual, here = plain.usual_s(phase), profiled.usual_s(phase)
    if usual > 0 and here > 0:
        return here / usual * _lateness(profiled)
    return slowdown(profile)


def _lateness(steps: Steps) -> float:
    """How many times longer steps take on the clock than without the wait for others."""
    return float(np.median(steps.clock_s / np.maximum(steps.seconds, 1e-12)))


def plain_lines_s(profile: Profile, lines: Iterable[HostLine]) -> list[float]:
    """Seconds that each of these sampled lines takes in a plain step."""
    assert profile.host is not None
    both, given = _plain_and_profiled(profile), tuple(lines)
    late = 1.0 if both is None else _lateness(both[1])
    factors = {phase: stretch(profile, phase) for phase in {line.phase for line in given}}
    is_timed = {phase: both is None or both[0].usual_s(phase) > 0 for phase in factors}
    found = []
    for line in given:
        waited_s = 0.0 if is_timed[line.phase] else line.waited_s
        ran_s = line.seconds - waited_s
        if line.delayed_s is not None:  # known for the line itself, where `late` is a mean
            ran_s = max(ran_s - line.delayed_s, 0.0) * late
        seconds = waited_s + ran_s / factors[line.phase]
        found.append(seconds / profile.host.sampled_steps)
    return found


def prolongation(profile: Profile) -> float:
    """How many times longer operators take in profiled steps than in plain ones, at least 1.

    torch's profiler adds its time around operators and within the shortest, so that others take
    longer only where other processes have the processor; divided by `slowdown`, their work would
    be taken for dispatch. MindSpore's adds it within them, and so do calls that wait for a device.
    """
    profiled = profile.marks.take("profiled") if profile.marks is not None else None
    is_plain = profile.framework == "torch" and profile.device == "CPU"
    if not is_plain or profiled is None or not len(profiled):
        return slowdown(profile)
    wait = np.nan_to_num(profiled.phase(Phase.DATA))
    own = float(np.median(profiled.seconds - wait))
    return max(float(np.median(profiled.clock_s - wait)) / own, 1.0) if own > 0 else 1.0


def delayed_share(steps: Steps) -> float:
    """Share of the clock's time in which other processes had the processor, 0 where unknown."""
    total = float(steps.clock_s.sum())
    if steps.delayed_ns is None or total <= 0:
        return 0.0
    return min(float(steps.delayed_ns.sum()) / 1e9 / total, 1.0)


def _of_recording(profile: Profile, self_ns: Ints | None) -> Breakdown:
    """Plain steps give the times, profiled steps how much of them operators need."""
    marks = profile.marks
    assert marks is not None
    plain = marks.take("plain")
    if not len(plain):
        plain = marks.take("profiled")
    work = np.zeros((1, len(LIMITS)))
    small = 0.0
    profiled = marks.take("profiled")
    if profile.spans is not None and self_ns is not None and len(profiled):
        begin, end = profiled.start_ns - profile.base_ns, profiled.end_ns - profile.base_ns
        if has_device(profile.spans):  # the profiler slows down the host alone
            work, small = _device_work(profile.spans, begin, end)
        else:
            tiny = tiny_types(profile.source_operators)
            work, small = _work(profile.spans, self_ns, begin, end, waits(profile), tiny)
            work = work / prolongation(profile)
    noise = float(np.ptp(work.sum(axis=1))) / 2
    seconds = np.tile(np.median(work, axis=0), (len(plain), 1))
    data_s = np.nan_to_num(plain.phase(Phase.DATA))
    sent = np.nan_to_num(plain.phase(Phase.COMMUNICATION))
    room = np.maximum(plain.seconds - data_s - sent, 0.0)
    if profile.spans is not None and not has_device(profile.spans):
        room = np.minimum(room, _room_of_passes(plain, profiled, float(seconds[0].sum())))
    factor = np.minimum(1.0, room / np.maximum(seconds.sum(axis=1), 1e-12))
    seconds *= factor[:, None]
    seconds[:, LIMITS.index(Limit.DATA)] = data_s
    seconds[:, LIMITS.index(Limit.COMMUNICATION)] += sent
    found = replace(_rest_is_host(plain.seconds, seconds, small), work_noise_s=noise)
    return _with_lock(found, profile)


def _room_of_passes(plain: Steps, profiled: Steps, work_s: float) -> float:
    """The longest that operators can take in a plain step; infinite where passes are not timed.

    Operators of the passes take no longer than the passes themselves, which plain steps time.
    """
    usual, here = (
        sum(steps.usual_s(one) for one in (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE))
        for steps in (plain, profiled)
    )
    if not (usual > 0 and here > 0):
        return float("inf")
    return usual + max(work_s - here, 0.0)


def _with_lock(found: Breakdown, profile: Profile) -> Breakdown:
    """What the threads of a pipeline keep the training from, its lock above all, is the data's."""
    host = profile.host
    if host is None or not host.sampled_steps:
        return found
    steps, place = host.sampled_steps * slowdown(profile), LIMITS.index(Limit.HOST)
    locked = np.minimum(sum(line.lock_s for line in host.lines) / steps, found.seconds[:, place])
    found = replace(found, locked_s=float(np.median(locked)))
    if not profile.queues:
        return found
    hindered = np.maximum(locked, _hindered_s(profile))
    seconds, data = found.seconds.copy(), LIMITS.index(Limit.DATA)
    # The host waits first; operators, whose time was taken beside the pipeline, share the rest.
    by_host = np.minimum(hindered, seconds[:, place])
    seconds[:, place] -= by_host
    work = seconds.sum(axis=1) - seconds[:, data] - seconds[:, place]
    left = np.minimum(hindered - by_host, MOST_WAITED * work)
    kept = 1.0 - left / np.maximum(work, 1e-12)
    rest = [n for n in range(len(LIMITS)) if n not in (data, place)]
    seconds[:, rest] *= kept[:, None]
    seconds[:, data] += by_host + left
    return replace(found, seconds=seconds, hindered_s=float(np.median(by_host + left)))


def _hindered_s(profile: Profile) -> float:
    """Seconds of a plain step, beside its wait for data, in which the pipeline's threads run.

    Profiled steps show how long these threads run there, and so what the training needs. In plain
    steps a thread of Python keeps the interpreter's lock longer (5 ms; `sampler.SWITCH_S`), up to
    MOST_KEPT times as long as it was seen to run.
    """
    both, host = _plain_and_profiled(profile), profile.host
    if both is None or host is None or not host.beside_s > 0:
        return 0.0
    plain, profiled = both
    usual_s = np.median(plain.seconds) - np.median(np.nan_to_num(plain.phase(Phase.DATA)))
    rest_s = np.mean(profiled.seconds - np.nan_to_num(profiled.phase(Phase.DATA)))
    seen_s = host.beside_s / host.sampled_steps
    least = seen_s / slowdown(profile)
    return float(np.clip(usual_s - (rest_s - seen_s), least, MOST_KEPT * seen_s))
