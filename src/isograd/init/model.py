"""What `isograd init` answers: the files that it wrote, and what it knew and did not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isograd.report.base import Report

SCHEMA = "isograd/init/1"


@dataclass(frozen=True)
class Choice:
    """One thing of the case: what was taken, and where it stands (`file.py:line`)."""

    key: str
    taken: str
    where: str | None = None


@dataclass(frozen=True)
class InitReport(Report):
    """The whole answer of `isograd init`.

    files: what was written, the case first.  unknown: what a person has to look at.
    runs: whether both networks ran on the inputs; None where it was not tried.
    """

    files: tuple[str, ...]
    choices: tuple[Choice, ...]
    unknown: tuple[str, ...]
    runs: bool | None

    @property
    def needs_action(self) -> bool:
        """Whether the case does not run as it is."""
        return self.runs is False

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes."""
        choices = [{"key": c.key, "taken": c.taken, "where": c.where} for c in self.choices]
        return {
            "schema": SCHEMA,
            "files": list(self.files),
            "choices": choices,
            "unknown": list(self.unknown),
            "runs": self.runs,
        }
