"""The samples of a data set, a page at a time: each page is read when it is asked for."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from isograd.data.inventory.census import decoded_fields
from isograd.data.inventory.look import Gallery
from isograd.data.model import Shown, SourceReport
from isograd.data.run import DataOptions, look
from isograd.data.sources.base import Problem
from isograd.data.sources.open import open_samples
from isograd.data.view import view_page, view_script
from isograd.serve.model import Item
from isograd.serve.shell import quoted

#: Samples of one page in their order; of a choice, among so many that the inventory reads.
SIZE, CHOSEN, INSPECTED = 24, 48, 2_000


def samples_page(item: Item, start: int | None) -> bytes:
    """Samples from the one at `start` on; without it a choice, with the inventory's findings.

    Raises DataError where the data set cannot be read.
    """
    address = f"?of={quoted(item.name)}"
    first = ("All in their order", f"{address}&start=0")
    back = ("The data set", item.address)
    if start is None:
        inspected = _inspected(item)
        shown = inspected.shown
        about = f"A choice of {len(shown):,} among the first {inspected.samples:,} samples."
        return view_page(shown, item.name, about, (back, first))
    shown = _window(item, start)
    links = [back, ("A choice with findings", address)]
    if start:
        links.append(("Previous", f"{address}&start={max(0, start - SIZE)}"))
    if shown:
        links.append(("Next", f"{address}&start={start + SIZE}"))
    return view_page(shown, item.name, f"From sample {start:,} on, in their order.", links)


@lru_cache(maxsize=4)
def _inspected(item: Item) -> SourceReport:
    """Of an unchanged data set this is made once: an item holds its size and time."""
    return look(str(item.path), DataOptions(limit=INSPECTED, shown=CHOSEN)).sources[0]


def policy() -> str:
    """The Content-Security-Policy of these pages: their own script, and pictures and sounds."""
    digest = base64.b64encode(hashlib.sha256(view_script().encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    )


def _window(item: Item, start: int) -> tuple[Shown, ...]:
    source = open_samples(str(item.path))
    gallery = Gallery(SIZE, 0, source.labels.names)
    problems: list[Shown] = []
    try:
        for found in source.window(start, SIZE):
            decoded, problem = ({}, "") if isinstance(found, Problem) else decoded_fields(found)
            if isinstance(found, Problem) or problem:
                said = found.what if isinstance(found, Problem) else problem
                problems.append(_damaged(found.key, found.split, said))
            else:
                gallery.offer(found, decoded, source.labels.field or "label")
    finally:
        source.close()
    return (*gallery.shown(), *problems)


def _damaged(key: str, split: str, what: str) -> Shown:
    return Shown(key, split, "", {}, {}, {"": what}, codes=("data.corrupt",), legends={})
