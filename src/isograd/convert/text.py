"""One file's text with edits that compose: what no edit touches keeps every byte.

Python's syntax trees count columns in bytes of UTF-8.  So the text is held as those bytes, one
character for each (Latin-1), and places of the tree are plain offsets.
"""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

#: What ends a line for Python's parser; `str.splitlines` knows more.
_LAST = chr(0x10FFFF)
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, order=True)
class Edit:
    """New text in place of that from `start` to `end` (offsets); an insertion where they agree."""

    start: int
    end: int
    text: str


class Text:
    """A text, and the edits that were made so far."""

    def __init__(self, text: str) -> None:
        self.original = narrow(text)
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(self.original))]
        found = _LINE_END.search(self.original)
        self.newline = found.group() if found else "\n"
        self._edits: list[Edit] = []

    @property
    def is_changed(self) -> bool:
        """Whether there is any edit."""
        return bool(self._edits)

    def offset(self, line: int, column: int) -> int:
        """The offset of a place of the tree: lines from 1, columns from 0 in bytes."""
        return self._starts[line - 1] + column

    def line_start(self, line: int) -> int:
        """Where a line begins, counted from 1; a line after the last is the end."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.original)

    def line_end(self, line: int) -> int:
        """Where a line's text ends, before its line end."""
        stop = self.line_start(line + 1)
        while stop > self.line_start(line) and self.original[stop - 1] in "\r\n":
            stop -= 1
        return stop

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The offsets of a node."""
        starts = self._starts
        return (
            starts[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            starts[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def without(self, statement: ast.stmt, *, is_needed: bool = False) -> tuple[int, int, str]:
        """The edit that leaves a statement out with its lines; `pass` where these hold more.

        is_needed: the block that it stands in would be empty.
        """
        start, end = self.span(statement)
        stop = statement.end_lineno or statement.lineno
        first, last = self.line_start(statement.lineno), self.line_end(stop)
        if is_needed or f"{self.original[first:start]}{self.original[end:last]}".strip():
            return start, end, "pass"
        return first, self.line_start(stop + 1), ""

    def raw(self, node: ast.AST) -> str:
        """The node's own text without edits."""
        start, end = self.span(node)
        return self.original[start:end]

    def source(self, start: int, end: int) -> str:
        """The text from `start` to `end` with the edits inside, but those at its edges."""
        first = bisect_right(self._edits, Edit(start, start, _LAST))
        return self._joined(first, start, end)

    def _joined(self, first: int, start: int, end: int) -> str:
        parts: list[str] = []
        at = start
        for position in range(first, len(self._edits)):
            edit = self._edits[position]
            if edit.start >= end:
                break
            parts.append(self.original[at : edit.start])
            parts.append(edit.text)
            at = edit.end
        parts.append(self.original[at:end])
        return "".join(parts)

    def replace(self, start: int, end: int, text: str) -> None:
        """Put text (Latin-1 form) in place of a span; edits inside it are absorbed."""
        if start < end:
            first = bisect_right(self._edits, Edit(start, start, _LAST))
            last = first
            while last < len(self._edits) and self._edits[last].start < end:
                last += 1
            del self._edits[first:last]
        insort(self._edits, Edit(start, end, text))

    def insert(self, at: int, text: str) -> None:
        """Put text before an offset, behind what was put there before."""
        position = bisect_left(self._edits, Edit(at, at, ""))
        if position < len(self._edits):
            found = self._edits[position]
            if found.start == found.end == at:
                self._edits[position] = Edit(at, at, found.text + text)
                return
        insort(self._edits, Edit(at, at, text))

    def edits(self) -> tuple[Edit, ...]:
        """The edits so far, in the order of the text."""
        return tuple(self._edits)

    def covering(self, at: int) -> Edit | None:
        """The edit in whose span an offset lies, not at its start."""
        position = bisect_left(self._edits, Edit(at, -1, ""))
        if position and self._edits[position - 1].end > at:
            return self._edits[position - 1]
        return None

    def result(self) -> str:
        """The whole text with all edits."""
        return wide(self._joined(0, 0, len(self.original) + 1))


_FORMAT = re.compile(r"""(?:[rR]?[fF]|[fF][rR])(\"{3}|'{3}|"|')""")


def narrow(text: str) -> str:
    """The bytes of a text in UTF-8, one character for each."""
    return text if text.isascii() else text.encode(errors="surrogatepass").decode("latin-1")


def wide(text: str) -> str:
    """The text again that `narrow` was given."""
    return text if text.isascii() else text.encode("latin-1").decode(errors="surrogatepass")


def comments(text: Text) -> list[tuple[int, str]]:
    """Each comment of a text with its offset; none where the text has no tokens."""
    found: list[tuple[int, str]] = []
    reader = io.StringIO(text.original, newline="").readline
    try:
        for token in tokenize.generate_tokens(reader):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                found.append((text.offset(line, column), token.string))
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def format_strings(text: Text) -> list[tuple[int, str]]:
    """Each f-string of a text: its offset and its quotes; none where the text has no tokens."""
    found: list[tuple[int, str]] = []
    reader = io.StringIO(text.original, newline="").readline
    begins = (tokenize.STRING, getattr(tokenize, "FSTRING_START", tokenize.STRING))
    try:
        for token in tokenize.generate_tokens(reader):
            opening = _FORMAT.match(token.string) if token.type in begins else None
            if opening is not None:
                line, column = token.start
                found.append((text.offset(line, column), opening[1]))
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


@dataclass(frozen=True)
class Encoding:
    """How a file's bytes are read and written: its codec, and whether a mark stands before it."""

    name: str
    has_mark: bool = False

    def encode(self, text: str) -> bytes:
        """The file's bytes; what the encoding cannot hold is written as an escape."""
        mark = codecs.BOM_UTF8 if self.has_mark else b""
        return mark + text.encode(self.name, errors="backslashreplace")
