"""What `isograd weights` did, as JSON by the schema `isograd/weights/1`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isograd.weights.transform_value import transform_value

if TYPE_CHECKING:
    from isograd.weights.model import ConversionReport

SCHEMA = "isograd/weights/1"


def report_value(report: ConversionReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists, strings and numbers."""
    plan = report.plan
    return {
        "schema": SCHEMA,
        "source": report.source,
        "target": report.target,
        "source_kind": report.source_kind,
        "needs_action": report.needs_action,
        "tensors": report.tensors,
        "size_bytes": report.size_bytes,
        "seconds": report.elapsed_s,
        "verified": report.verified,
        "written": report.is_written,
        "moves": [
            {
                "source": move.source,
                "target": move.target,
                "transform": transform_value(move.transform),
                "why": move.why,
                "fold": move.fold,
            }
            for move in plan.moves
        ],
        "dropped": [asdict(dropped) for dropped in plan.dropped],
        "missing": plan.missing,
        "conflicts": plan.conflicts,
        "ambiguous": plan.ambiguous,
        "notes": plan.notes,
        "ties": [{"name": name, "tied_to": first} for name, first in report.ties],
        "casts": [asdict(loss) for loss in report.casts],
    }
