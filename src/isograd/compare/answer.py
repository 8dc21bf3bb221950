"""The answer to a question in SQL: a value with its JSON, schema `isograd/compare-answer/1`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from isograd.report.base import Report

SCHEMA = "isograd/compare-answer/1"


@dataclass(frozen=True)
class Answer(Report):
    """What DuckDB answers to a question: the names of its columns, and its rows."""

    question: str
    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def needs_action(self) -> bool:
        """An answer needs none."""
        return False

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        return {"schema": SCHEMA, "columns": list(self.names), "rows": self.plain_rows()}

    def plain_rows(self) -> list[list[Any]]:
        """The rows in JSON's own types."""
        return [[_plain(part) for part in row] for row in self.rows]


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
