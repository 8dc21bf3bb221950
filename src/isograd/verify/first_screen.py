"""How much of a verification's report fits the first screen; the rest is in --json and --html."""

from __future__ import annotations

from dataclasses import dataclass

from isograd.model import VerifyReport
from isograd.report.words import count_text
from isograd.verify import wording

#: Lines of a screen that nobody has to scroll.
LINES = 40
#: A heading, the line that says how many more there are, and a blank line.
_AROUND = 3
#: The title, the two sides, the table of stages with its heading, what is left out, the verdict.
_ALWAYS = 12
#: A further finding: what differs, and why.
_OF_A_FINDING = 2


_MOST_NOTES = 3


@dataclass(frozen=True)
class Shown:
    """How many entries of each section the text lists, and whether it speaks of the losses."""

    findings: int
    initial: int
    gaps: int
    notes: int
    losses: bool

    def left_out(self, report: VerifyReport) -> str:
        """The sections of which nothing is shown, in words; "" where there are none."""
        sections = (
            (self.gaps, len(report.gaps), "gap"),
            (self.findings, len(wording.further_findings(report)), "further finding"),
            (self.initial, len(wording.initial_findings(report)), "difference of initial value"),
            (self.notes, len(report.notes), "note"),
            (int(self.losses), int(report.losses is not None), "loss curve"),
        )
        words = [count_text(n, noun) for given, n, noun in sections if n and not given]
        return f"{', '.join(words)}: in --json and --html" if words else ""


def shown(report: VerifyReport) -> Shown:
    """The entries that fit: gaps and findings first, then initial values, losses and notes."""
    first = wording.first_finding(report)
    room = LINES - _ALWAYS - len(report.stages)
    room -= sum(bool(side and side.changed) for side in (report.reference, report.port))
    if first is not None:
        room -= 3 + len(wording.explanation(first, is_first=True))
    wanted = {
        "gaps": (len(report.gaps), 1),
        "findings": (len(wording.further_findings(report)), _OF_A_FINDING),
        "initial": (len(wording.initial_findings(report)), 1),
    }
    given = dict.fromkeys(wanted, 0)
    for name, (count, lines) in wanted.items():
        if count and room >= _AROUND + lines:
            given[name] = 1
            room -= _AROUND + lines
    has_losses = report.losses is not None and room >= 2
    room -= 2 if has_losses else 0
    notes = max(0, min(len(report.notes), room - 3, _MOST_NOTES))
    room -= notes + 3 if notes else 0
    for name, (count, lines) in wanted.items():
        while given[name] and given[name] < count and room >= lines:
            given[name] += 1
            room -= lines
    return Shown(given["findings"], given["initial"], given["gaps"], notes, has_losses)
