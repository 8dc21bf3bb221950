"""One run of isograd: what was asked, what it said, and whether that was right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from catalog import Edit

DIVERGING = ("effective", "masked")
BELOW_NOISE = "below-noise"


@dataclass(frozen=True)
class Said:
    """A finding of the report, shortened."""

    severity: str
    stage: str
    module: str | None
    cause: str | None
    proved: bool
    alternatives: tuple[str, ...]
    message: str

    @property
    def diverging(self) -> bool:
        """Tell whether this finding makes the port divergent."""
        return self.severity in DIVERGING


@dataclass(frozen=True)
class Outcome:
    """What isograd said about one case with one seed.

    verdict: None where it wrote no readable JSON; `error` then holds its last words.
    rules: the alarms of the simple rules.
    """

    id: str
    network: str
    kind: str
    seed: int
    verdict: str | None = None
    exit_status: int | None = None
    seconds: float = 0.0
    error: str = ""
    stage: str | None = None
    module: str | None = None
    ratio: float | None = None
    found: tuple[Said, ...] = ()
    rules: dict[str, bool | None] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the name under which a resumed benchmark knows this run."""
        return f"{self.id}@{self.seed}"

    @property
    def answered(self) -> bool:
        """Tell whether isograd did its work."""
        return self.verdict is not None and self.exit_status in (0, 1)

    @property
    def detected(self) -> bool:
        """Tell whether isograd found something that a person must act on."""
        return self.answered and self.exit_status == 1

    @property
    def named(self) -> tuple[Said, ...]:
        """Return the diverging findings that name a cause."""
        return tuple(said for said in self.found if said.diverging and said.cause)

    @property
    def below_noise(self) -> tuple[Said, ...]:
        """Return the findings below the noise that name a cause."""
        return tuple(said for said in self.found if said.severity == BELOW_NOISE and said.cause)


@dataclass(frozen=True)
class Judgement:
    """An outcome of a faulty port beside the right answer.

    named: how many of the `expected` causes diverging findings name; below: how many more only
    findings below the noise name; only_alternative: how many stand only among alternatives.
    exact_module: None where the entry names no module. wrong: the causes that are not right.
    """

    detected: bool
    exact_module: bool | None
    expected: int
    named: int
    proved: int
    below: int
    only_alternative: int
    wrong: tuple[str, ...]
    abstained: bool

    @property
    def right(self) -> bool:
        """Tell whether everything was found and nothing wrong was said."""
        found_all = self.detected and self.named == self.expected
        return found_all and not self.wrong and self.exact_module is not False


def judge(outcome: Outcome, edit: Edit) -> Judgement:
    """Compare what isograd said about a faulty port with the catalogue's answer."""
    right = set(edit.causes) | set(edit.accept)
    named = {said.cause for said in outcome.named}
    proved = {said.cause for said in outcome.named if said.proved}
    quiet = {said.cause for said in outcome.below_noise} - named
    others = {other for said in outcome.named for other in said.alternatives}
    exact = None
    if edit.module is not None:
        exact = outcome.detected and outcome.stage in edit.stages and outcome.module == edit.module
    return Judgement(
        detected=outcome.detected,
        exact_module=exact,
        expected=len(edit.causes),
        named=_count(edit, named),
        proved=_count(edit, proved),
        below=_count(edit, quiet | named) - _count(edit, named),
        only_alternative=_count(edit, others | named) - _count(edit, named),
        wrong=tuple(sorted({said.cause for said in outcome.named if said.cause} - right)),
        abstained=outcome.detected and not named,
    )


def _count(edit: Edit, causes: set[str | None]) -> int:
    """Count the expected causes among these; an accepted id stands for the one that it replaces."""
    if len(edit.causes) == 1:
        return int(bool(causes & {*edit.causes, *edit.accept}))
    return len(causes & set(edit.causes))


def read_report(report: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an Outcome that stand in isograd's verify JSON."""
    found = tuple(_said(finding) for finding in report["findings"])
    first = report.get("first_divergence") or {}
    stage, module = first.get("stage"), first.get("module")
    if stage is None:
        failed = (
            row["stage"] for row in report["stages"] if row["verdict"] in ("divergent", "error")
        )
        stage = next(failed, None)
        module = next((said.module for said in found if said.stage == stage), None)
    return {
        "verdict": report["verdict"],
        "stage": stage,
        "module": module,
        "ratio": first.get("ratio"),
        "found": found,
    }


def _said(finding: dict[str, Any]) -> Said:
    cause = finding.get("cause") or {}
    return Said(
        finding["severity"],
        finding["stage"],
        finding.get("module"),
        cause.get("id"),
        bool(cause.get("proved")),
        tuple(cause.get("alternatives") or ()),
        finding["message"][:200],
    )


def from_json(row: dict[str, Any]) -> Outcome:
    """Rebuild a kept outcome."""
    found = tuple(
        Said(**{**said, "alternatives": tuple(said["alternatives"])}) for said in row["found"]
    )
    return Outcome(**{**row, "found": found})
