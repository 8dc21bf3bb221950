"""The answer to a question in SQL as text, JSON (`isograd/compare-answer/1`) and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from isograd.report.compare_json import cell
from isograd.report.text import make_console, write_line, written
from isograd.report.wording import printable

SCHEMA = "isograd/compare-answer/1"
#: Rows on the screen; --json and --csv have them all.
MOST_ROWS = 200

Rows = Sequence[tuple[Any, ...]]


def render_text(names: Sequence[str], rows: Rows, *, width: int, colour: bool) -> str:
    """A table."""
    stream = io.StringIO()
    console = make_console(stream, width, colour)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(Text(printable(name)), overflow="fold")
    for row in rows[:MOST_ROWS]:
        table.add_row(*(Text(printable(_shown(value))) for value in row))
    console.print(table)
    if len(rows) > MOST_ROWS:
        rest = len(rows) - MOST_ROWS
        write_line(console, f"  and {rest:,} more in --json and --csv", "dim")
    return written(stream)


def render_json(names: Sequence[str], rows: Rows) -> str:
    """JSON in ASCII, with null for every number that is not finite."""
    value = {
        "schema": SCHEMA,
        "columns": list(names),
        "rows": [[_plain(part) for part in row] for row in rows],
    }
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def render_csv(names: Sequence[str], rows: Rows) -> str:
    """A row per row; no cell is a formula."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([cell(name) for name in names])
    for row in rows:
        writer.writerow([cell(_plain(value)) for value in row])
    return stream.getvalue()


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
