"""What the isolated replays of one mode found."""

from __future__ import annotations

from dataclasses import dataclass, field

from isograd.frameworks.base import Trial
from isograd.model import Finding, Gap, ModuleRatio, Stage
from isograd.verify.unit_finding import UnitFinding


@dataclass
class IsolatedResult:
    """Findings, gaps, ratios of modules and notes."""

    found: list[UnitFinding] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    checked: dict[Stage, int] = field(default_factory=dict)
    modules: list[ModuleRatio] = field(default_factory=list)
    following: dict[Stage, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    granted: tuple[Trial, ...] = ()
    #: Whether every named cause can be made in the reference.
    can_grant: bool = True

    @property
    def findings(self) -> list[Finding]:
        """The findings as a report has them."""
        return [one.finding for one in self.found]
