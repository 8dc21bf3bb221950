"""A comparison of two sets of tensors as JSON, schema `isograd/compare/1`, and as rows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from isograd.compare.files.differences import ULP_SHARES, TensorDifference
from isograd.compare.files.verdicts import TensorVerdict
from isograd.report.base import plain_value

if TYPE_CHECKING:
    from isograd.compare.files.model import FilesReport, RankSummary, TensorComparison

SCHEMA = "isograd/compare/1"
_PAIR_COLUMNS = (
    "order", "rank", "reference", "other", "how", "verdict", "dtype_reference", "dtype_other",
    "shape_reference", "shape_other", "size_bytes", "allowed", "detail",
)  # fmt: skip
_DIFFERENCE_COLUMNS = tuple(field.name for field in fields(TensorDifference))
COLUMNS = (*_PAIR_COLUMNS, *_DIFFERENCE_COLUMNS)


def render_json(report: FilesReport) -> str:
    """The report as JSON text in ASCII, with null for every number that is not finite.

    Each tensor has a line of its own, so that a report of many is written in little memory.
    """
    return _text(report) + "\n"


def _text(report: FilesReport) -> str:
    head = json.dumps(_head(report), indent=1, allow_nan=False).removesuffix("\n}")
    between = ",\n".join(_text(within) for within in report.between)
    tensors = ",\n".join(json.dumps(_pair(found), allow_nan=False) for found in report.comparisons)
    return f'{head},\n "between_ranks": [{between}],\n "tensors": [\n{tensors}\n]}}'


def _head(report: FilesReport) -> dict[str, Any]:
    """What the report says beside its tensors."""
    first, last = report.first_differing, report.last_agreeing
    value = plain_value(
        {
            "schema": SCHEMA,
            "verdict": report.verdict,
            "needs_action": report.needs_action,
            "reference": report.reference,
            "other": report.other,
            "seconds": report.elapsed_s,
            "size_bytes": report.size_bytes,
            "resumed": report.resumed,
            "is_consecutive": report.is_consecutive,
            "knows_order": report.knows_order,
            "counts": {verdict.value: report.count(verdict) for verdict in TensorVerdict},
            "first_differing": first and first.name,
            "last_agreeing": last and last.name,
            "kernels": report.kernels,
            "ulp_shares": ULP_SHARES,
            "ranks": [_rank(rank) for rank in report.ranks],
            "alone_by_convention": report.alone_by_convention,
            "set_aside": report.set_aside,
            "notes": report.notes,
        }
    )
    assert isinstance(value, dict)
    return value


def _pair(found: TensorComparison) -> dict[str, Any]:
    value = _finite(vars(found))
    value["rank"] = found.rank
    if found.difference is not None:
        value["difference"] = _finite(vars(found.difference))
    return value


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without NaN and infinities; all others are JSON's own."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def _rank(rank: RankSummary) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "counts": {verdict.value: rank.counts.get(verdict, 0) for verdict in TensorVerdict},
        "worst_relative_error": rank.worst,
        "first_differing": rank.first_differing,
    }


def row(found: TensorComparison) -> list[Any]:
    """The values of one row, in the order of `COLUMNS`."""
    cells: list[Any] = [
        found.order, found.rank, found.reference, found.other, found.how, found.verdict.value,
        *found.dtypes, list(found.shapes[0]), list(found.shapes[1]), found.size_bytes,
        found.allowed, found.detail,
    ]  # fmt: skip
    difference = found.difference
    if difference is None:
        return cells + [None] * len(_DIFFERENCE_COLUMNS)
    return cells + [getattr(difference, name) for name in _DIFFERENCE_COLUMNS]
