"""The inventory of `isograd params` as JSON by the schema `isograd/params/1`, and as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from isograd.report.csv_text import csv_text
from isograd.weights.health import TensorHealth
from isograd.weights.inventory import Inventory
from isograd.weights.transform_value import transform_value

if TYPE_CHECKING:
    from isograd.weights.correspondence import ParamsReport

SCHEMA = "isograd/params/1"
_INFO_COLUMNS = ("name", "dtype", "shape", "size_bytes", "trainable", "part", "tied_to")
_HEALTH_COLUMNS = tuple(field.name for field in fields(TensorHealth))
COLUMNS = ("file", *_INFO_COLUMNS, *_HEALTH_COLUMNS, "change", "findings")


def render_csv(report: ParamsReport) -> str:
    """A row for each tensor of each file; change: the update ratio between the two files."""
    return csv_text(COLUMNS, _rows(report))


def _rows(report: ParamsReport) -> Iterator[list[object]]:
    ratios = {change.name: change.ratio for change in report.changes}
    for inventory in (found for found in (report.first, report.second) if found):
        codes: dict[str, list[str]] = {}
        for issue in inventory.issues:
            codes.setdefault(issue.name, []).append(issue.code)
        for row in inventory.rows:
            values = {**asdict(row.info), **(asdict(row.health) if row.health else {})}
            values |= {
                "file": inventory.path,
                "trainable": row.trainable,
                "change": ratios.get(row.info.name),
                "findings": codes.get(row.info.name, []),
            }
            yield [values.get(column) for column in COLUMNS]


def report_value(report: ParamsReport) -> dict[str, Any]:
    """The report as plain dictionaries, lists, strings and numbers."""
    pairing = report.pairing
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "needs_action": report.needs_action,
        "files": [_inventory(found) for found in (report.first, report.second) if found],
        "findings": [asdict(issue) for issue in report.issues],
        "pairs": None,
        "changes": [asdict(change) for change in report.changes],
    }
    if pairing is not None:
        value["pairs"] = [
            {
                "first": pair.reference,
                "second": pair.port,
                "transform": transform_value(pair.transform),
                "how": pair.how,
                "ambiguous_with": pair.ambiguous_with,
            }
            for pair in pairing.pairs
        ]
        value["only_first"] = pairing.unpaired_reference
        value["only_second"] = pairing.unpaired_port
        value["shape_conflicts"] = pairing.shape_conflicts
        value["alone_by_convention"] = pairing.alone_by_convention
        value["buffers_alone"] = (
            *pairing.unpaired_buffers_reference,
            *pairing.unpaired_buffers_port,
        )
    return value


def _inventory(inventory: Inventory) -> dict[str, Any]:
    return {
        "path": inventory.path,
        "kind": inventory.kind,
        "elements": inventory.elements,
        "size_bytes": inventory.size_bytes,
        "trainable": inventory.trainable,
        "frozen": inventory.frozen,
        "checksums_fit": inventory.is_verified,
        "tensors": [
            {
                **asdict(row.info),
                "trainable": row.trainable,
                "health": row.health and asdict(row.health),
            }
            for row in inventory.rows
        ],
        "by_module": [asdict(share) for share in inventory.by_module],
        "by_part": [asdict(share) for share in inventory.by_part],
        "by_dtype": [asdict(share) for share in inventory.by_dtype],
        "metadata": inventory.metadata,
        "skipped": inventory.skipped,
    }
