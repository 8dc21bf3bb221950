"""The values that every stage returns and every report draws: frozen, no input or output.

The vocabulary (stages, verdicts, severities, cause ids) is that of the interface contract; the
report turns these values into JSON, text and HTML and adds nothing of its own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from isograd.edits import SourceEdit
from isograd.report.base import Report


class Stage(str, Enum):
    """The rungs of the ladder, in the order in which they are climbed."""

    PARAMETERS = "parameters"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    UPDATE = "update"
    TRAINING = "training"
    INFERENCE = "inference"
    COMPILED = "compiled"


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
    """A named cause, by the contract's vocabulary of cause ids.

    alpha: how much of the change that the cause would make is in the port's error (1 is all of
    it), with its interval; text: the cause in words; alternatives: ids that the data cannot tell
    apart from it.
    """

    id: str
    reference: float | str | None = None
    port: float | str | None = None
    alpha: float | None = None
    interval: tuple[float, float] | None = None
    proved: bool = False
    alternatives: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Fix:
    """What to change and where (`file.py:line`).

    edits: of the port's source, where the change is one that can be applied; without them it is
    where to look, and what should be computed there.
    """

    text: str
    where: str | None = None
    edits: tuple[SourceEdit, ...] = ()

    @property
    def is_edit(self) -> bool:
        """Whether it can be applied as it stands."""
        return bool(self.edits)


@dataclass(frozen=True)
class Finding:
    """One thing that a person should know, of any stage.

    ratio is the error over the noise envelope; None where the finding is structural (a missing
    parameter, a wrong shape).  Only severities effective and masked make a port divergent.
    modules: all that differ by the same line and cause, `module` first; empty for one.
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
    modules: tuple[str, ...] = ()

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
class VerifyReport(Report):
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
    def needs_action(self) -> bool:
        """Whether the port is anything but equivalent."""
        return self.verdict is not Verdict.EQUIVALENT

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        from isograd.model.verify_data import report_value

        return report_value(self)

    @property
    def first_divergence(self) -> FirstDivergence | None:
        """The first divergent finding in the order of the ladder, or None."""
        for finding in self.findings:
            if finding.diverges:
                return FirstDivergence(finding.stage, finding.module, finding.step, finding.ratio)
        return None


@dataclass(frozen=True)
class ComparedTensor:
    """One tensor of a module that ran alone; problem says why there is no ratio."""

    stage: Stage
    what: str
    differs: bool
    ratio: float | None
    evidence: Evidence | None = None
    problem: str = ""


@dataclass(frozen=True)
class Attempt:
    """One hypothesis that was tried on a module.

    module, function: where in the reference; ratio: what is left of the error under it, over the
    noise; alpha, interval: the matched filter's projection; reason: why it was not accepted.
    is_named: whether the cause was drawn from it.
    """

    id: str
    text: str
    module: str
    function: str
    ratio: float
    alpha: float
    interval: tuple[float, float]
    accepted: bool
    reason: str = ""
    is_named: bool = False


@dataclass(frozen=True)
class PlacedCause:
    """A cause with the place in the reference and the interval of its estimated number."""

    cause: Cause
    module: str
    function: str
    number: tuple[float, float] | None = None


@dataclass(frozen=True)
class StageDiagnosis:
    """What explains one stage of one call; no causes where isograd abstains.

    ratio_before, ratio_after: the worst error over the noise, as found and under the causes.
    severity: below-noise where the error is within the noise but not at random.
    """

    stage: Stage
    severity: Severity
    ratio_before: float
    ratio_after: float | None
    causes: tuple[PlacedCause, ...]
    attempts: tuple[Attempt, ...]
    fix: Fix | None = None
    note: str = ""


@dataclass(frozen=True)
class CallDiagnosis:
    """One call of the module, replayed alone.

    given: modules inside whose recorded results were given; failure: why it could not be judged,
    altogether or backwards; note: what else is known of it.
    """

    name: str
    given: tuple[str, ...] = ()
    tensors: tuple[ComparedTensor, ...] = ()
    stages: tuple[StageDiagnosis, ...] = ()
    failure: str = ""
    note: str = ""

    @property
    def differs(self) -> bool:
        """Whether a tensor of it is outside the noise."""
        return any(tensor.differs for tensor in self.tensors)


@dataclass(frozen=True)
class DiagnoseReport(Report):
    """The whole answer of `isograd diagnose`: one module, or the loss, alone.

    findings: what other checks say of the module (its parameters, its dropout).
    """

    verdict: Verdict
    case: str
    module: str
    kind: str
    port_module: str | None
    mode: str
    reference: Side | None
    port: Side | None
    calls: tuple[CallDiagnosis, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    seed: int = 0
    elapsed_s: float = 0.0
    thresholds: dict[str, float] = field(default_factory=dict)

    @property
    def needs_action(self) -> bool:
        """Whether the module differs, or could not be judged."""
        return self.verdict is not Verdict.EQUIVALENT

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        from isograd.model.diagnose_data import report_value

        return report_value(self)


@dataclass(frozen=True)
class ListedModule:
    """A module of the reference, and how often one pass calls it."""

    name: str
    kind: str
    calls: int


@dataclass(frozen=True)
class ModuleList(Report):
    """What `isograd diagnose --list` answers: the modules that `--module` takes."""

    case: str
    modules: tuple[ListedModule, ...]

    @property
    def needs_action(self) -> bool:
        """A list needs none."""
        return False

    def to_data(self) -> dict[str, Any]:
        """The modules as plain values."""
        return {"case": self.case, "modules": [asdict(module) for module in self.modules]}
