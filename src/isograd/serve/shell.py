"""What surrounds every served page: navigation, search, and the scripts that keep it alive."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from urllib.parse import quote

from isograd.report.document import Document
from isograd.report.render_html import Shell, render_html
from isograd.serve.model import Item, Kind


def in_shell(
    document: Document, *, depth: int, is_live: bool, links: tuple[tuple[str, str], ...] = ()
) -> str:
    """A document as a page of the server or of an export.

    depth: how many levels the page's address lies below the first page; all links are relative, so
    that the pages work behind any prefix.  is_live: whether a server answers.
    """
    up = "../" * depth
    home = up or "./"
    shown = [("Overview", home if is_live else f"{up}index.html")]
    shown.append(("Curves", f"{up}curves" + ("" if is_live else ".html")))
    shown.append(("Hyper-parameters", f"{up}lineage" + ("" if is_live else ".html")))
    shown += [(label, f"{up}{target}") for label, target in links]
    script = asset("live.js") if is_live else ""
    return render_html(
        document, Shell(tuple(shown), script, root=up, search=home if is_live else "")
    )


def samples_link(item: Item) -> tuple[tuple[str, str], ...]:
    """The link from a data set's page to its samples."""
    if item.kind is not Kind.DATASET:
        return ()
    return (("Its samples", f"samples?of={quoted(item.name)}"),)


@lru_cache(maxsize=8)
def asset(name: str) -> str:
    """A file of this package that is sent or written into pages as it is."""
    return (resources.files("isograd.serve") / "static" / name).read_text(encoding="utf-8")


def vendored(name: str) -> str:
    """A file of a library that is sent or written into pages as it is."""
    place = resources.files("isograd.report") / "templates" / "vendor" / name
    return place.read_text(encoding="utf-8")


def quoted(text: str) -> str:
    """A text as one part of an address."""
    return quote(text, safe="")
