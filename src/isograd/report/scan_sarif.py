"""A scan as SARIF 2.1.0, for code-scanning viewers.

Supported uses are not results: a viewer shows what a person should look at.  Files are named
relative to the folder that was scanned.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from isograd.scan.hazards import RULES
from isograd.scan.model import Answer, ScanReport
from isograd.version import __version__

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {"missing": "error", "differs": "warning", "unknown": "note"}
_STATUS_RULES = {
    "missing": "MindSpore has no counterpart of this API of torch.",
    "differs": "MindSpore's counterpart of this API of torch behaves differently.",
    "unknown": "isograd could not tell what this is, or has no knowledge of it.",
}
_ROOT = "SCANNED"


def render_sarif(report: ScanReport) -> str:
    """The report as SARIF text in ASCII."""
    return json.dumps(sarif_value(report), indent=1) + "\n"


def sarif_value(report: ScanReport) -> dict[str, Any]:
    """The report as a SARIF log."""
    results: list[dict[str, Any]] = []
    for scan in report.files:
        for use in scan.uses:
            if use.answer.status == "supported":
                continue
            region: dict[str, Any] = {"startLine": use.line, "startColumn": use.column}
            results.append(
                _result(
                    f"api-{use.answer.status}",
                    _LEVELS[use.answer.status],
                    _sentence(use.answer),
                    scan.file,
                    region,
                    use.cell,
                    {"api": use.answer.api, "target": use.answer.target},
                )
            )
        for hazard in scan.hazards:
            level = "note" if hazard.device else "warning"
            message = f"{hazard.message} {hazard.advice}"
            region = {"startLine": max(hazard.line, 1)}
            results.append(_result(hazard.code, level, message, scan.file, region, hazard.cell, {}))
    for problem in report.problems:
        region = {"startLine": max(problem.line, 1)}
        message = f"{problem.message}. {problem.advice}"
        results.append(
            _result(
                f"file-{problem.code}", "error", message, problem.file, region, problem.cell, {}
            )
        )
    return _log(report, results)


def _log(report: ScanReport, results: list[dict[str, Any]]) -> dict[str, Any]:
    used = sorted({result["ruleId"] for result in results})
    for result in results:
        result["ruleIndex"] = used.index(result["ruleId"])
    driver = {
        "name": "isograd",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(name) for name in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            _ROOT: {"description": {"text": "The folder that was scanned."}},
        },
        "invocations": [{"executionSuccessful": True}],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str) -> dict[str, Any]:
    if name.startswith("api-"):
        text = _STATUS_RULES[name[4:]]
    elif name.startswith("file-"):
        text = "A file could not be scanned as it is."
    else:
        text = RULES.get(name, name)
    return {"id": name, "shortDescription": {"text": text}}


def _result(
    rule: str,
    level: str,
    message: str,
    file: str,
    region: dict[str, Any],
    cell: int,
    properties: dict[str, str],
) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {
                "uri": quote(file.encode("utf-8", errors="surrogateescape")),
                "uriBaseId": _ROOT,
            },
            "region": region,
        }
    }
    if cell:
        location["logicalLocations"] = [{"name": f"cell {cell}"}]
    result: dict[str, Any] = {
        "ruleId": rule,
        "level": level,
        "message": {"text": message.encode("ascii", "backslashreplace").decode()},
        "locations": [location],
    }
    if properties:
        result["properties"] = properties
    return result


def _sentence(answer: Answer) -> str:
    target = f" MindSpore: {answer.target}." if answer.target else ""
    note = f" {answer.note.rstrip('.')}." if answer.note else ""
    advice = f" {answer.advice}" if answer.advice else ""
    return f"{answer.api}: {answer.status}.{target}{note}{advice}"
