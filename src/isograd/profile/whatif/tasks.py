"""Tasks of a step with what each waits for, and when each runs by these dependencies alone.

The model follows Daydream (Zhu et al., USENIX ATC 2020): tasks on lanes (threads, streams, queues),
a dependency graph, a change of the graph, and the time of the changed graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

import numpy as np

from isograd.profile.model import PHASES, Phase
from isograd.profile.spans import Codes, Ints


class Role(Enum):
    """What a task is, which decides what it waits for beside the task before it on its lane."""

    HOST = "host"  # Python between operators
    OPERATOR = "operator"  # on the host
    SYNCHRONISE = "synchronise"  # also waits for every lane of the device
    KERNEL = "kernel"  # on a stream of the device; waits for its launch
    MESSAGE = "message"  # between ranks; waits until its data is ready
    RECEIVE = "receive"  # the host waits for all messages so far
    PRODUCE = "produce"  # the pipeline makes a batch; waits for a free place in its queue
    TAKE = "take"  # the host takes a batch; waits until one is made


ROLES = tuple(Role)
#: Lanes that are no tracks of the trace.
MAIN, PIPELINE, CHANNEL = 0, -1, -2
NOTHING = -1


@dataclass(frozen=True)
class Step:
    """The tasks of one step, in an order in which they can be done; all columns (tasks,).

    role: place in ROLES. lane: MAIN, PIPELINE, CHANNEL or the number of a track plus 1. row: of
    the span, or -1. phase: place in PHASES. after, joined: an earlier task of the step that must
    have ended, or -1.
    """

    role: Codes
    lane: Codes
    row: Ints
    phase: Codes
    duration_ns: Ints
    after: Ints
    joined: Ints

    def __len__(self) -> int:
        return int(self.role.size)

    def of(self, *roles: Role) -> Any:
        """Which tasks have one of these roles, shape (tasks,)."""
        return np.isin(self.role, [ROLES.index(role) for role in roles])

    def within(self, phase: Phase) -> Any:
        """Which tasks lie in a phase, shape (tasks,)."""
        return self.phase == PHASES.index(phase)

    def lasting(self, duration_ns: Any) -> Step:
        """The same tasks with other durations, at least 0."""
        whole = np.rint(np.maximum(duration_ns, 0)).astype(np.int64)
        return replace(self, duration_ns=whole)


def tasks(rows: Sequence[tuple[Role, int, int, Phase, int, int, int]]) -> Step:
    """Tasks from rows of role, lane, span, phase, duration in ns, after, joined."""
    kinds = (np.int32, np.int32, np.int64, np.int32, np.int64, np.int64, np.int64)
    plain = [(ROLES.index(r), lane, row, PHASES.index(p), *rest) for r, lane, row, p, *rest in rows]
    columns = zip(*plain, strict=True) if plain else [()] * len(kinds)
    names = [field.name for field in fields(Step)]
    found: dict[str, Any] = {
        name: np.asarray(column, dtype=kind)
        for name, column, kind in zip(names, columns, kinds, strict=True)
    }
    return Step(**found)


@dataclass(frozen=True)
class Work:
    """Steps that are repeated in this order.

    capacity: batches that the pipeline makes ahead, at least 1. is_late: a RECEIVE waits for the
    messages of the step before, so that they overlap with a whole step. is_free: SYNCHRONISE waits
    for nothing.
    """

    steps: tuple[Step, ...]
    capacity: int = 1
    is_late: bool = False
    is_free: bool = False

    def lasting(self, durations_ns: Sequence[Any]) -> Work:
        """The same steps with other durations."""
        pairs = zip(self.steps, durations_ns, strict=True)
        return replace(self, steps=tuple(step.lasting(ns) for step, ns in pairs))


@dataclass(frozen=True)
class Schedule:
    """When each task of a number of steps ran. decisive: the task that each one waited for last.

    Columns (tasks of all steps,): step is the place in `Work.steps`, task the place in that step.
    ends_ns: 0, then when each step was done on every lane but the pipeline's, (steps done + 1,).
    """

    step: Codes
    task: Ints
    start_ns: Ints
    end_ns: Ints
    decisive: Ints
    ends_ns: Ints

    def step_s(self, count: int) -> float:
        """Mean seconds of the last `count` steps: those before fill the queues."""
        first = int(self.ends_ns[-count - 1])
        return (int(self.ends_ns[-1]) - first) / count / 1e9


#: Tasks of one simulation; steps are repeated less often where they are large.
MOST_TASKS = 200_000
ROUNDS = 6


def step_seconds(work: Work) -> float:
    """Mean seconds of a step once the queues are filled."""
    return run(work, _rounds(work)).step_s(len(work.steps))


def _rounds(work: Work) -> int:
    size = max(sum(len(step) for step in work.steps), 1)
    filling = -(-work.capacity // len(work.steps)) + 2
    return max(2, min(max(ROUNDS, filling), MOST_TASKS // size))


def run(work: Work, rounds: int) -> Schedule:
    """Do every task as soon as what it waits for has ended; each lane does one at a time."""
    machine = _Machine(work)
    for _ in range(rounds):
        for number, step in enumerate(work.steps):
            machine.do(number, step)
    return machine.schedule()


class _Machine:
    """The lanes while steps are done; times are integers of ns."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._lanes: dict[int, tuple[int, int]] = {}  # when it is free, and its last task
        self._made: list[tuple[int, int]] = []
        self._taken: list[tuple[int, int]] = []
        self._messages = (0, NOTHING)
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._ends: list[int] = []

    def do(self, number: int, step: Step) -> None:
        """All tasks of one step."""
        first, rows = len(self._rows), self._rows
        before = self._messages
        columns = (step.role, step.lane, step.duration_ns, step.after, step.joined)
        for task, (role, lane, duration, after, joined) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            ready = self._lanes.get(lane, (0, NOTHING))
            for place in (after, joined):
                if place >= 0:
                    ready = max(ready, (rows[first + place][3], first + place))
            ready = self._also(ROLES[role], ready, before)
            end = ready[0] + duration
            here = (end, len(rows))
            rows.append((number, task, ready[0], end, ready[1]))
            self._lanes[lane] = here
            self._remember(ROLES[role], here)
        ends = [end for lane, (end, _) in self._lanes.items() if lane != PIPELINE]
        self._ends.append(max(ends, default=0))

    def _also(self, role: Role, ready: tuple[int, int], before: tuple[int, int]) -> tuple[int, int]:
        """What a task of this role waits for beside its lane: (time, task)."""
        if role is Role.PRODUCE and len(self._made) >= self._work.capacity:
            return max(ready, self._taken[len(self._made) - self._work.capacity])
        if role is Role.TAKE and len(self._made) > len(self._taken):
            return max(ready, self._made[len(self._taken)])
        if role is Role.RECEIVE:
            return max(ready, before if self._work.is_late else self._messages)
        if role is Role.SYNCHRONISE and not self._work.is_free:
            return max([ready, *(end for lane, end in self._lanes.items() if lane > MAIN)])
        return ready

    def _remember(self, role: Role, here: tuple[int, int]) -> None:
        if role is Role.PRODUCE:
            self._made.append(here)
        elif role is Role.TAKE:
            self._taken.append(here)
        elif role is Role.MESSAGE:
            self._messages = max(self._messages, here)

    def schedule(self) -> Schedule:
        """What was done."""
        table = np.asarray(self._rows or np.zeros((0, 5)), dtype=np.int64)
        return Schedule(
            step=table[:, 0].astype(np.int32),
            task=table[:, 1],
            start_ns=table[:, 2],
            end_ns=table[:, 3],
            decisive=table[:, 4],
            ends_ns=np.asarray([0, *self._ends], dtype=np.int64),
        )


def critical_path(schedule: Schedule) -> Ints:
    """Rows of the tasks that decided when the last one ended, from first to last.

    returns: shape (tasks on the path,), int64.
    """
    if not schedule.end_ns.size:
        return np.zeros(0, dtype=np.int64)
    found, at = [], int(np.argmax(schedule.end_ns))
    decisive = schedule.decisive.tolist()
    while at >= 0:
        found.append(at)
        at = decisive[at]
    return np.asarray(found[::-1], dtype=np.int64)
