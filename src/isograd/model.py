"""The values that every stage returns and every report draws: frozen, no input or output.

The vocabulary (stages, verdicts, severities, cause ids) is that of the interface contract; the
report turns these values into JSON, text and HTML and adds nothing of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Stage(str, Enum):
    """The rungs of the ladder, in the order in which they are climbed."""

    PARAMETERS = "parameters"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    UPDATE = "update"
    TRAINING = "training"
    INFERENCE = "inference"


class Verdict(str, Enum):
    """The answer of a whole verification."""

    EQUIVALENT = "equivalent"
    DIVERGENT = "divergent"
    INCOMPLETE = "incomplete"


class StageVerdict(str, Enum):
    """The answer of one stage."""

    EQUIVALENT = "equivalent"
    DIVERGENT = "divergent"
    SKIPPED = "skipped"
    ERROR = "error"


class Severity(str, Enum):
    """How much a finding matters: effective and masked make a port divergent."""

    EFFECTIVE = "effective"
    MASKED = "masked"
    BELOW_NOISE = "below-noise"
    EQUIVALENT = "equivalent"


@dataclass(frozen=True)
class Evidence:
    """What was measured where two tensors differ.

    differing, total: elements outside the allowance, and all elements.
    first_index: index of the first element outside the allowance.
    error: relative Frobenius error of the finite elements against float64.
    allowed: the noise envelope, in the same unit.
    greatest_index, greatest_reference, greatest_port: the element that differs most.
    """

    tensor: str
    differing: int
    total: int
    first_index: tuple[int, ...] | None
    error: float
    allowed: float
    greatest_index: tuple[int, ...] | None = None
    greatest_reference: float | None = None
    greatest_port: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Cause:
    """A named cause, by the contract's vocabulary of cause ids."""

    id: str
    reference: float | str | None = None
    port: float | str | None = None
    alpha: float | None = None
    interval: tuple[float, float] | None = None
    proved: bool = False
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fix:
    """What to change and where (`file.py:line`)."""

    text: str
    where: str | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that a person should know, of any stage.

    ratio is the error over the noise envelope; None where the finding is structural (a missing
    parameter, a wrong shape).  Only severities effective and masked make a port divergent.
    """

    code: str
    severity: Severity
    stage: Stage
    module: str
    message: str
    ratio: float | None = None
    step: int = 0
    mode: str | None = None
    evidence: Evidence | None = None
    cause: Cause | None = None
    fix: Fix | None = None
    isolated: bool = True

    @property
    def diverges(self) -> bool:
        """Whether this finding makes a port divergent."""
        return self.severity in (Severity.EFFECTIVE, Severity.MASKED)


@dataclass(frozen=True)
class Gap:
    """Something that could not be compared; one gap makes a verdict incomplete."""

    stage: Stage
    what: str
    why: str


@dataclass(frozen=True)
class StageResult:
    """The outcome of one stage.

    checked counts the tensors that were compared.
    """

    stage: Stage
    verdict: StageVerdict
    checked: int
    elapsed_s: float
    detail: str


@dataclass(frozen=True)
class ModuleRatio:
    """The worst ratio of one reference module in one stage, for the module tree of the report."""

    module: str
    kind: str
    port_module: str | None
    stage: Stage
    ratio: float | None
    mode: str | None = None


@dataclass(frozen=True)
class PairedParameters:
    """Parameters that were taken for the same, and on what evidence.

    how: "rename", "name", "structure" or "value"; transform: what turns the reference's layout
    into the port's.
    """

    reference: tuple[str, ...]
    port: tuple[str, ...]
    how: str
    transform: str


@dataclass(frozen=True)
class LossCurves:
    """Free-running losses of both sides, for people who want the migration guide's own rule.

    relative_permille holds |port - reference| / |reference| in ‰, per step.
    """

    reference: tuple[float, ...]
    port: tuple[float, ...]
    relative_permille: tuple[float, ...]
    first_step_out: int | None


@dataclass(frozen=True)
class FirstDivergence:
    """Where the ladder first left the noise; ratio is None for a structural difference."""

    stage: Stage
    module: str
    step: int
    ratio: float | None


@dataclass(frozen=True)
class Side:
    """What one side of a verification ran on."""

    framework: str
    framework_version: str
    python_version: str
    device: str
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerifyReport:
    """The whole answer of `isograd verify`."""

    verdict: Verdict
    case: str
    reference: Side | None
    port: Side | None
    stages: tuple[StageResult, ...]
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    modules: tuple[ModuleRatio, ...] = ()
    losses: LossCurves | None = None
    pairs: tuple[PairedParameters, ...] = ()
    notes: tuple[str, ...] = ()
    seed: int = 0
    elapsed_s: float = 0.0
    thresholds: dict[str, float] = field(default_factory=dict)

    @property
    def first_divergence(self) -> FirstDivergence | None:
        """The first divergent finding in the order of the ladder, or None."""
        for finding in self.findings:
            if finding.diverges:
                return FirstDivergence(finding.stage, finding.module, finding.step, finding.ratio)
        return None
