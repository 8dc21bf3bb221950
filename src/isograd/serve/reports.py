"""Reports of the verbs as they lie in files, read once while their file stays as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from isograd.errors import IsogradError, UsageError
from isograd.serve.model import Item

#: Reports that are larger are not read into a page.
LARGEST_REPORT = 256 << 20


@lru_cache(maxsize=64)
def report_data(item: Item) -> Mapping[str, Any]:
    """The JSON of a report; UsageError where the file holds none, or one that is too large."""
    if item.size_bytes > LARGEST_REPORT:
        raise UsageError(
            f"{item.path}: is larger than 256 MB", f"Use isograd {item.kind.value} --html."
        )
    try:
        found = json.loads(item.path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{item.path}: is no report ({type(error).__name__})", "Write it again."
        ) from error
    if not isinstance(found, dict):
        raise UsageError(f"{item.path}: is no report", "Write it again.")
    return found


def data_or_nothing(item: Item) -> Mapping[str, Any]:
    """The same, and an empty report where it cannot be read."""
    try:
        return report_data(item)
    except IsogradError:
        return {}


def entries(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects of a list in a report; a file that holds anything else there gives none."""
    found = data.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def number(value: Any) -> float | None:
    """A number of a report, or None."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None
