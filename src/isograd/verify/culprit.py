"""Which function between modules is the first to differ, for the words of a finding.

Both sides are run once more with their functions noted.  A reference function whose result the
port yields nowhere, and none of whose consequences the port yields, is where they part: a port
may compute in other steps (a fused attention, a softmax by hand) and meet again afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isograd.errors import IsogradError
from isograd.frameworks.base import FunctionCall, ReplayRequest
from isograd.metrics import Float64, as_float64, norm, patterns
from isograd.tensors import Array
from isograd.verify.session import Session
from isograd.worker.protocols import Passes

#: Relative error up to which two float32 results count as the same value.
SAME = 3e-6
#: Cosine from which on a value may be meant for another: below it, no line is named.
_RESEMBLES = 0.5
_MOST_ELEMENTS = 1 << 21


@dataclass(frozen=True)
class Culprit:
    """The first function that differs, and the reference's module whose code calls it.

    where: ``file:line`` of that call; port_where: of the port's value that resembles its result
    most, among those that the reference yields nowhere.
    """

    module: str
    function: str
    where: str | None = None
    port_where: str | None = None


def find_culprit(session: Session, reference: ReplayRequest, port: ReplayRequest) -> Culprit | None:
    """Compare the functions of one unit on both sides; None where nothing stands out."""
    try:
        ours: tuple[FunctionCall, ...] = session.reference.ask(Passes.trace, reference)
        theirs: tuple[FunctionCall, ...] = session.port.ask(Passes.trace, port)
    except IsogradError:
        return None
    if any(event.value.values.size > _MOST_ELEMENTS for event in ours):
        return None
    mine = [Fingerprint(event.value.values) for event in ours]
    others = [Fingerprint(event.value.values) for event in theirs]
    met = [
        any(own.same_as(other, any_order=not moves) for other in others)
        for own, moves in zip(mine, _moves_only(ours, mine), strict=True)
    ]
    for index in range(len(ours) - 1, -1, -1):
        if met[index]:
            for source in ours[index].sources:
                met[source] = True
    if False not in met:
        return None
    found = met.index(False)
    event, near = ours[found], _nearest(mine[found], mine, others)
    return Culprit(
        event.module, event.function, event.where, None if near is None else theirs[near].where
    )


def _moves_only(events: Sequence[FunctionCall], own: Sequence[Fingerprint]) -> list[bool]:
    return [
        any(mine.is_reordered(own[source]) for source in event.sources)
        for event, mine in zip(events, own, strict=True)
    ]


def _nearest(
    wanted: Fingerprint, known: Sequence[Fingerprint], others: Sequence[Fingerprint]
) -> int | None:
    """Which value of the port's, unknown to the reference, has most in common with one."""
    best, found = _RESEMBLES, None
    for index, other in enumerate(others):
        likeness = wanted.likeness(other)
        if likeness > best and not any(other.same_as(one) for one in known):
            best, found = likeness, index
    return found


class Fingerprint:
    """A value that can be recognised in another layout."""

    def __init__(self, values: Array) -> None:
        wide = as_float64(values)
        self._shape = wide.shape
        self._finite = np.where(patterns(wide) == 0, wide, 0.0).reshape(-1)
        self._norm = norm(self._finite)
        self._sorted: Float64 | None = None

    def likeness(self, other: Fingerprint) -> float:
        """The cosine of two values of one size, element by element; 0 for another size."""
        scale = self._norm * other._norm
        if self._finite.size != other._finite.size or not scale > 0:
            return 0.0
        return abs(float(np.dot(self._finite, other._finite))) / scale

    def same_as(
        self, other: Fingerprint, *, tolerance: float = SAME, any_order: bool = True
    ) -> bool:
        """Whether both hold the same numbers: element by element, or in any order."""
        if self._finite.size != other._finite.size:
            return False
        allowed = tolerance * self._norm + 1e-30
        if abs(self._norm - other._norm) > allowed:
            return False
        if norm(self._finite - other._finite) <= allowed:
            return True
        if self._shape == other._shape or not any_order:
            return False
        return norm(self._in_order() - other._in_order()) <= allowed

    def is_reordered(self, source: Fingerprint) -> bool:
        """Whether this is the source with its elements moved, as a roll or a transpose makes."""
        if self._finite.size != source._finite.size:
            return False
        return bool(np.array_equal(self._in_order(), source._in_order()))

    def _in_order(self) -> Float64:
        if self._sorted is None:
            self._sorted = np.sort(self._finite)
        return self._sorted
