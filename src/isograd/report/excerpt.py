"""Marked source as lines to draw: pieces with a tone, marks below them, gaps between."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from isograd.report.document import Code, CodeMark, CodePair, Tone

#: Longest part of a line that is shown, in characters.
LONGEST = 400


@dataclass(frozen=True)
class Part:
    """A piece of a line."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class CodeLine:
    """A line of source with the marks that have text; number 0 means lines left out."""

    number: int
    parts: tuple[Part, ...] = ()
    marks: tuple[CodeMark, ...] = ()


@dataclass(frozen=True)
class PairLine:
    """A line of both sides; kind: "same", "changed", "gap" or "mark"."""

    kind: str
    old_number: int = 0
    old: str = ""
    new_number: int = 0
    new: str = ""
    mark: CodeMark | None = None


def excerpt(code: Code) -> list[CodeLine]:
    """All lines, or with a context the lines around the marks that have text."""
    marks = _by_line(code.marks)
    texts = _cut(code.text)
    lines = [CodeLine(0, (), tuple(marks[0]))] if marks[0] else []
    lines += [
        _code_line(number, text, marks[number])
        for number, text in enumerate(texts, code.first_line)
    ]
    return lines if code.context is None else _around(lines, code.context)


def _by_line(marks: Sequence[CodeMark]) -> dict[int, list[CodeMark]]:
    found: dict[int, list[CodeMark]] = defaultdict(list)
    for mark in marks:
        found[mark.line].append(mark)
    return found


def _cut(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines]


def _code_line(number: int, text: str, marks: list[CodeMark]) -> CodeLine:
    parts = []
    position = 0
    for mark in sorted(marks, key=lambda mark: mark.column):
        start = mark.column - 1
        if mark.length and position <= start < len(text):
            parts.append(Part(text[position:start]))
            parts.append(Part(text[start : start + mark.length], mark.tone))
            position = start + mark.length
    parts.append(Part(text[position:]))
    shown = (Part(part.text.replace("\t", "    "), part.tone) for part in parts if part.text)
    return CodeLine(number, tuple(shown), tuple(mark for mark in marks if mark.label or mark.text))


def _around(lines: list[CodeLine], context: int) -> list[CodeLine]:
    kept: set[int] = set()
    for position, line in enumerate(lines):
        if line.marks:
            kept.update(range(max(0, position - context), position + context + 1))
    found: list[CodeLine] = []
    before = -1
    for position in sorted(kept & set(range(len(lines)))):
        if position != before + 1:
            found.append(CodeLine(0))
        found.append(lines[position])
        before = position
    return found


def side_by_side(pair: CodePair) -> list[PairLine]:
    """The changed lines with a few around them, and the marks at their lines of the old text."""
    old, new = (
        [line.replace("\t", "    ") for line in _cut(text)] for text in (pair.old, pair.new)
    )
    marks = _by_line(pair.marks)
    rows = [PairLine("mark", mark=mark) for mark in marks.pop(0, ())]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for position, group in enumerate(matcher.get_grouped_opcodes(pair.context)):
        if position or group[0][1]:
            rows.append(PairLine("gap"))
        for tag, a, b, c, d in group:
            rows += _paired(tag == "equal", (a, old[a:b]), (c, new[c:d]), marks)
    return rows


def _paired(
    is_same: bool,
    old: tuple[int, list[str]],
    new: tuple[int, list[str]],
    marks: dict[int, list[CodeMark]],
) -> list[PairLine]:
    found: list[PairLine] = []
    for i in range(max(len(old[1]), len(new[1]))):
        left = (old[0] + i + 1, old[1][i]) if i < len(old[1]) else (0, "")
        right = (new[0] + i + 1, new[1][i]) if i < len(new[1]) else (0, "")
        found.append(PairLine("same" if is_same else "changed", *left, *right))
        if left[0]:
            found += [PairLine("mark", mark=mark) for mark in marks.pop(left[0], ())]
    return found
