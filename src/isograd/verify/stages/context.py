"""What the stages of a verification share, and what each of them says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from isograd.frameworks.base import Trial
from isograd.model import Finding, Gap, LossCurves, ModuleRatio, Severity, Stage, StageVerdict
from isograd.verify.compiled.port import CompiledPort
from isograd.verify.end_to_end import PassResult, look_again
from isograd.verify.findings import whole_findings
from isograd.verify.isolated_result import IsolatedResult
from isograd.verify.keep import Keeper
from isograd.verify.session import Session
from isograd.worker.protocols import Causes

#: The position of what concerns no single call: behind all others.
LAST = math.inf


@dataclass(frozen=True)
class Ranked:
    """A finding of a stage, and the position in the network by which it is sorted."""

    finding: Finding
    position: float = 0.0


@dataclass
class StageOutcome:
    """What one stage says.

    checked: how many tensors were compared.
    detail: one line for the report.
    divergent: whether it diverges though no finding of its own says so (they follow from others).
    skipped: why nothing was compared; empty where something was.
    verdict: where it does not follow from the rest.
    """

    stage: Stage
    checked: int = 0
    detail: str = ""
    findings: list[Ranked] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    modules: list[ModuleRatio] = field(default_factory=list)
    losses: LossCurves | None = None
    divergent: bool = False
    skipped: str = ""
    verdict: StageVerdict | None = None

    @property
    def diverges(self) -> bool:
        """Whether a finding of this stage matters."""
        found = (one.finding for one in self.findings)
        return any(finding.diverges for finding in found if finding.stage is self.stage)

    def add(self, findings: Iterable[Finding], position: float = 0.0) -> None:
        """Take findings, all at one position."""
        self.findings += [Ranked(finding, position) for finding in findings]

    def take(self, isolated: IsolatedResult) -> None:
        """Take a mode's findings of this stage, once for each module and kind, and its gaps."""
        for one in isolated.found:
            finding = one.finding
            if finding.stage is not self.stage:
                continue
            known = next(
                (i for i, r in enumerate(self.findings) if _is_same(r.finding, finding)), None
            )
            if known is None:
                self.findings.append(Ranked(finding, one.position))
            else:
                before = self.findings[known]
                self.findings[known] = replace(before, finding=_merged(before.finding, finding))
        self.gaps += [g for g in isolated.gaps if g.stage is self.stage and g not in self.gaps]


@dataclass
class StageContext:
    """What a stage can ask, and what the stages before it have left.

    keep: the folder in which the recorded passes are kept, if they are; keeper writes them.
    findings: of all stages before, in order.
    passes, isolated: by mode, the whole passes and the modules alone, from the stage forward on.
    granted_rules, granted_loss: the named causes of updates and of the loss, which the reference
    can be made to follow.
    port_compiled: the port that compiles in the background, if the stage compiled runs.
    has_trained: whether the stage update has run.
    """

    session: Session
    keep: Path | None = None
    keeper: Keeper | None = None
    findings: list[Finding] = field(default_factory=list)
    passes: dict[str, PassResult] = field(default_factory=dict)
    isolated: dict[str, IsolatedResult] = field(default_factory=dict)
    granted_rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    granted_loss: tuple[Trial, ...] = ()
    port_compiled: CompiledPort | None = None
    has_trained: bool = False

    def diverging(self, outcome: StageOutcome) -> list[Finding]:
        """Findings that matter: of the stages before and of this one."""
        own = [one.finding for one in outcome.findings]
        return [finding for finding in (*self.findings, *own) if finding.diverges]

    def compare_whole(self, outcome: StageOutcome, prefixes: Sequence[str]) -> None:
        """End to end: an own finding only where no module explains the difference."""
        if self.session.part.module is not None:
            return
        if self.diverging(outcome) and outcome.stage is not Stage.INFERENCE:
            return
        for mode, once in list(self.passes.items()):
            whole = self.passes[mode] = look_again(self.session, mode, once, tuple(prefixes))
            is_known = bool(outcome.findings)
            found = whole_findings(self.session, outcome.stage, mode, whole, tuple(prefixes))
            outcome.add((f for f in found if f.diverges or not is_known), LAST)

    def grant(self, outcome: StageOutcome) -> bool:
        """Let the reference follow the named causes from here on; whether nothing is unexplained.

        What then still differs is a fault of its own, so one run lists them all.
        """
        if any(f.cause is None or f.stage is Stage.PARAMETERS for f in self.diverging(outcome)):
            return False
        if not all(isolated.can_grant for isolated in self.isolated.values()):
            return False
        trials: list[Trial] = []
        for isolated in self.isolated.values():
            trials += [t for t in isolated.granted if t not in trials]
        self.session.reference.ask(Causes.grant, tuple(trials), self.granted_loss)
        return True


def _is_same(known: Finding, other: Finding) -> bool:
    """Whether both modes found the same: one cause is enough where the other mode abstains."""
    if (known.code, known.module) != (other.code, other.module):
        return False
    if known.cause is None or other.cause is None:
        return True
    return known.cause.id == other.cause.id


def _merged(before: Finding, finding: Finding) -> Finding:
    kept = before
    if finding.cause is not None and (
        before.cause is None or (finding.cause.proved and not before.cause.proved)
    ):
        kept = replace(kept, cause=finding.cause, fix=finding.fix)
    if finding.severity is Severity.EFFECTIVE:
        kept = replace(kept, severity=Severity.EFFECTIVE)
    return kept
