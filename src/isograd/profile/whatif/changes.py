"""Changes of a step's tasks; each makes other work of the work given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isograd.profile.model import PHASES, Phase
from isograd.profile.spans import Ints
from isograd.profile.whatif.tasks import CHANNEL, MAIN, NOTHING, ROLES, Role, Step, Work

#: Takes spans' rows and answers with the factor of each one's duration.
Factors = Callable[[Ints], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Change:
    """name: what is different, as a phrase. apply: pure."""

    name: str
    apply: Callable[[Work], Work]


def without_data_wait() -> Change:
    """Batches are there when they are asked for."""

    def apply(work: Work) -> Work:
        gone = [step.of(Role.PRODUCE, Role.TAKE) for step in work.steps]
        pairs = zip(work.steps, gone, strict=True)
        return work.lasting([np.where(mask, 0, step.duration_ns) for step, mask in pairs])

    return Change("no wait for data", apply)


def with_operators(name: str, factors: Factors) -> Change:
    """Operators take other times: 0 removes them and the waits in them, 0.5 halves them.

    With a removed operator goes the Python that follows it, which frees what the operator needed
    and calls the next one; but no more than the operator itself took.
    """

    def apply(work: Work) -> Work:
        durations, steps = [], []
        for step in work.steps:
            known = step.row >= 0
            factor = np.ones(len(step))
            factor[known] = factors(step.row[known])
            gone = np.where(factor == 0.0, step.duration_ns, 0)
            less = np.where(step.of(Role.HOST), gone[_operator_before(step)], 0)
            durations.append(np.maximum(step.duration_ns * factor - less, 0))
            is_free = (factor == 0.0) & step.of(Role.SYNCHRONISE)
            role = np.where(is_free, ROLES.index(Role.OPERATOR), step.role)
            steps.append(replace(step, role=role.astype(np.int32)))
        return replace(work, steps=tuple(steps)).lasting(durations)

    return Change(name, apply)


def together(name: str, *changes: Change) -> Change:
    """All of these changes, one after the other."""

    def apply(work: Work) -> Work:
        for change in changes:
            work = change.apply(work)
        return work

    return Change(name, apply)


def _operator_before(step: Step) -> Ints:
    """The last operator of the main lane that took any time before each task; 0 where none did."""
    worked = step.of(Role.OPERATOR, Role.HOST) & (step.lane == MAIN) & (step.duration_ns > 0)
    place = np.where(worked, np.arange(len(step)), 0)
    before = np.concatenate([[0], np.maximum.accumulate(place)[:-1]])
    return np.asarray(before, dtype=np.int64)


def without_host(seconds: float, phase: Phase | None = None) -> Change:
    """Python takes `seconds` less in a mean step, in one phase as far as that phase has them.

    A step in which the host takes longer loses more, in proportion. Operators that are only
    dispatched (reads of elements, views) are Python's time, too.
    """

    def apply(work: Work) -> Work:
        durations = []
        taken = [float(s.duration_ns[s.of(Role.HOST)].sum()) for s in work.steps]
        mean = max(sum(taken) / max(len(taken), 1), 1.0)
        for step, own in zip(work.steps, taken, strict=True):
            less_ns = seconds * 1e9 * own / mean
            host = step.of(Role.HOST, Role.SYNCHRONISE)
            masks = [host]
            if phase is not None:
                inside = step.of(Role.OPERATOR) & step.within(phase)
                short = inside & (step.duration_ns < SHORT_NS)
                masks = [host & step.within(phase), short, inside, host]
            durations.append(_shortened(step, less_ns, masks))
        return work.lasting(durations)

    return Change("less time in Python", apply)


def _shortened(
    step: Step, less_ns: float, masks: Sequence[npt.NDArray[np.bool_]]
) -> npt.NDArray[np.float64]:
    """Durations with `less_ns` less, taken from the first mask's tasks as far as they have it."""
    changed = step.duration_ns.astype(np.float64)
    for mask in masks:
        there = float(changed[mask].sum())
        if there > 0 and less_ns > 0:
            changed[mask] *= 1.0 - min(less_ns / there, 1.0)
            less_ns -= min(less_ns, there)
    return changed


def without_hindrance(seconds: float) -> Change:
    """Nothing beside the training keeps it from running, for `seconds` of each step."""

    def apply(work: Work) -> Work:
        masks = [step.of(Role.HOST, Role.OPERATOR, Role.SYNCHRONISE) for step in work.steps]
        pairs = zip(work.steps, masks, strict=True)
        return work.lasting([_shortened(step, seconds * 1e9, [mask]) for step, mask in pairs])

    return Change("nothing beside the training", apply)


def without_dispatch(seconds: float) -> Change:
    """Short operators, then the Python between operators, take `seconds` less in each step."""

    def apply(work: Work) -> Work:
        durations = []
        for step in work.steps:
            host = step.of(Role.HOST) & ~step.within(Phase.DATA)
            short = step.of(Role.HOST, Role.OPERATOR) & ~step.within(Phase.DATA)
            short &= step.duration_ns < SHORT_NS
            durations.append(_shortened(step, seconds * 1e9, (short, host)))
        return work.lasting(durations)

    return Change("fewer small operators", apply)


#: Dispatch of one operator and the Python around it (docs/profile.md).
SHORT_NS = 100_000


def with_phase(phase: Phase, factor: float) -> Change:
    """All that the host and its operators do in a phase takes another time."""

    def apply(work: Work) -> Work:
        place = PHASES.index(phase)
        return work.lasting(
            [
                np.where(step.phase == place, step.duration_ns * factor, step.duration_ns)
                for step in work.steps
            ]
        )

    return Change(f"{phase.value} × {factor:g}", apply)


def without_synchronisation() -> Change:
    """The host does not wait for the device, nor read single elements."""
    return Change("no synchronisation", lambda work: replace(work, is_free=True))


def with_overlap() -> Change:
    """Nothing waits for messages; the channel still carries one at a time."""

    def apply(work: Work) -> Work:
        return replace(work, steps=tuple(map(_without_waiting, work.steps)), is_late=True)

    return Change("complete overlap of messages", apply)


def _without_waiting(step: Step) -> Step:
    is_message = step.of(Role.MESSAGE)
    waits_for_message = (step.joined >= 0) & is_message[np.maximum(step.joined, 0)]
    return replace(
        step.lasting(np.where(step.of(Role.RECEIVE), 0, step.duration_ns)),
        joined=np.where(waits_for_message, NOTHING, step.joined),
        lane=np.where(is_message, CHANNEL, step.lane).astype(np.int32),
    )
