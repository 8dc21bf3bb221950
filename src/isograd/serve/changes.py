"""When an item last changed, also one whose folder keeps its own time while a file in it grows."""

from __future__ import annotations

from pathlib import Path

from isograd.runs.information import FILE
from isograd.runs.writer import ALERTS, SCALARS
from isograd.serve.model import Item, Kind


def changed_at(item: Item) -> float:
    """Seconds since the epoch; of a run, when its newest row or alert was written."""
    if item.kind is not Kind.RUN:
        return _time_of(item.path)
    parts = sorted((item.path / SCALARS).glob("*"))
    places = (item.path, item.path / FILE, item.path / ALERTS, *parts[-2:])
    return max(_time_of(place) for place in places)


def _time_of(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
