"""The fixes of a report as edits of the port's files: shown, or written."""

from __future__ import annotations

from dataclasses import dataclass

from isograd.edits import SourceEdit, apply, diff
from isograd.errors import UsageError
from isograd.model import VerifyReport


@dataclass(frozen=True)
class Fixes:
    """What of a report can be applied.

    edits: of the port's files; left: how many findings that diverge have none.
    """

    edits: tuple[SourceEdit, ...]
    left: int

    def diff(self) -> str:
        """The edits as a unified diff."""
        return diff(self.edits)

    def apply(self) -> str:
        """Write them, each file atomically; what was done, in one sentence."""
        changed = apply(self.edits)
        return f"Applied to {', '.join(str(path) for path in changed)}."

    def sentence(self) -> str:
        """How much of the report the edits cover."""
        if not self.edits:
            return "No finding has a fix that can be applied; `look at` says where to begin."
        if self.left:
            return f"{self.left} of the differences have no fix that can be applied."
        return "Every difference has a fix; `--apply` writes them and verifies again."


def fixes_of(report: VerifyReport) -> Fixes:
    """The edits of all findings that diverge: one fault, one edit, in the order of the findings.

    Edits that would change the same place are left out after the first: a second run finds what
    is left then.
    """
    chosen: list[SourceEdit] = []
    left = 0
    for finding in report.findings:
        if not finding.diverges:
            continue
        edits = finding.fix.edits if finding.fix is not None else ()
        if not edits:
            left += 1
            continue
        try:
            diff([*chosen, *edits])
        except UsageError:
            left += 1
            continue
        chosen += [edit for edit in edits if edit not in chosen]
    return Fixes(tuple(chosen), left)
