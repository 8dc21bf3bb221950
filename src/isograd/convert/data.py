"""A conversion as JSON, schema isograd/convert/1."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isograd.convert.model import ConvertReport, FileConversion, Finding


SCHEMA = "isograd/convert/1"


def report_value(report: ConvertReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists, strings and numbers."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "path": report.path,
        "out": report.out or None,
        "target": report.target,
        "executed": {
            "torch": report.torch,
            "mindspore": report.mindspore,
            "device": report.device,
        },
        "lines": report.lines,
        "uses": report.uses,
        "converted": report.converted,
        "copied": report.copied,
        "elapsed_s": round(report.elapsed_s, 3),
        "compositions": [
            {"file": file, "names": list(names)} for file, names in report.compositions
        ],
        "runtime": [asdict(use) for use in report.runtime],
        "files": [_file(file) for file in report.files],
        "findings": [_finding(finding) for finding in report.findings],
        "skipped": list(report.skipped),
    }
    if report.builders:
        value["builders"] = [result.as_json() for result in report.builders]
    return value


def _file(file: FileConversion) -> dict[str, Any]:
    return {
        "file": file.file,
        "lines": file.lines,
        "uses": file.uses,
        "converted": file.converted,
        "changed": file.is_changed,
        "findings": len(file.findings),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "level": finding.level.value,
        "file": finding.file,
        "line": finding.line,
        "column": finding.column,
        **({"cell": finding.cell} if finding.cell else {}),
        "api": finding.api or None,
        "message": finding.message,
        "advice": finding.advice,
    }
