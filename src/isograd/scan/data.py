"""A scan as JSON and CSV, by the contract's schema `isograd/scan/1`, with further keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isograd.report.base import plain_value
from isograd.report.csv_text import csv_text

if TYPE_CHECKING:
    from isograd.scan.model import Answer, ScanReport
    from isograd.scan.summary import Summary

SCHEMA = "isograd/scan/1"
COLUMNS = (
    "kind", "file", "line", "column", "cell", "api", "status", "target", "note", "advice",
    "mindspore", "device", "forward", "gradient",
)  # fmt: skip


def report_value(report: ScanReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists, strings and numbers."""
    summary = report.summary
    return {
        "schema": SCHEMA,
        "path": report.path,
        "files": summary.files,
        "lines": summary.lines,
        "knowledge": {
            "torch": report.torch,
            "mindspore": report.mindspore,
            "device": report.device,
        },
        "summary": summary_value(summary),
        "uses": _uses(report),
        "hazards": [
            {
                "code": hazard.code,
                "file": scan.file,
                "line": hazard.line,
                "message": hazard.message,
                "advice": hazard.advice,
                "device": hazard.device,
                "severity": "error" if hazard.is_silent else "warning",
                **_cell(hazard.cell),
            }
            for scan in report.files
            for hazard in scan.hazards
        ],
        "problems": [
            {
                "code": problem.code,
                "file": problem.file,
                "line": problem.line,
                "message": problem.message,
                "advice": problem.advice,
                **_cell(problem.cell),
            }
            for problem in report.problems
        ],
    }


def summary_value(summary: Summary) -> dict[str, Any]:
    """Counts and shares; the costs as a list, the dearest first."""
    value = plain_value(asdict(summary))
    assert isinstance(value, dict)
    value["share_of_uses"] = summary.share_of_uses
    value["share_of_names"] = summary.share_of_names
    return value


def _uses(report: ScanReport) -> list[dict[str, Any]]:
    known: dict[int, dict[str, Any]] = {}
    found = []
    for scan in report.files:
        for use in scan.uses:
            answer = known.get(id(use.answer))
            if answer is None:
                answer = known[id(use.answer)] = _answer_value(use.answer)
            found.append(
                {
                    "file": scan.file,
                    "line": use.line,
                    "column": use.column,
                    **answer,
                    "how": use.how,
                    **_cell(use.cell),
                }
            )
    return found


def _answer_value(answer: Answer) -> dict[str, Any]:
    value: dict[str, Any] = {
        "api": answer.api,
        "status": answer.status,
        "target": answer.target,
        "note": answer.note,
        "verified": None if answer.verified is None else dict(answer.verified),
        "effort": answer.effort,
    }
    if answer.way:
        value["way"] = answer.way
    if answer.advice:
        value["advice"] = answer.advice
    return value


def _cell(cell: int) -> dict[str, int]:
    return {"cell": cell} if cell else {}


def render_csv(report: ScanReport) -> str:
    """One row per use, hazard and problem; a text that a table program could run is quoted."""
    return csv_text(COLUMNS, _rows(report))


def _rows(report: ScanReport) -> Iterator[list[object]]:
    for scan in report.files:
        for use in scan.uses:
            answer = use.answer
            verified = dict(answer.verified or ())
            yield [
                "use", scan.file, use.line, use.column, use.cell or "", answer.api, answer.status,
                answer.target, answer.note, answer.advice, verified.get("mindspore"),
                verified.get("device"), _word(verified.get("forward")),
                _word(verified.get("gradient")),
            ]  # fmt: skip
        for hazard in scan.hazards:
            row = ["hazard", scan.file, hazard.line, "", hazard.cell or "", hazard.code, ""]
            yield [*row, "", hazard.message, hazard.advice, "", hazard.device, "", ""]
    for problem in report.problems:
        row = ["problem", problem.file, problem.line, "", problem.cell or "", problem.code]
        yield [*row, "", "", problem.message, problem.advice, "", "", "", ""]


def _word(value: object) -> str:
    return "" if value is None else str(value).lower()
