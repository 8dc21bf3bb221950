"""What lies below the served folders, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Kind(str, Enum):
    """What an item is; also the first part of its page's address."""

    RUN = "run"
    VERIFY = "verify"
    DIAGNOSE = "diagnose"
    COMPARE = "compare"
    WATCH = "watch"
    PROFILE = "profile"
    DATA = "data"
    TUNE = "tune"
    SCAN = "scan"
    CONVERT = "convert"
    PARAMS = "params"
    WEIGHTS = "weights"
    RECORDING = "recording"
    CHECKPOINT = "checkpoint"
    EVENTS = "events"
    TRACE = "trace"
    DATASET = "dataset"
    STUDY = "study"
    SOURCE = "source"


#: Kinds whose item is a report that a verb wrote by --json, with the verb's name.
REPORTS = frozenset(
    (
        *(Kind.VERIFY, Kind.DIAGNOSE, Kind.COMPARE, Kind.WATCH, Kind.PROFILE, Kind.DATA),
        *(Kind.TUNE, Kind.SCAN, Kind.CONVERT, Kind.PARAMS, Kind.WEIGHTS),
    )
)


@dataclass(frozen=True)
class Item:
    """One thing that has a page.

    name: its path below the served folder, with "/"; unique within its kind.
    size_bytes: of the file, 0 of a folder.  changed: seconds since the epoch.
    """

    kind: Kind
    name: str
    path: Path
    size_bytes: int
    changed: float

    @property
    def address(self) -> str:
        """The address of its page, relative to the first page."""
        from urllib.parse import quote

        return f"{self.kind.value}/{quote(self.name, safe='')}"
