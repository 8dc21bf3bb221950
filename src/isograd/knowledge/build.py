"""From the TOML to the compiled form that loads fast: `python -m isograd.knowledge build`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isograd.knowledge.authoring import DATA, read_entries
from isograd.knowledge.entry import Entry
from isograd.knowledge.store import ENTRIES_FILE, EXAMPLES_FILE, row_of


def compiled(entries: list[Entry]) -> tuple[str, str]:
    """The texts of the two compiled files, one entry a line: all but the examples, and these."""
    rows = [row_of(entry) for entry in entries]
    examples = {row["api"]: row.pop("examples") for row in rows if "examples" in row}
    pairs = (f"{_line(api)}: {_line(found)}" for api, found in examples.items())
    return (
        "[\n" + ",\n".join(map(_line, rows)) + "\n]\n",
        "{\n" + ",\n".join(pairs) + "\n}\n",
    )


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def build(folder: Path = DATA, targets: tuple[Path, Path] = (ENTRIES_FILE, EXAMPLES_FILE)) -> int:
    """Write the compiled files; the number of entries."""
    entries = read_entries(folder)
    for target, text in zip(targets, compiled(entries), strict=True):
        partial = target.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    return len(entries)
