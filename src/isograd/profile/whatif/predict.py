"""The step that a change would leave: the model of a profile, fitted to its plain steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from isograd.profile.analyse.kinds import Kind, kind_of
from isograd.profile.analyse.operators import SMALL_CALL_NS, readable_shapes
from isograd.profile.analyse.pipeline import is_ahead
from isograd.profile.model import Operator, Phase, Profile, Steps
from isograd.profile.spans import Ints, Spans
from isograd.profile.whatif.build import build_steps, total_ns, windows_of, work_of
from isograd.profile.whatif.changes import (
    Change,
    Factors,
    with_operators,
    with_overlap,
    without_data_wait,
    without_host,
    without_synchronisation,
)
from isograd.profile.whatif.tasks import (
    MAIN,
    NOTHING,
    Role,
    Step,
    Work,
    critical_path,
    run,
    step_seconds,
    tasks,
)

#: What a profiler adds to one operator at most: torch's adds 1 to 3 µs (docs/profile.md).
OVERHEAD_NS = 5_000
#: A task keeps at least this share of its recorded time, whatever the profiler's cost.
LEAST_KEPT = 0.2
#: A profiled step that takes so many times the median one is not what a usual step is.
STOPPED = 2.0
#: Trials to fit a step beside a device, and how near is near enough.
_FITTINGS, _FITS = 8, 0.01
#: Below this share of the step the pipeline is not what the step waits for.
WAITING = 0.02


@dataclass(frozen=True)
class Model:
    """Tasks of a profile's steps. step_s: the measured step, which the model is fitted to."""

    work: Work
    step_s: float
    spans: Spans | None = None

    @cached_property
    def simulated_s(self) -> float:
        """The step by the dependencies alone, before any change."""
        return step_seconds(self.work)

    def predict(self, change: Change) -> float:
        """Seconds of a step after the change, at least 0."""
        after = step_seconds(change.apply(self.work))
        if self.simulated_s > self.step_s:
            # A difference could leave less than what is left of the tasks.
            return after * self.step_s / self.simulated_s
        return max(self.step_s - (self.simulated_s - after), 0.0)

    @cached_property
    def dispatch_s(self) -> float:
        """Seconds of a mean step in small operators of the host and in Python between two."""
        return float(np.mean([_dispatch_ns(step) for step in self.work.steps])) / 1e9

    def path_shares(self) -> dict[Role, float]:
        """Share of the critical path by what its tasks are."""
        schedule = run(self.work, 2)
        path = critical_path(schedule)
        seconds: dict[Role, float] = {}
        for number, step in enumerate(self.work.steps):
            here = path[schedule.step[path] == number]
            took = (schedule.end_ns - schedule.start_ns)[here]
            for role in Role:
                mine = step.of(role)[schedule.task[here]]
                seconds[role] = seconds.get(role, 0.0) + float(took[mine].sum())
        total = max(sum(seconds.values()), 1.0)
        return {role: value / total for role, value in seconds.items() if value > 0}


def _dispatch_ns(step: Step) -> int:
    main = step.duration_ns[step.lane == MAIN]
    is_host = step.of(Role.HOST)[step.lane == MAIN]
    is_small = step.of(Role.OPERATOR)[step.lane == MAIN] & (main < SMALL_CALL_NS)
    between = is_host[1:-1] & is_small[:-2] & is_small[2:]
    return int(main[is_small].sum() + main[1:-1][between].sum())


def model_of(
    profile: Profile, step_s: float, self_ns: Ints | None, windows: tuple[Ints, Ints] | None
) -> Model | None:
    """The model of a profile with spans; None for one without.

    self_ns: of every span, shape (spans,), int64.
    windows: begins and ends of its steps in ns, both of shape (steps,), int64.
    """
    if profile.spans is None or self_ns is None or not step_s > 0:
        return None
    found = windows_of(profile, windows)
    if found is None:
        return None
    steps = build_steps(profile, found, self_ns)
    if not steps:
        return None
    if profile.marks is not None:
        steps = fitted(steps, profile)
    work = work_of(_with_production(steps, profile, step_s), _capacity(profile))
    return Model(_slowed_by_profiler(work, profile, step_s), step_s)


_OF_HOST = (Role.HOST, Role.OPERATOR, Role.SYNCHRONISE)


def fitted(steps: tuple[Step, ...], profile: Profile) -> tuple[Step, ...]:
    """Tasks as plain steps have them: what the profiler adds is taken off, the rest is scaled."""
    assert profile.marks is not None
    plain = profile.marks.take("plain")
    if not len(plain):
        return steps
    wait_ns, sent_ns = (
        float(np.median(np.nan_to_num(plain.phase(phase)))) * 1e9
        for phase in (Phase.DATA, Phase.COMMUNICATION)
    )
    steps = _usual(steps)
    wanted = max(float(np.median(plain.seconds)) * 1e9 - wait_ns - sent_ns, 1.0)
    steps = tuple(without_overhead(step, wanted) for step in steps)
    if not any((step.lane > MAIN).any() for step in steps):
        steps = _by_phase(steps, plain)
        factor = wanted / max(total_ns(steps, *_OF_HOST), 1.0)
        steps = tuple(_scaled(step, factor, *_OF_HOST) for step in steps)
    taken = max(total_ns(steps, Role.TAKE), 1.0)
    steps = tuple(_scaled(step, wait_ns / taken, Role.TAKE) for step in steps)
    return tuple(_receiving(step, round(sent_ns)) for step in steps)


def _by_phase(steps: tuple[Step, ...], plain: Steps) -> tuple[Step, ...]:
    """Each phase's tasks with the time that plain steps take for it, where they time their passes.

    What a profiler makes longer differs: operators that take new memory do so the more, for
    instance, where the profiler's records lie between the old.
    """
    for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE, Phase.OTHER):
        usual = plain.usual_s(phase) * 1e9
        parts = [step.duration_ns[step.of(*_OF_HOST) & step.within(phase)] for step in steps]
        there = float(np.mean([part.sum() for part in parts]))
        if usual > 0 and there > 0:
            steps = tuple(_scaled(step, usual / there, *_OF_HOST, phase=phase) for step in steps)
    return steps


def _slowed_by_profiler(work: Work, profile: Profile, step_s: float) -> Work:
    """Work beside a device with the host's time less, so that a step takes what it takes plainly.

    The device takes what it takes with the profiler, too; without a device the sum is known. Where
    steps wait for data, what is left of them counts.
    """
    if profile.marks is None or not any((step.lane > MAIN).any() for step in work.steps):
        return work
    plain = profile.marks.take("plain")
    wait_s = float(np.median(np.nan_to_num(plain.phase(Phase.DATA)))) if len(plain) else 0.0
    is_waiting = wait_s > WAITING * step_s
    wanted = step_s - wait_s if is_waiting else step_s

    def took(factor: float) -> tuple[Work, float]:
        steps = tuple(_scaled(step, factor, *_OF_HOST) for step in work.steps)
        found = replace(work, steps=steps)
        return found, step_seconds(without_data_wait().apply(found) if is_waiting else found)

    most = wanted * (1.0 + _FITS)
    if took(1.0)[1] <= most or took(0.0)[1] > most:
        return work
    low, high = 0.0, 1.0
    for _ in range(_FITTINGS):
        factor = (low + high) / 2
        found, now = took(factor)
        if abs(now / wanted - 1.0) <= _FITS:
            break
        low, high = (low, factor) if now > wanted else (factor, high)
    return found


def _usual(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps without those that something outside stopped; plain steps count by their median."""
    totals = np.asarray([float(step.duration_ns[step.lane == MAIN].sum()) for step in steps])
    is_usual = totals <= STOPPED * np.median(totals)
    return tuple(step for step, kept in zip(steps, is_usual, strict=True) if kept)


def without_overhead(step: Step, wanted_ns: float) -> Step:
    """The step with less time in each task of the host, as far as it takes longer than wanted."""
    mask = step.of(*_OF_HOST)
    there = float(step.duration_ns[mask].sum())
    each = min(max(there - wanted_ns, 0.0) / max(int(mask.sum()), 1), OVERHEAD_NS)
    less = np.maximum(step.duration_ns - each, LEAST_KEPT * step.duration_ns)
    return step.lasting(np.where(mask, less, step.duration_ns))


def _scaled(step: Step, factor: float, *roles: Role, phase: Phase | None = None) -> Step:
    """The step with another time for the tasks of these roles, in one phase or in all."""
    mask = step.of(*roles) if phase is None else step.of(*roles) & step.within(phase)
    return step.lasting(np.where(mask, step.duration_ns * factor, step.duration_ns))


def _receiving(step: Step, sent_ns: int) -> Step:
    """The step with the time that its host waits for messages at the end, where none is known."""
    if not sent_ns or step.of(Role.RECEIVE).any():
        return step
    last = tasks([(Role.RECEIVE, MAIN, NOTHING, Phase.COMMUNICATION, sent_ns, NOTHING, NOTHING)])
    names = [field.name for field in fields(Step)]
    return Step(**{n: np.concatenate([getattr(step, n), getattr(last, n)]) for n in names})


def _with_production(steps: tuple[Step, ...], profile: Profile, step_s: float) -> tuple[Step, ...]:
    """Where batches are made beside the training: a wait is the rest of a batch's making."""
    if not _capacity(profile):
        return steps
    waits = total_ns(steps, Role.TAKE)
    is_waiting = waits > WAITING * step_s * 1e9 and not is_ahead(profile)
    making = step_s * 1e9 if is_waiting else _known_making_s(profile) * 1e9
    found = []
    for step in steps:
        batches = max(int(step.of(Role.PRODUCE).sum()), 1)
        lasting = np.where(step.of(Role.PRODUCE), making / batches, step.duration_ns)
        found.append(step.lasting(np.where(step.of(Role.TAKE), 0, lasting)))
    return tuple(found)


def _known_making_s(profile: Profile) -> float:
    """Seconds in which the workers together make a batch, 0 where that is not known."""
    loader = profile.loader
    if loader is None or not loader.sample_s > 0 or not loader.workers:
        return 0.0
    return loader.sample_s * loader.batch_size / loader.workers


def _capacity(profile: Profile) -> int:
    """Batches that are made ahead, 0 where the host makes each when it needs it."""
    loader = profile.loader
    if loader is not None:
        return loader.workers * max(loader.prefetch, 1)
    if profile.framework == "mindspore" and profile.queues:
        return max(max((queue.capacity for queue in profile.queues), default=1), 1)
    return 0


def operators_factor(spans: Spans, removed: Iterable[tuple[Operator, float]]) -> Factors:
    """Factors by name and shapes. removed: operators with the share of their time that goes."""
    gone: dict[tuple[str, str], float] = {}
    for operator, share in removed:
        gone[(operator.name, operator.shapes)] = share
        if not _has_shapes(spans):
            gone[(operator.name, "")] = share
    number = {text: code for code, text in enumerate(spans.texts)}
    codes = [int(code) for code in np.unique(spans.shapes) if code >= 0]
    readable = {-1: ""} | {code: readable_shapes(spans.texts[code]) for code in codes}
    table = {
        (number[name], code): share
        for (name, shapes), share in gone.items()
        if name in number
        for code, text in readable.items()
        if text == shapes
    }

    def factors(rows: Ints) -> npt.NDArray[np.float64]:
        keys = zip(spans.name[rows].tolist(), spans.shapes[rows].tolist(), strict=True)
        return np.asarray([1.0 - table.get(key, 0.0) for key in keys], dtype=np.float64)

    return factors


def _has_shapes(spans: Spans) -> bool:
    return bool((spans.shapes >= 0).any())


@dataclass(frozen=True)
class Answer:
    """A change with the step that it would leave."""

    name: str
    step_s: float


def standard_answers(
    model: Model, profile: Profile, operators: Iterable[Operator]
) -> tuple[Answer, ...]:
    """What the usual changes would leave, shortest step first; only those that change anything."""
    found = [
        Answer(change.name, model.predict(change))
        for change in _standard_changes(model, profile, tuple(operators))
    ]
    least = 0.99 * model.step_s
    return tuple(sorted((one for one in found if one.step_s < least), key=lambda one: one.step_s))


def _standard_changes(
    model: Model, profile: Profile, operators: tuple[Operator, ...]
) -> Iterable[Change]:
    yield without_data_wait()
    yield without_synchronisation()
    yield with_overlap()
    host_s = total_ns(model.work.steps, Role.HOST) / 1e9
    yield replace(without_host(host_s), name="no Python between operators")
    spans = profile.spans
    if spans is None or not operators:
        return
    moved = [(one, 1.0) for one in operators if kind_of(one.name) is Kind.CONVERSION]
    if moved:
        yield with_operators("no dtype conversions", operators_factor(spans, moved))
    first = operators[0]
    named = f"{first.name} of {first.shapes or 'its shapes'} twice as fast"
    yield with_operators(named, operators_factor(spans, [(first, 0.5)]))
