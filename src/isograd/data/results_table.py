"""What `isograd data` found as Parquet: a row per field and channel, or per field of both sides."""

from __future__ import annotations

import io
from typing import Any

from isograd.data.model import DataReport
from isograd.data.sources.parquet import pyarrow

_INVENTORY = ("source", "field", "kind", "dtypes", "shapes", "lacking", "channel", "count",
              "minimum", "maximum", "mean", "deviation", "nans", "infinities")  # fmt: skip
_COMPARISON = ("field_a", "field_b", "same", "differs", "greatest", "allowed", "at", "cause")


def results_parquet(report: DataReport) -> bytes:
    """The results as the bytes of a Parquet file; the columns are those of the kind of answer."""
    arrow = pyarrow()
    is_pair = report.comparison is not None
    rows = _compared(report) if is_pair else _fields(report)
    names = _COMPARISON if is_pair else _INVENTORY
    table = arrow.Table.from_pylist(rows, schema=_schema(arrow, names))
    stream = io.BytesIO()
    arrow.parquet.write_table(table, stream)
    return stream.getvalue()


def _schema(arrow: Any, names: tuple[str, ...]) -> Any:
    integers = {"lacking", "count", "nans", "infinities", "same", "differs"}
    reals = {"minimum", "maximum", "mean", "deviation", "greatest", "allowed"}
    kinds = [
        arrow.int64() if n in integers else arrow.float64() if n in reals else arrow.string()
        for n in names
    ]
    return arrow.schema(list(zip(names, kinds, strict=True)))


def _fields(report: DataReport) -> list[dict[str, Any]]:
    rows = []
    for source in report.sources:
        for field in source.fields:
            row: dict[str, Any] = {
                "source": source.path,
                "field": field.name,
                "kind": field.kind,
                "dtypes": ", ".join(field.dtypes),
                "shapes": ", ".join(field.shapes),
                "lacking": field.lacking,
            }
            rows += [
                {**row, **{name: getattr(one, name) for name in _INVENTORY[6:]}}
                for one in field.statistics
            ] or [row]
    return rows


def _compared(report: DataReport) -> list[dict[str, Any]]:
    assert report.comparison is not None
    causes = {
        one.field: one.cause.id
        for one in report.comparison.differences
        if one.field and one.cause is not None
    }
    return [
        {
            "field_a": one.name,
            "field_b": one.port_name,
            "same": one.same,
            "differs": one.differs,
            "greatest": one.greatest,
            "allowed": one.allowed,
            "at": one.at,
            "cause": causes.get(one.name),
        }
        for one in report.comparison.fields
    ]
