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
from isograd.verify.session import Session

#: Relative error up to which two float32 results count as the same value.
_SAME = 3e-6
_MOST_ELEMENTS = 1 << 21


@dataclass(frozen=True)
class Culprit:
    """The first function that differs, and the reference's module whose code calls it."""

    module: str
    function: str


def find_culprit(
    session: Session, reference: ReplayRequest, port: ReplayRequest
) -> Culprit | None:
    """Compare the functions of one unit on both sides; None where nothing stands out."""
    try:
        ours: tuple[FunctionCall, ...] = session.reference.call("trace", reference)
        theirs: tuple[FunctionCall, ...] = session.port.call("trace", port)
    except IsogradError:
        return None
    if any(event.value.values.size > _MOST_ELEMENTS for event in ours):
        return None
    candidates = [_Fingerprint(as_float64(event.value.values)) for event in theirs]
    known = [_Fingerprint(as_float64(event.value.values)) for event in ours]
    met = [any(mine.same_as(other) for other in candidates) for mine in known]
    for index in range(len(ours) - 1, -1, -1):
        if met[index]:
            for source in ours[index].sources:
                met[source] = True
    for index, event in enumerate(ours):
        if not met[index]:
            return Culprit(event.module, event.function)
    return None


class _Fingerprint:
    """A value that can be recognised in another layout."""

    def __init__(self, values: Float64) -> None:
        self._shape = values.shape
        self._finite = np.where(patterns(values) == 0, values, 0.0)
        self._norm = norm(self._finite)
        self._sorted: Float64 | None = None

    def same_as(self, other: _Fingerprint) -> bool:
        if self._finite.size != other._finite.size:
            return False
        allowed = _SAME * self._norm + 1e-30
        if abs(self._norm - other._norm) > allowed:
            return False
        if self._shape == other._shape:
            return norm(self._finite - other._finite) <= allowed
        return norm(self.in_order() - other.in_order()) <= allowed

    def in_order(self) -> Float64:
        if self._sorted is None:
            self._sorted = np.sort(self._finite, axis=None)
        return self._sorted
