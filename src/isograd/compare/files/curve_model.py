"""What a comparison of two loss curves answers: frozen values, no input or output."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from isograd.report.base import Report

SCHEMA = "isograd/compare-curves/1"
#: The migration guide's limit on the relative difference of two losses, in ‰.
LIMIT_PERMILLE = 1.0


class CurveVerdict(str, Enum):
    """Where two curves part, and so where the migration guide says to look."""

    AGREE = "agree"
    INCOMPLETE = "incomplete"
    FORWARD = "forward"
    UPDATE = "backward-or-update"
    LATER = "drift-or-chaos"
    NONFINITE = "not-finite"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LossLog:
    """The losses of one log.

    kind: what the log is; series: the name of the column or tag.
    steps: strictly increasing; has_steps: whether the log numbers them itself.
    """

    path: str
    kind: str
    series: str
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    has_steps: bool = True


@dataclass(frozen=True)
class CurvesReport(Report):
    """The whole answer of `isograd compare` on two logs.

    steps, reference, other, permille: the common steps, both losses, and their relative difference
    in ‰ (infinite against zero, NaN where a loss is not finite on one side only).
    first_out: position among the common steps of the first that is beyond the limit, or None.
    """

    first: LossLog
    second: LossLog
    steps: tuple[int, ...]
    reference: tuple[float, ...]
    other: tuple[float, ...]
    permille: tuple[float, ...]
    first_out: int | None
    only_first: int
    only_second: int
    verdict: CurveVerdict
    explanation: str
    notes: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        out = self.first_out
        return {
            "schema": SCHEMA,
            **asdict(self),
            "needs_action": self.needs_action,
            "first_step_out": None if out is None else self.steps[out],
            "limit_permille": LIMIT_PERMILLE,
        }

    @property
    def needs_action(self) -> bool:
        """Whether a person must act on it: the exit status 1."""
        return self.verdict is not CurveVerdict.AGREE
