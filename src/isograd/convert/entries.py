"""The knowledge as a conversion asks it: by the names that scan finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from isograd.knowledge.entry import Entry
from isograd.knowledge.marks import marked


class Entries:
    """The knowledge's entries by scan's names."""

    def __init__(self, find: Callable[[str], Entry | None]) -> None:
        self._find = find
        self._marked: dict[tuple[str, str], Entry] = {}

    @cache  # noqa: B019  # lives as long as one conversion
    def entry(self, api: str) -> Entry | None:
        """The entry of an API, or None."""
        return self._find(api)

    def marked(self, entry: Entry) -> Entry:
        """The entry with marks for packages; a pass may ask with a template of its own."""
        key = (entry.api, entry.rewrite)
        if key not in self._marked:
            self._marked[key] = marked(entry)
        return self._marked[key]
