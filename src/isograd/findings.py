"""What every verb reports: a finding with its code, level, place, evidence and fix.

`Finding` is what text, HTML and SARIF draw.  A verb may compute richer results of its own; its
`document.py` turns them into findings, and its `to_data` into the contract's JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(str, Enum):
    """How a finding is drawn: an error or a warning needs a person, a note does not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Applicability(str, Enum):
    """Who may apply a fix: a tool alone, a tool with a person looking, or a person."""

    SAFE = "safe"
    REVIEW = "review"
    MANUAL = "manual"


@dataclass(frozen=True)
class Location:
    """Where a finding is; everything is optional, and drawn as far as it is known.

    line and column count from 1; cell is a notebook's cell from 1, 0 outside of one.
    stage: a stage of `verify` or a phase of a training step.
    """

    file: str = ""
    line: int | None = None
    column: int | None = None
    module: str | None = None
    step: int | None = None
    stage: str = ""
    cell: int = 0


@dataclass(frozen=True)
class Fix:
    """What to change and where (`file.py:line`)."""

    text: str
    where: str | None = None
    applicability: Applicability = Applicability.MANUAL


@dataclass(frozen=True)
class Finding:
    """One thing that a person may act on.

    code: `<subject>.<condition>`, searchable and stable.
    severity: the verb's own word for how much it matters ("effective", "alert"); may be empty.
    evidence: what was measured, a line each.  advice: what to do, where there is no `fix`.
    """

    code: str
    level: Level
    message: str
    severity: str = ""
    location: Location = Location()
    evidence: tuple[str, ...] = ()
    advice: str = ""
    fix: Fix | None = None


@dataclass(frozen=True)
class Rule:
    """What stands behind a code, for SARIF and for a page's help.

    summary: one sentence.  help: more, in plain text.  uri: a page that says more.
    """

    code: str
    summary: str
    help: str = ""
    uri: str = ""
