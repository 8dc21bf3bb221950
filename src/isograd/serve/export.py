"""The same pages as static files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from isograd.files import prepare_folder, write_text
from isograd.progress import Progress
from isograd.report.document import Document, FindingList, Group, Link, Section, Styled, Table
from isograd.serve.catalogue import Catalogue
from isograd.serve.curves import curves_link, has_curves
from isograd.serve.export_curves import curves_page
from isograd.serve.lineage import lineage_document
from isograd.serve.model import Item, Kind
from isograd.serve.overview import overview
from isograd.serve.pages import page_of
from isograd.serve.shell import in_shell


def export(catalogue: Catalogue, folder: Path, progress: Progress) -> int:
    """Write the overall pages and one page per item into a new folder; how many pages.

    Of the source files those are written that a finding leads to.  Raises UsageError where the
    folder is not empty or cannot be written.
    """
    prepare_folder(folder)
    items = catalogue.items()
    files = file_names(items)
    waiting = [one for one in items if one.kind is not Kind.SOURCE]
    sources = {one.address: one for one in items if one.kind is Kind.SOURCE}
    progress.stage("export")
    done = 0
    while waiting:
        item = waiting.pop(0)
        page = page_of(item, catalogue)
        linked = dict.fromkeys(_linked(page.sections))
        waiting.extend(sources.pop(address) for address in linked if address in sources)
        target = folder / files[item.address]
        target.parent.mkdir(exist_ok=True)
        links = curves_link(item, "curves.html")
        text = in_shell(_relinked(page, files), depth=1, is_live=False, links=links)
        write_text(target, text)
        done += 1
        progress.advance(done, done + len(waiting), item.name)
    for name, document in (
        ("index", overview(catalogue)),
        ("lineage", lineage_document(catalogue)),
    ):
        text = in_shell(_relinked(document, files), depth=0, is_live=False)
        write_text(folder / f"{name}.html", text)
    write_text(folder / "curves.html", curves_page([one for one in items if has_curves(one)]))
    return done + 3


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
    return replace(document, sections=[_section(one, files) for one in document.sections])


def _section(section: Section, files: dict[str, str]) -> Section:
    if isinstance(section, Group):
        return replace(section, sections=[_section(one, files) for one in section.sections])
    if isinstance(section, FindingList):
        links = [
            [static for link in links if (static := _static(link, files)) is not None]
            for links in section.links
        ]
        return replace(section, links=links)
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


def _static(link: Link, files: dict[str, str]) -> Link | None:
    """The same link among static files; None where only a server answers."""
    if not link.address.startswith("../"):
        return link
    address, mark, anchor = link.address[len("../") :].partition("#")
    file = files.get(address)
    return None if file is None else Link(link.label, f"../{file}{mark}{anchor}")


def _linked(sections: Sequence[Section]) -> Iterator[str]:
    """The addresses of the pages to which findings lead."""
    for section in sections:
        if isinstance(section, Group):
            yield from _linked(section.sections)
        elif isinstance(section, FindingList):
            for links in section.links:
                yield from (one.address.partition("#")[0].removeprefix("../") for one in links)
