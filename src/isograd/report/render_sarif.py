"""A document's findings as SARIF 2.1.0, for code-scanning viewers.

Only findings with a file are results.  Files are named relative to the folder that was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from isograd import __version__
from isograd.findings import Finding, Location, Rule
from isograd.report.document import Document, FindingList, Group, Section

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "ROOT"


def render_sarif(document: Document) -> str:
    """The findings as SARIF text in ASCII."""
    results = [
        _result(finding)
        for section in _lists(document.sections)
        for finding in section.findings
        if finding.location.file
    ]
    known = {rule.code: rule for rule in document.rules}
    used = sorted({result["ruleId"] for result in results})
    for result in results:
        result["ruleIndex"] = used.index(result["ruleId"])
    driver = {
        "name": "isograd",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(known.get(code) or Rule(code, code)) for code in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The folder that was read."}}},
        "invocations": [{"executionSuccessful": True}],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _lists(sections: Sequence[Section]) -> Iterator[FindingList]:
    for section in sections:
        if isinstance(section, FindingList):
            yield section
        elif isinstance(section, Group):
            yield from _lists(section.sections)


def _rule(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = {"id": rule.code, "shortDescription": {"text": rule.summary}}
    if rule.help:
        found["help"] = {"text": rule.help}
    if rule.uri:
        found["helpUri"] = rule.uri
    return found


def _result(finding: Finding) -> dict[str, Any]:
    advice = finding.advice or (finding.fix.text if finding.fix is not None else "")
    text = f"{finding.message} {advice}".strip()
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": finding.level.value,
        "message": {"text": text.encode("ascii", "backslashreplace").decode()},
        "locations": [_location(finding.location)],
    }
    if finding.severity:
        result["properties"] = {"severity": finding.severity}
    return result


def _location(location: Location) -> dict[str, Any]:
    region = {"startLine": max(location.line or 1, 1)}
    if location.column:
        region["startColumn"] = location.column
    uri = quote(location.file.encode("utf-8", errors="surrogateescape"))
    found: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": _ROOT},
            "region": region,
        }
    }
    names = [f"cell {location.cell}"] if location.cell else []
    names += [location.module] if location.module else []
    if names:
        found["logicalLocations"] = [{"name": name} for name in names]
    return found
