"""Source files that findings name: their page, with a line for every link."""

from __future__ import annotations

import os
from pathlib import Path

from isograd.errors import UsageError
from isograd.report.document import Code, Document, Outcome, Tone
from isograd.serve.catalogue import Catalogue
from isograd.serve.model import Item, Kind

#: Larger files are none that a person wrote.
_LARGEST_BYTES = 2 << 20
#: The anchor of the page's lines.
LINE = "line"


def source_document(item: Item) -> Document:
    """A whole file; UsageError where it is too large or cannot be read."""
    if item.size_bytes > _LARGEST_BYTES:
        raise UsageError(f"{item.path}: is larger than 2 MB", "Open it in an editor.")
    try:
        text = item.path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{item.path}: cannot be read ({error})", "Check its rights.") from error
    count = len(text.splitlines())
    return Document(
        title=item.name,
        outcome=Outcome("source", f"{count:,} lines.", Tone.PLAIN),
        sections=[Code("", text, anchor=LINE)],
    )


def find_source(catalogue: Catalogue, item: Item, file: str) -> Item | None:
    """The served source file that a report names, or None.

    A path is looked for from the report's folder upwards, then by its end, if only one file has it.
    """
    known = catalogue.of_kind(Kind.SOURCE)
    by_path = {one.path: one for one in known}
    for folder in item.path.parents:
        found = by_path.get(Path(os.path.normpath(folder / file)))
        if found is not None:
            return found
    parts = Path(file).parts
    ends = [one for one in known if parts and one.path.parts[-len(parts) :] == parts]
    return ends[0] if len(ends) == 1 else None
