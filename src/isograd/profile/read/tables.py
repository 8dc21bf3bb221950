"""Text tables of profilers: CSV with a header, read as a stream, every wrong cell located."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from isograd.errors import ProfileError

Row = Mapping[str, str]
#: Files of numbers are read whole below this size only.
JSON_BYTES = 512 << 20


def rows(path: Path, *required: str) -> Iterator[Row]:
    """Rows of a CSV file by column name; raise ProfileError where a column is missing."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            reader = csv.reader(_without_nul(stream))
            header = [name.strip() for name in next(reader, [])]
            missing = [name for name in required if name not in header]
            if missing:
                raise ProfileError(
                    f"{path}: line 1 has no column {', '.join(missing)}",
                    "Give the file as the profiler wrote it.",
                )
            for cells in reader:
                if len(cells) >= min(len(header), 1) and any(cells):
                    yield dict(zip(header, (cell.strip() for cell in cells), strict=False))
    except (OSError, csv.Error) as error:
        raise ProfileError(f"{path} cannot be read: {error}", "Give a readable file.") from error


def _without_nul(stream: Iterator[str]) -> Iterator[str]:
    for line in stream:
        yield line.replace("\0", "")


def number(row: Row, column: str, path: Path, missing: float = float("nan")) -> float:
    """A cell as a number; empty cells and `N/A` are `missing`; raise ProfileError for text."""
    text = row.get(column, "").strip()
    if text in ("", "N/A", "NA", "nan", "-"):
        return missing
    try:
        return float(text)
    except ValueError as error:
        raise ProfileError(
            f"{path}: column {column} holds {text[:40]!r} where a number is expected",
            "Give the file as the profiler wrote it.",
        ) from error


def nanoseconds_of(text: str, path: Path, per_unit: int = 1000) -> int:
    """Decimal text in units of `per_unit` ns as an integer of ns, exact; raise ProfileError."""
    whole, _, fraction = text.strip().partition(".")
    digits = len(str(per_unit)) - 1
    try:
        return int(whole + (fraction + "0" * digits)[:digits])
    except ValueError as error:
        raise ProfileError(
            f"{path}: {text[:40]!r} is no time", "Give the file as the profiler wrote it."
        ) from error


def load_json(path: Path) -> Any:
    """A JSON file; raise ProfileError where it is too large, unreadable or no JSON."""
    try:
        if path.stat().st_size > JSON_BYTES:
            raise ProfileError(
                f"{path} is larger than {JSON_BYTES >> 20} MiB", "Give a shorter recording."
            )
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ProfileError(
            f"{path} is no JSON that can be read: {error}", "Write the profile again."
        ) from error


def cell_json(text: str, path: Path) -> Any:
    """JSON in a cell; None for an empty one; raise ProfileError."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProfileError(
            f"{path}: a cell holds {text[:40]!r}, which is no JSON", "Write the profile again."
        ) from error


def lines(path: Path) -> Iterator[str]:
    """Lines of a text file; raise ProfileError where it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                yield line.rstrip("\n")
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error}", "Give a readable file.") from error
