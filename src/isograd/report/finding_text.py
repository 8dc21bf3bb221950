"""A finding as lines: what text, page and SARIF say of it alike."""

from __future__ import annotations

import os

from isograd.findings import Finding, Location
from isograd.report.words import printable

#: How a line below a finding's head begins that stands out.
ANSWERS = ("cause:", "fix:", "look at:", "strongest hypothesis:")


def location_text(location: Location, root: str = "") -> str:
    """Where a finding is: `net.py:54:9`, or `layer1.0.bn1 (forward, step 0)`.

    root: the folder that the location's file is relative to.
    """
    file = _file_text(location, root)
    if location.module is None:
        parts = [location.stage, "" if location.step is None else f"step {location.step:,}"]
        around = ", ".join(part for part in parts if part)
        return f"{file} ({around})" if file and around else file or around
    parts = [location.stage, "" if location.step is None else f"step {location.step:,}", file]
    around = ", ".join(part for part in parts if part)
    name = printable(location.module) or "the whole network"
    return f"{name} ({around})" if around else name


def _file_text(location: Location, root: str) -> str:
    """`path:line:column`, as editors and terminals open it."""
    if not location.file:
        return ""
    file = os.path.join(root, location.file)
    cell = f":cell {location.cell}" if location.cell else ""
    line = "" if location.line is None else f":{location.line}"
    column = "" if not line or location.column is None else f":{location.column}"
    return f"{printable(file)}{cell}{line}{column}"


def head_text(finding: Finding, root: str = "") -> str:
    """`path:line:column: code message`; of a module `where: message [code, severity]`."""
    where = location_text(finding.location, root)
    code, severity, message = map(printable, (finding.code, finding.severity, finding.message))
    if finding.location.file and finding.location.module is None:
        text = f"{code} [{severity}] {message}" if severity else f"{code} {message}"
    else:
        text = f"{message} [{', '.join(part for part in (code, severity) if part)}]"
    return f"{where}: {text.strip()}" if where else text.strip()


def finding_lines(finding: Finding) -> list[str]:
    """What stands below the head: evidence, advice, fix."""
    lines = [printable(line) for line in finding.evidence]
    if finding.advice:
        lines += [printable(line) for line in finding.advice.split("\n")]
    if finding.fix is not None:
        where = f"{printable(finding.fix.where)}: " if finding.fix.where else ""
        lines.append(f"fix: {where}{printable(finding.fix.text)}")
    return lines
