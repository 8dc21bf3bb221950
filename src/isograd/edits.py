"""Edits of source files: one piece of text for another, shown as a diff or written.

An edit holds the text that it replaces, so a file that has changed meanwhile is left alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from isograd.errors import UsageError
from isograd.files import write_bytes

#: What ends a line for Python's parser.
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, order=True)
class SourceEdit:
    """New text in place of old text.

    path: of the file.  line, column: where the old text begins; lines count from 1, columns from
    0 in bytes of UTF-8, as in Python's syntax trees.
    """

    path: str
    line: int
    column: int
    old: str
    new: str

    @property
    def where(self) -> str:
        """``file:line``, without folders."""
        return f"{Path(self.path).name}:{self.line}"


def edited(text: str, edits: Iterable[SourceEdit]) -> str:
    """A file's text with the edits made; raises UsageError where the old text is not there."""
    content = text.encode("utf-8")
    starts = [0, *(found.end() for found in _LINE_END.finditer(content))]
    changed = content
    taken = len(content)
    for edit in sorted(set(edits), reverse=True):
        old = edit.old.encode("utf-8")
        start = starts[edit.line - 1] + edit.column if edit.line <= len(starts) else len(content)
        end = start + len(old)
        if content[start:end] != old:
            raise UsageError(
                f"{edit.path}:{edit.line} no longer holds `{edit.old}`",
                "Run isograd verify again, so that the fix is made for the file as it is now.",
            )
        if end > taken:
            raise UsageError(
                f"two fixes change {edit.path}:{edit.line}",
                "Apply one of them by hand, and run isograd verify again.",
            )
        changed = changed[:start] + edit.new.encode("utf-8") + changed[end:]
        taken = start
    return changed.decode("utf-8")


def diff(edits: Sequence[SourceEdit]) -> str:
    """The edits of all files as one unified diff."""
    parts: list[str] = []
    for path, old, new in _files(edits):
        name = path.as_posix().lstrip("/")
        lines = difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}"
        )
        parts += [line if line.endswith("\n") else f"{line}\n" for line in lines]
    return "".join(parts)


def apply(edits: Sequence[SourceEdit]) -> tuple[Path, ...]:
    """Write the edited files, each atomically; the files that changed.

    Raises UsageError before anything is written where an edit does not fit its file.
    """
    files = _files(edits)
    for path, _, new in files:
        write_bytes(path, new.encode("utf-8"))
    return tuple(path for path, *_ in files)


def _files(edits: Sequence[SourceEdit]) -> list[tuple[Path, str, str]]:
    by_path: dict[str, list[SourceEdit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    found = []
    for name in sorted(by_path):
        path = Path(name)
        try:
            old = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{name} cannot be read as UTF-8: {error}", "Apply the fix by hand."
            ) from error
        found.append((path, old, edited(old, by_path[name])))
    return found
