"""A first case as a document: what was taken, and what a person has to look at."""

from __future__ import annotations

from isograd.init.model import InitReport
from isograd.report.document import Column, Document, Lines, Outcome, Section, Table, Tone


def document(report: InitReport) -> Document:
    """Draw what `isograd init` wrote."""
    case = report.files[0]
    outcomes = {
        True: Outcome(
            "written",
            f"{case} was written, and both networks ran. Next: isograd verify {case}",
            Tone.GOOD,
        ),
        False: Outcome(
            "written", f"{case} was written; it does not run yet. Correct it.", Tone.WARNING
        ),
        None: Outcome("written", f"{case} was written and not tried.", Tone.PLAIN),
    }
    columns = (Column("key"), Column("taken", is_code=True), Column("where", is_code=True))
    rows = [(choice.key, choice.taken, choice.where or "") for choice in report.choices]
    sections: list[Section] = [Table("What the case takes", columns, rows)]
    if len(report.files) > 1:
        sections.append(Lines("Written beside the case", report.files[1:]))
    if report.unknown:
        sections.append(Lines("What isograd could not know", report.unknown))
    return Document(f"isograd init {case}", outcomes[report.runs], tuple(sections))
