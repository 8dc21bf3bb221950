"""A report as JSON, by the contract's schema `isograd/verify/1`; further keys stand beside it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from isograd.model import Finding, VerifyReport

SCHEMA = "isograd/verify/1"


def render_json(report: VerifyReport) -> str:
    """The report as JSON text in ASCII, with null for every number that is not finite."""
    return json.dumps(report_value(report), indent=2, allow_nan=False) + "\n"


def report_value(report: VerifyReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists, strings and finite numbers."""
    value = {
        "schema": SCHEMA,
        "verdict": report.verdict,
        "case": report.case,
        "seed": report.seed,
        "seconds": report.elapsed_s,
        "stages": [
            {
                "stage": result.stage,
                "verdict": result.verdict,
                "checked": result.checked,
                "seconds": result.elapsed_s,
                "detail": result.detail,
            }
            for result in report.stages
        ],
        "first_divergence": report.first_divergence and asdict(report.first_divergence),
        "findings": [finding_value(finding) for finding in report.findings],
        "gaps": [asdict(gap) for gap in report.gaps],
        "modules": [asdict(module) for module in report.modules],
        "pairs": [asdict(pair) for pair in report.pairs],
        "losses": report.losses and asdict(report.losses),
        "notes": report.notes,
        "thresholds": report.thresholds,
        "sides": {
            "reference": report.reference and asdict(report.reference),
            "port": report.port and asdict(report.port),
        },
    }
    plain = plain_value(value)
    assert isinstance(plain, dict)
    return plain


def finding_value(finding: Finding) -> dict[str, Any]:
    """A finding as the contract has it, with further keys."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "stage": finding.stage,
        "module": finding.module,
        "modules": finding.modules or (finding.module,),
        "message": finding.message,
        "ratio": finding.ratio,
        "step": finding.step,
        "mode": finding.mode,
        "isolated": finding.isolated,
        "evidence": finding.evidence and asdict(finding.evidence),
        "cause": finding.cause and asdict(finding.cause),
        "fix": finding.fix and {**asdict(finding.fix), "is_edit": finding.fix.is_edit},
    }


def plain_value(value: Any) -> Any:
    """The value in JSON's own types: enums by their value, tuples as lists, no NaN or infinity."""
    if isinstance(value, dict):
        return {str(key): plain_value(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(part) for part in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(getattr(value, "value", value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "item"):
        return plain_value(value.item())
    raise TypeError(f"a report cannot hold {type(value).__name__}")
