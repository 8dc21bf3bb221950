"""Rows as CSV whose cells no table program runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def csv_text(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A line of names and a line per row; lists are written in words, None as nothing."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([_cell(name) for name in names])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return stream.getvalue()


def _cell(value: object) -> object:
    """A value as a cell: a text that begins like a formula is not one."""
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return " ".join(
            ":".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value
        )
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
