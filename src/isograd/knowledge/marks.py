"""Marks on the packages in a template, so that no argument filled into it is taken for one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from isograd.knowledge.entry import Entry
from isograd.knowledge.rewrite import PACKAGES

#: The first name of a template's expression, which means a package.
_PACKAGE = re.compile(rf"(?<![\w.{{'\"])({'|'.join(PACKAGES)})(?=\.\w)")
_MARK = "isograd_package_"
#: A marked package, and the name behind it.
MARKED = re.compile(rf"\b{_MARK}(\w+?)_\.(\w+)")


@lru_cache(maxsize=4096)
def mark(template: str) -> str:
    """A template with its packages marked."""
    return _PACKAGE.sub(rf"{_MARK}\1_", template)


def mark_first(code: str) -> str:
    """Code whose first name alone means a package."""
    found = _PACKAGE.match(code)
    return code if found is None else f"{_MARK}{found[1]}_{code[found.end() :]}"


def marked(entry: Entry) -> Entry:
    """The entry with marks for packages in its templates."""
    return replace(
        entry, rewrite=mark(entry.rewrite), others=tuple(mark(text) for text in entry.others)
    )


def packages_in(code: str) -> set[str]:
    """The packages that are marked."""
    return {found[1] for found in MARKED.finditer(code)}


def with_names(code: str, names: Mapping[str, str]) -> str:
    """Code with each marked package under its name."""
    return MARKED.sub(lambda found: f"{names[found[1]]}.{found[2]}", code)
