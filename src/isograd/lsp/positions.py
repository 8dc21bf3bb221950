"""Places in a text: Python's lines and bytes, an editor's lines and units, plain offsets."""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol import types

#: What ends a line for Python's parser and for the protocol alike; `str.splitlines` knows more.
_LINE_END = re.compile(r"\r\n|\n|\r")
_BEYOND_BASIC_PLANE = 0xFFFF


class Lines:
    """Converts places of one text; offsets count characters from 0.

    encoding: in whose units the editor counts columns, "utf-16" unless agreed otherwise.
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self.encoding = encoding
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
        self._is_ascii = text.isascii()

    @property
    def newline(self) -> str:
        """The line end that the text uses."""
        found = _LINE_END.search(self.text)
        return found.group() if found else "\n"

    def start(self, line: int) -> int:
        """The offset at which a line begins, counted from 0; a line after the last is the end."""
        return self._starts[line] if line < len(self._starts) else len(self.text)

    def end(self, line: int) -> int:
        """The offset at which a line's text ends, before its line end."""
        stop = self.start(line + 1)
        while stop > self.start(line) and self.text[stop - 1] in "\r\n":
            stop -= 1
        return stop

    def line(self, offset: int) -> int:
        """The line, counted from 0, in which an offset lies."""
        return bisect_right(self._starts, offset) - 1

    def from_syntax(self, line: int, column_bytes: int) -> int:
        """The offset of a place in a syntax tree: lines from 1, columns in bytes of UTF-8."""
        start = self.start(line - 1)
        if self._is_ascii:
            return start + column_bytes
        content = self.text[start : self.start(line)].encode(errors="surrogatepass")
        return start + len(content[:column_bytes].decode(errors="ignore"))

    def from_position(self, position: types.Position) -> int:
        """The offset of an editor's place; one beyond a line's end is the line's end."""
        offset, stop = self.start(position.line), self.end(position.line)
        if self._is_ascii:
            return min(offset + position.character, stop)
        units = 0
        while offset < stop and units < position.character:
            units += self._units(self.text[offset])
            offset += 1
        return offset

    def position(self, offset: int) -> types.Position:
        """An offset as an editor counts: line from 0, units within it."""
        line = self.line(offset)
        start = self.start(line)
        if self._is_ascii:
            return types.Position(line, offset - start)
        return types.Position(line, sum(map(self._units, self.text[start:offset])))

    def range(self, start: int, end: int) -> types.Range:
        """Two offsets as an editor's range."""
        return types.Range(self.position(start), self.position(end))

    def _units(self, letter: str) -> int:
        if self.encoding == "utf-8":
            return len(letter.encode(errors="surrogatepass"))
        return 2 if self.encoding == "utf-16" and ord(letter) > _BEYOND_BASIC_PLANE else 1
