"""Which function between modules is the first to differ, for the words of a finding.

Both sides are run once more with their functions noted.  A reference function whose result the
port yields nowhere, and none of whose consequences the port yields, is where they part: a port
may compute in other steps (a fused attention, a softmax by hand) and meet again afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isograd.compare.metrics import Float64, as_float64, norm, patterns
from isograd.errors import IsogradError
from isograd.frameworks.base import FunctionCall, ReplayRequest
from isograd.tensors import Array
from isograd.verify.session import Session

#: Relative error up to which two float32 results count as the same value.
SAME = 3e-6
_MOST_ELEMENTS = 1 << 21


@dataclass(frozen=True)
class Culprit:
    """The first function that differs, and the reference's module whose code calls it."""

    module: str
    function: str


def find_culprit(session: Session, reference: ReplayRequest, port: ReplayRequest) -> Culprit | None:
    """Compare the functions of one unit on both sides; None where nothing stands out."""
    try:
        ours: tuple[FunctionCall, ...] = session.reference.call("trace", reference)
        theirs: tuple[FunctionCall, ...] = session.port.call("trace", port)
    except IsogradError:
        return None
    if any(event.value.values.size > _MOST_ELEMENTS for event in ours):
        return None
    candidates = [Fingerprint(event.value.values) for event in theirs]
    known = [Fingerprint(event.value.values) for event in ours]
    met = []
    for event, mine in zip(ours, known, strict=True):
        moves_only = any(mine.is_reordered(known[source]) for source in event.sources)
        met.append(any(mine.same_as(other, any_order=not moves_only) for other in candidates))
    for index in range(len(ours) - 1, -1, -1):
        if met[index]:
            for source in ours[index].sources:
                met[source] = True
    for index, event in enumerate(ours):
        if not met[index]:
            return Culprit(event.module, event.function)
    return None


class Fingerprint:
    """A value that can be recognised in another layout."""

    def __init__(self, values: Array) -> None:
        wide = as_float64(values)
        self._shape = wide.shape
        self._finite = np.where(patterns(wide) == 0, wide, 0.0).reshape(-1)
        self._norm = norm(self._finite)
        self._sorted: Float64 | None = None

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
