"""From the TOML to the compiled form that loads fast: `python -m isograd.knowledge build`."""

from __future__ import annotations

import json
from pathlib import Path

from isograd.knowledge.authoring import DATA, read_entries
from isograd.knowledge.entry import Entry
from isograd.knowledge.store import ENTRIES_FILE, row_of


def compiled(entries: list[Entry]) -> str:
    """The text of the compiled file: one entry a line."""
    rows = (json.dumps(row_of(entry), ensure_ascii=False) for entry in entries)
    return "[\n" + ",\n".join(rows) + "\n]\n"


def build(folder: Path = DATA, target: Path = ENTRIES_FILE) -> int:
    """Write the compiled file; the number of entries."""
    entries = read_entries(folder)
    partial = target.with_suffix(".partial")
    partial.write_text(compiled(entries), encoding="utf-8")
    partial.replace(target)
    return len(entries)
