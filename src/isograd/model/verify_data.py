"""A report as JSON, by the contract's schema `isograd/verify/1`; further keys stand beside it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isograd.model import Finding, VerifyReport


SCHEMA = "isograd/verify/1"


def report_value(report: VerifyReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists, strings, enums and numbers."""
    return {
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
