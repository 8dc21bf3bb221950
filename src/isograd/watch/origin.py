"""The origin of a value that is not finite: which operator made it, and where it went on.

An adapter replays a step and notes every operator that touched something not finite; here the
trace is read.  A tensor is finite, or *meant*: infinite on purpose, as a mask of -inf is, or *bad*.
An operator is a producer where a bad value leaves it and none entered.  The origin of a bad result
is the producer from which it came; a producer from which nothing arrived was masked.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isograd.recording.statistics import measure
from isograd.tensors import Array
from isograd.watch.judge import plain_number


class Phase(str, enum.Enum):
    """The part of a step."""

    DATA = "data"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    UPDATE = "update"
    COMMUNICATION = "communication"


class Status(enum.Enum):
    """What a tensor is; `MEANT` is infinite on purpose."""

    FINITE = "finite"
    MEANT = "meant"
    BAD = "bad"


@dataclass(frozen=True)
class TensorFacts:
    """What a tensor held; minimum and maximum are of the finite elements."""

    shape: tuple[int, ...]
    dtype: str
    minimum: float
    maximum: float
    nan_count: int
    infinity_count: int
    zero_count: int = 0

    def to_json(self) -> dict[str, Any]:
        """The contract's object."""
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "min": plain_number(self.minimum),
            "max": plain_number(self.maximum),
            "nan": self.nan_count,
            "inf": self.infinity_count,
            "zeros": self.zero_count,
        }


def facts_of(values: Array, dtype: str, is_bfloat16_bits: bool = False) -> TensorFacts:
    """Measure a tensor for the report.

    values: any shape and dtype.
    """
    row = measure(values, is_bfloat16_bits)
    zeros = int(values.size - np.count_nonzero(values))
    return TensorFacts(tuple(values.shape), dtype, row[3], row[4], int(row[1]), int(row[2]), zeros)


@dataclass
class Operation:
    """An operator's call that touched a value that is not finite.

    number: its place among all calls of the replay.  sources: the operations that made its
    inputs that are not finite.  kind: `nan`, `inf` or `-inf` of its output.
    """

    number: int
    phase: Phase
    module: str
    operator: str
    where: str
    status: Status
    is_producer: bool
    kind: str
    sources: tuple[int, ...] = ()
    inputs: tuple[TensorFacts, ...] = ()
    #: What a reader should know beside it.
    note: str = ""


@dataclass(frozen=True)
class Origin:
    """Where a value that is not finite arose.

    is_origin: False where the replay did not reproduce it and only the place is narrowed down.
    propagation: the modules through which it went on, in order; note: what else was found.
    """

    step: int
    phase: Phase
    module: str
    operator: str
    kind: str
    where: str
    inputs: tuple[TensorFacts, ...] = ()
    is_origin: bool = True
    propagation: tuple[str, ...] = ()
    note: str = ""
    masked: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The contract's `first_nonfinite`."""
        return {
            "step": self.step,
            "phase": self.phase.value,
            "module": self.module,
            "operator": self.operator,
            "kind": self.kind,
            "where": self.where,
            "inputs": [facts.to_json() for facts in self.inputs],
            "origin": self.is_origin,
            "propagation": list(self.propagation),
            "note": self.note,
            "masked": list(self.masked),
        }


def kind_of(nan_count: int, has_positive: bool, has_negative: bool) -> str:
    """The word for what a tensor holds."""
    if nan_count:
        return "nan"
    return "inf" if has_positive or not has_negative else "-inf"


def classify(kind: str | None, statuses: Sequence[Status], is_fill: bool) -> tuple[Status, bool]:
    """The status of an operator's output, and whether the operator is its producer.

    kind: of the output, None where it is finite.  statuses: of the inputs.
    is_fill: the operator writes an infinity that stands in the code (`masked_fill(…, -inf)`).
    """
    if kind is None:
        return Status.FINITE, False
    if Status.BAD in statuses:
        return Status.BAD, False
    if is_fill and kind != "nan":
        return Status.MEANT, False
    if Status.MEANT in statuses and kind != "nan":
        return Status.MEANT, False
    return Status.BAD, True


def trace_back(operations: Sequence[Operation], ends: Sequence[int], step: int) -> Origin | None:
    """The origin of bad results; None where no producer leads to them.

    ends: numbers of the operations that made the bad results; empty: the last bad operation.
    """
    known = {operation.number: operation for operation in operations}
    if not ends:
        bad = [one.number for one in operations if one.status is Status.BAD]
        ends = bad[-1:]
    reached = set(_ancestors(known, ends))
    producers = [one for one in operations if one.is_producer and one.number in reached]
    if not producers:
        return None
    first = producers[0]
    return make_origin(first, operations, step, reached)


def make_origin(
    first: Operation, operations: Sequence[Operation], step: int, reached: set[int]
) -> Origin:
    """The origin at an operation, with the path on which it went on and what was masked."""
    path: list[str] = []
    descendants = {first.number}
    for one in operations:
        if one.number > first.number and descendants.intersection(one.sources):
            descendants.add(one.number)
            if one.status is Status.BAD and (not path or path[-1] != one.module):
                path.append(one.module)
    masked = tuple(
        f"{one.operator} ({one.where}) gave {one.kind}"
        for one in operations
        if one.is_producer and one.number not in reached and one.number != first.number
    )
    return Origin(
        step=step,
        phase=first.phase,
        module=first.module,
        operator=first.operator,
        kind=first.kind,
        where=first.where,
        inputs=first.inputs,
        propagation=tuple(dict.fromkeys(name for name in path if name != first.module)),
        note=first.note,
        masked=masked[:5],
    )


def _ancestors(known: dict[int, Operation], ends: Sequence[int]) -> Iterator[int]:
    seen: set[int] = set()
    front = [number for number in ends if number in known]
    while front:
        number = front.pop()
        if number in seen:
            continue
        seen.add(number)
        yield number
        front.extend(one for one in known[number].sources if one in known)
