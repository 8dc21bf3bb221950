"""What a scan answers: uses, hazards and problems, frozen and without input or output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from isograd.report.base import Report

if TYPE_CHECKING:
    from isograd.scan.summary import Summary


@dataclass(frozen=True, slots=True)
class Answer:
    """What isograd says of one API; every use of it shares this value.

    status: supported, differs, missing or unknown.  effort: "", "safe", "needs a look", "by hand".
    verified: versions, device and verdicts of the execution behind it, or None.
    """

    api: str
    status: str
    target: str = ""
    note: str = ""
    effort: str = ""
    way: str = ""
    advice: str = ""
    verified: tuple[tuple[str, Any], ...] | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """One use of an API: line and column count from 1; cell is a notebook's cell, or 0."""

    line: int
    column: int
    how: str
    answer: Answer
    cell: int = 0


@dataclass(frozen=True, slots=True)
class Hazard:
    """A place that a port has to treat with care; device is empty where it holds everywhere.

    is_silent: whether the port would train on with another result, and nothing would say so.
    """

    code: str
    line: int
    message: str
    advice: str
    device: str = ""
    cell: int = 0
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A file, or a part of one, that could not be scanned as it is; line 0 is the whole file."""

    code: str
    file: str
    line: int
    message: str
    advice: str
    cell: int = 0


@dataclass(frozen=True, slots=True)
class FileScan:
    """One file: its path as it is reported, its lines, and what was found in it.

    ignores: (cell, line, patterns of codes) of each comment `# isograd: ignore`.  other_uses,
    other_hazards: those that comments or options ignore; they are there and count in shares.
    """

    file: str
    lines: int
    uses: tuple[Use, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    ignores: tuple[tuple[int, int, tuple[str, ...]], ...] = ()
    other_uses: tuple[Use, ...] = ()
    other_hazards: tuple[Hazard, ...] = ()


@dataclass(frozen=True)
class ScanReport(Report):
    """The whole answer of `isograd scan`.

    path: what was scanned.  mindspore, torch, device: what the knowledge was executed on.
    suppressed: findings that comments or options ignore.  skipped: files and folders that git
    ignores or an option excludes.  fail_on: what a person must act on.
    """

    path: str
    files: tuple[FileScan, ...]
    problems: tuple[Problem, ...]
    torch: str = ""
    mindspore: str = ""
    device: str = ""
    is_cached: bool = False
    elapsed_s: float = 0.0
    suppressed: int = 0
    skipped: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ("missing", "hazard")

    @cached_property
    def summary(self) -> Summary:
        """What the scan adds up to."""
        from isograd.scan.summary import summarize

        return summarize(self)

    @property
    def needs_action(self) -> bool:
        """Whether one of the kinds of `fail_on` was found, or a file could not be scanned."""
        from isograd.scan.summary import fails

        return fails(self, self.fail_on)

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        from isograd.scan.data import report_value

        return report_value(self)
