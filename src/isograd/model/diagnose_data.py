"""The evidence of `isograd diagnose` as JSON, schema `isograd/diagnose/1`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isograd.model.verify_data import finding_value

if TYPE_CHECKING:
    from isograd.model import CallDiagnosis, DiagnoseReport, StageDiagnosis

SCHEMA = "isograd/diagnose/1"


def report_value(report: DiagnoseReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists, strings, enums and numbers."""
    return {
        "schema": SCHEMA,
        "verdict": report.verdict,
        "case": report.case,
        "module": report.module,
        "kind": report.kind,
        "port_module": report.port_module,
        "mode": report.mode,
        "seed": report.seed,
        "seconds": report.elapsed_s,
        "calls": [_call(call) for call in report.calls],
        "findings": [finding_value(finding) for finding in report.findings],
        "notes": report.notes,
        "thresholds": report.thresholds,
        "sides": {
            "reference": report.reference and asdict(report.reference),
            "port": report.port and asdict(report.port),
        },
    }


def _call(call: CallDiagnosis) -> dict[str, Any]:
    return {
        "name": call.name,
        "differs": call.differs,
        "given": call.given,
        "failure": call.failure,
        "note": call.note,
        "tensors": [asdict(tensor) for tensor in call.tensors],
        "stages": [_stage(stage) for stage in call.stages],
    }


def _stage(stage: StageDiagnosis) -> dict[str, Any]:
    causes = [
        {
            **asdict(placed.cause),
            "module": placed.module,
            "function": placed.function,
            "number_interval": placed.number,
        }
        for placed in stage.causes
    ]
    return {
        "stage": stage.stage,
        "severity": stage.severity,
        "ratio_before": stage.ratio_before,
        "ratio_after": stage.ratio_after,
        "causes": causes,
        "fix": stage.fix and asdict(stage.fix),
        "note": stage.note,
        "hypotheses": [asdict(attempt) for attempt in stage.attempts],
    }
