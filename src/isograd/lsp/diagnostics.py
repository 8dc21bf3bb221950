"""What was found in a text as an editor's diagnostics."""

from __future__ import annotations

from lsprotocol import types

from isograd.lsp.analysis import Analysis
from isograd.lsp.wording import sentence

SOURCE = "isograd"
_SEVERITIES = {
    "missing": types.DiagnosticSeverity.Error,
    "differs": types.DiagnosticSeverity.Warning,
    "unknown": types.DiagnosticSeverity.Hint,
}


def diagnostics(
    analysis: Analysis, uri: str, sources: dict[str, str] | None = None
) -> list[types.Diagnostic]:
    """Every use that is not supported as it is, and every hazard, in the order of the text.

    sources: for APIs whose entry names a page, its address.
    """
    found = [*_of_uses(analysis, sources or {}), *_of_hazards(analysis, uri)]
    return sorted(found, key=lambda item: (item.range.start.line, item.range.start.character))


def _of_uses(analysis: Analysis, sources: dict[str, str]) -> list[types.Diagnostic]:
    found = []
    for located in analysis.uses:
        answer = located.use.answer
        severity = _SEVERITIES.get(answer.status)
        if severity is None:
            continue
        page = sources.get(answer.api)
        found.append(
            types.Diagnostic(
                range=analysis.lines.range(located.start, located.end),
                message=sentence(answer),
                severity=severity,
                code=answer.api,
                code_description=types.CodeDescription(page) if page else None,
                source=SOURCE,
            )
        )
    return found


def _of_hazards(analysis: Analysis, uri: str) -> list[types.Diagnostic]:
    """Hazards of a single device are information; the uses at the place are named with them."""
    found = []
    for located in analysis.hazards:
        hazard = located.hazard
        severity = types.DiagnosticSeverity.Warning
        if hazard.device:
            severity = types.DiagnosticSeverity.Information
        if hazard.is_silent:
            severity = types.DiagnosticSeverity.Error
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(uri, analysis.lines.range(use.start, use.end)),
                sentence(use.use.answer),
            )
            for use in analysis.uses_between(located.start, located.end)
            if use.use.answer.status in ("differs", "missing")
        ]
        found.append(
            types.Diagnostic(
                range=analysis.lines.range(located.start, located.end),
                message=f"{hazard.message} {hazard.advice}".strip(),
                severity=severity,
                code=hazard.code,
                source=SOURCE,
                related_information=related or None,
            )
        )
    return found
