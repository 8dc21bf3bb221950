"""What a scan adds up to: shares by uses and by names, what costs most, and what fails a build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isograd.scan.model import Answer, FileScan, Problem, ScanReport


STATUSES = ("supported", "differs", "missing", "unknown")
#: What one use costs a person, by status and by who may apply the rewrite: a missing API has to be
#: written, a difference handled by hand or looked at; what a tool converts alone costs nothing.
_WEIGHTS = {"missing": 5.0, "unknown": 1.0}
_EFFORT_WEIGHTS = {"by hand": 3.0, "needs a look": 1.0}
#: A hazard costs like a difference by hand; one of a single device is a matter of tuning.
_HAZARD_WEIGHT = 3.0
_DEVICE_WEIGHT = 0.5
FAILURES = ("missing", "differs", "hazard")


@dataclass(frozen=True)
class Cost:
    """One API or hazard code, how often it occurs, and what that costs; answer is its example."""

    name: str
    kind: str
    count: int
    cost: float
    text: str


@dataclass(frozen=True)
class FileSummary:
    """The counts of one file."""

    file: str
    lines: int
    counts: dict[str, int]
    hazards: int


@dataclass(frozen=True)
class Summary:
    """The counts of a whole scan; shares are between 0 and 1, or None without any use.

    Findings that comments or options ignore count, too: they are there. costs are of the others.
    """

    files: int
    lines: int
    uses: dict[str, int]
    names: dict[str, int]
    hazards: dict[str, int]
    problems: dict[str, int]
    costs: tuple[Cost, ...]
    per_file: tuple[FileSummary, ...]

    @property
    def share_of_uses(self) -> float | None:
        """Uses that MindSpore supports as they are."""
        return _share(self.uses)

    @property
    def share_of_names(self) -> float | None:
        """Names that MindSpore supports as they are."""
        return _share(self.names)


def _share(counts: dict[str, int]) -> float | None:
    total = sum(counts.values())
    return counts["supported"] / total if total else None


def summarize(report: ScanReport) -> Summary:
    """Add up a report."""
    by_answer: Counter[Answer] = Counter()
    reported: Counter[Answer] = Counter()
    hazards: Counter[tuple[str, str]] = Counter()
    by_code: Counter[str] = Counter()
    texts: dict[str, str] = {}
    per_file = []
    for scan in report.files:
        shown = Counter(use.answer for use in scan.uses)
        reported.update(shown)
        counts = shown + Counter(use.answer for use in scan.other_uses)
        by_answer.update(counts)
        by_code.update(one.code for one in (*scan.hazards, *scan.other_hazards))
        for hazard in scan.hazards:
            hazards[hazard.code, hazard.device] += 1
            texts.setdefault(hazard.code, hazard.advice)
        if counts or scan.hazards or scan.other_hazards:
            per_file.append(_file_summary(scan, counts))
    names: dict[str, str] = {}
    for answer in by_answer:
        if names.get(answer.api, "unknown") == "unknown":
            names[answer.api] = answer.status
    uses: Counter[str] = Counter()
    for answer, count in by_answer.items():
        uses[answer.status] += count
    return Summary(
        files=len(report.files),
        lines=sum(scan.lines for scan in report.files),
        uses=_ordered(uses),
        names=_ordered(Counter(names.values())),
        hazards=dict(by_code.most_common()),
        problems=dict(Counter(problem.code for problem in report.problems).most_common()),
        costs=_costs(reported, hazards, texts),
        per_file=tuple(sorted(per_file, key=lambda item: (-_open(item), item.file))),
    )


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return {status: counts[status] for status in STATUSES}


def _file_summary(scan: FileScan, counts: Counter[Answer]) -> FileSummary:
    found: Counter[str] = Counter()
    for answer, count in counts.items():
        found[answer.status] += count
    hazards = len(scan.hazards) + len(scan.other_hazards)
    return FileSummary(scan.file, scan.lines, _ordered(found), hazards)


def _open(item: FileSummary) -> int:
    """What is left to do in a file: more of it comes first."""
    return sum(item.counts[status] for status in STATUSES[1:]) + item.hazards


def _costs(
    by_answer: Counter[Answer], hazards: Counter[tuple[str, str]], texts: dict[str, str]
) -> tuple[Cost, ...]:
    """Everything that costs something, the dearest first."""
    found = []
    for answer, count in by_answer.items():
        weight = _WEIGHTS.get(answer.status)
        if weight is None:
            weight = _EFFORT_WEIGHTS.get(answer.effort, 0.0) if answer.status == "differs" else 0.0
        if weight:
            text = answer.note or answer.advice.split("\n")[0] or answer.way
            found.append(Cost(answer.api, answer.status, count, count * weight, text))
    for (code, device), count in hazards.items():
        weight = _DEVICE_WEIGHT if device else _HAZARD_WEIGHT
        found.append(Cost(code, "hazard", count, count * weight, texts[code]))
    return tuple(sorted(found, key=lambda item: (-item.cost, item.name)))


def unread(report: ScanReport) -> list[Problem]:
    """Files, and parts of files, that could not be scanned."""
    return [one for one in report.problems if one.code not in ("symlink-loop", "encoding")]


def fails(report: ScanReport, kinds: Iterable[str]) -> bool:
    """Whether a person must act: on one of the kinds, or on a file that could not be scanned."""
    if unread(report):
        return True
    wanted = set(kinds)
    return any(
        ("hazard" in wanted and any(not hazard.device for hazard in scan.hazards))
        or any(use.answer.status in wanted for use in scan.uses)
        for scan in report.files
    )
