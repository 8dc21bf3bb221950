"""What a conversion of a checkpoint plans and what it reports: values without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from isograd.pairing.parametrized import Fold
from isograd.pairing.transforms import Identity, Transform
from isograd.report.base import Report
from isograd.weights.casts import CastLoss


@dataclass(frozen=True)
class Move:
    """Tensors of the source that become tensors of the target.

    why: what decided it: `name`, `convention`, `rename`, `map`, `network`.
    fold: what the tensors of the source are the parts of; the transform is of the whole.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    transform: Transform = field(default_factory=Identity)
    why: str = "name"
    fold: Fold | None = None


@dataclass(frozen=True)
class Dropped:
    """A tensor of the source that the target does not get; needs_action: a person must look."""

    name: str
    reason: str
    needs_action: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything that a conversion will do.

    missing: tensors that the loading network has and the source lacks.
    conflicts: what has another shape there than here.
    notes: guesses and what else a person should know.
    """

    moves: tuple[Move, ...]
    dropped: tuple[Dropped, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()

    @property
    def does_not_fit(self) -> bool:
        """Whether the loading network would lack something, or might get it in a wrong place."""
        return bool(self.missing or self.ambiguous or self.conflicts)


@dataclass(frozen=True)
class ConversionReport(Report):
    """What a conversion did; is_written: false where the plan does not fit the network."""

    source: str
    target: str
    source_kind: str
    target_format: str
    plan: Plan
    tensors: int
    size_bytes: int
    ties: tuple[tuple[str, str], ...]
    casts: tuple[CastLoss, ...]
    verified: bool
    is_written: bool
    elapsed_s: float

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        from isograd.weights.data import report_value

        return report_value(self)

    @property
    def needs_action(self) -> bool:
        """Whether a person must look at something."""
        return bool(
            self.plan.does_not_fit
            or any(dropped.needs_action for dropped in self.plan.dropped)
            or any(cast.overflowed for cast in self.casts)
        )
