"""What `isograd data` finds, as frozen values; `to_data` is the contract's JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from isograd.findings import Finding, Level
from isograd.report.base import Report


class Verdict(str, Enum):
    """The answer: of one source sound or unsound, of two the same or not."""

    SAME = "same"
    DIFFERS = "differs"
    SOUND = "sound"
    UNSOUND = "unsound"
    INCOMPLETE = "incomplete"


class Order(str, Enum):
    """How the samples of B stand to those of A."""

    SAME = "same"
    PERMUTED = "permuted"
    OTHER = "other"


@dataclass(frozen=True)
class Statistics:
    """Numbers of one channel or column, over every finite element.

    quantiles: 1, 25, 50, 75 and 99 %; exact for integers of one byte, else of a seeded sample
    whose rank error is stated in docs/data.md.
    """

    channel: str
    count: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    deviation: float | None
    quantiles: tuple[float, ...] = ()
    nans: int = 0
    infinities: int = 0


@dataclass(frozen=True)
class FieldReport:
    """One field: dtypes and shapes with how many samples have each, and its statistics.

    kind: "numbers", "image", "audio", "text" or "bytes".  lengths: smallest, mean and greatest
    length of a text or of bytes.  lacking: samples without the field.
    """

    name: str
    kind: str
    dtypes: dict[str, int]
    shapes: dict[str, int]
    statistics: tuple[Statistics, ...] = ()
    lengths: tuple[int, float, int] | None = None
    lacking: int = 0


@dataclass(frozen=True)
class LabelReport:
    """How often each label occurs; names where the layout has them."""

    field: str
    counts: dict[int, int]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shown:
    """A sample to look at: what a page needs of it, already small.

    pictures: by field, PNG bytes; sounds: by field, WAVE bytes; texts: by field; codes: the
    findings that the sample is an example of; legends: by field of a mask, a CSS colour and a text
    for each value.
    """

    key: str
    split: str
    label: str
    pictures: dict[str, bytes]
    sounds: dict[str, bytes]
    texts: dict[str, str]
    codes: tuple[str, ...] = ()
    legends: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceReport:
    """What is in one source."""

    path: str
    format: str
    samples: int
    fields: tuple[FieldReport, ...]
    findings: tuple[Finding, ...]
    labels: tuple[LabelReport, ...] = ()
    splits: dict[str, int] | None = None
    shown: tuple[Shown, ...] = ()
    notes: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    is_complete: bool = True

    def to_data(self) -> dict[str, Any]:
        """The contract's `sources` entry."""
        return {
            "path": self.path,
            "format": self.format,
            "samples": self.samples,
            "fields": [_field_data(field) for field in self.fields],
            "labels": [
                {"field": one.field, "counts": one.counts, "names": one.names}
                for one in self.labels
            ],
            "splits": self.splits,
            "findings": [finding_data(finding) for finding in self.findings],
            "notes": self.notes,
            "elapsed_s": self.elapsed_s,
        }


def _field_data(field: FieldReport) -> dict[str, Any]:
    return {
        "name": field.name,
        "kind": field.kind,
        "dtype": next(iter(field.dtypes), None),
        "dtypes": field.dtypes,
        "shapes": field.shapes,
        "lacking": field.lacking,
        "lengths": field.lengths,
        "statistics": [vars(one) for one in field.statistics],
    }


def finding_data(finding: Finding) -> dict[str, Any]:
    """A finding as the contract draws it."""
    return {
        "code": finding.code,
        "level": finding.level,
        "message": finding.message,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "fix": None
        if finding.fix is None
        else {"text": finding.fix.text, "where": finding.fix.where},
    }


@dataclass(frozen=True)
class Cause:
    """Why two pipelines differ; proved where applying it to A made A equal B on other samples."""

    id: str
    proved: bool
    text: str
    reference: str = ""
    port: str = ""
    checked: int = 0


@dataclass(frozen=True)
class Difference:
    """One way in which two pipelines differ.

    field, transform: where, as far as it is known; cause: None where isograd abstains.
    """

    finding: Finding
    cause: Cause | None = None
    field: str = ""
    transform: str = ""

    def to_data(self) -> dict[str, Any]:
        """The contract's entry of `comparison.findings`."""
        found = finding_data(self.finding)
        found["field"] = self.field or None
        found["transform"] = self.transform or None
        found["cause"] = None if self.cause is None else vars(self.cause)
        return found


@dataclass(frozen=True)
class FieldComparison:
    """One field over all paired samples; at: the sample that differs most."""

    name: str
    port_name: str
    same: int
    differs: int
    greatest: float
    at: str
    allowed: float
    dtypes: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class StepComparison:
    """A transform of A beside that of B, with the same input given to both.

    outcome: "same", "differs", "same distribution", "other distribution", "not compared".
    """

    field: str
    reference: str
    port: str
    outcome: str
    greatest: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class FirstDifference:
    """The first sample, field and transform in which the two part."""

    sample: str
    field: str
    transform: str | None


@dataclass(frozen=True)
class Comparison:
    """Whether two pipelines yield the same."""

    samples: int
    paired_by: str
    order: Order
    fields: tuple[FieldComparison, ...]
    differences: tuple[Difference, ...]
    steps: tuple[StepComparison, ...] = ()
    first_difference: FirstDifference | None = None
    gaps: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """The contract's `comparison`."""
        return {
            "samples": self.samples,
            "paired_by": self.paired_by,
            "order": self.order,
            "fields": [vars(field) for field in self.fields],
            "steps": [vars(step) for step in self.steps],
            "first_difference": None
            if self.first_difference is None
            else vars(self.first_difference),
            "findings": [difference.to_data() for difference in self.differences],
            "gaps": self.gaps,
        }


@dataclass(frozen=True)
class DataReport(Report):
    """The whole answer of `isograd data`."""

    verdict: Verdict
    sources: tuple[SourceReport, ...]
    comparison: Comparison | None = None
    written: str = ""
    elapsed_s: float = 0.0
    seed: int = 0

    @property
    def needs_action(self) -> bool:
        """Whether a person must act: all but the same and the sound."""
        return self.verdict not in (Verdict.SAME, Verdict.SOUND)

    def to_data(self) -> dict[str, Any]:
        """The contract's JSON."""
        return {
            "schema": "isograd/data/1",
            "verdict": self.verdict,
            "sources": [source.to_data() for source in self.sources],
            "comparison": None if self.comparison is None else self.comparison.to_data(),
            "written": self.written or None,
            "seed": self.seed,
            "elapsed_s": self.elapsed_s,
        }


def soundness(sources: tuple[SourceReport, ...]) -> Verdict:
    """The verdict on sources alone: an error makes unsound, an early end incomplete."""
    if any(f.level is Level.ERROR for source in sources for f in source.findings):
        return Verdict.UNSOUND
    if not all(source.is_complete for source in sources):
        return Verdict.INCOMPLETE
    return Verdict.SOUND
