"""The same pages as static files."""

from __future__ import annotations

import re
from pathlib import Path

from isograd.files import prepare_folder, write_text
from isograd.progress import Progress
from isograd.report.document import Document, Section, Styled, Table
from isograd.serve.catalogue import Catalogue
from isograd.serve.model import Item
from isograd.serve.overview import overview
from isograd.serve.pages import page_of
from isograd.serve.shell import in_shell


def export(catalogue: Catalogue, folder: Path, progress: Progress) -> int:
    """Write the first page and one page per item into a new folder; how many pages.

    Raises UsageError where the folder is not empty or cannot be written.
    """
    prepare_folder(folder)
    items = catalogue.items()
    files = file_names(items)
    progress.stage("export")
    for done, item in enumerate(items, 1):
        page = in_shell(page_of(item), depth=1, is_live=False)
        target = folder / files[item.address]
        target.parent.mkdir(exist_ok=True)
        write_text(target, page)
        progress.advance(done, len(items), item.name)
    first = _relinked(overview(catalogue), files)
    write_text(folder / "index.html", in_shell(first, depth=0, is_live=False))
    return len(items) + 1


def file_names(items: list[Item]) -> dict[str, str]:
    """Each item's file by its address: letters, digits and dashes, unique."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for item in items:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", item.name).strip("-.")[:120] or "page"
        name, number = f"{item.kind.value}/{stem}.html", 2
        while name.lower() in taken:
            name, number = f"{item.kind.value}/{stem}-{number}.html", number + 1
        taken.add(name.lower())
        found[item.address] = name
    return found


def _relinked(document: Document, files: dict[str, str]) -> Document:
    from dataclasses import replace

    return replace(document, sections=[_section(one, files) for one in document.sections])


def _section(section: Section, files: dict[str, str]) -> Section:
    from dataclasses import replace

    if not isinstance(section, Table):
        return section
    rows = [
        [
            replace(cell, link=files.get(cell.link, "")) if isinstance(cell, Styled) else cell
            for cell in row
        ]
        for row in section.rows
    ]
    return replace(section, rows=rows)
