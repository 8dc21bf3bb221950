"""Long lines broken at the commas of their outermost brackets, as a formatter would."""

from __future__ import annotations

import io
import tokenize

WIDTH = 100
_OPEN, _CLOSE = "([{", ")]}"


def laid_out(line: str, indent: int) -> list[str]:
    """A logical line as lines that fit the width, each with its indent."""
    text = " " * indent + line
    if len(text) <= WIDTH:
        return [text]
    split = _widest(line)
    if split is None:
        return [text]
    head, inside, tail = split
    parts = _elements(inside)
    # brackets around one value are no tuple, and a comma would make them one
    is_value = len(parts) == 1 and head[-1] == "(" and not _is_call(head)
    comma = "" if is_value and not inside.rstrip().endswith(",") else ","
    lines = [" " * indent + head]
    for part in parts:
        lines += laid_out(f"{part}{comma}", indent + 4)
    return [*lines, " " * indent + tail]


def double_quoted(text: str) -> str:
    """The source with its plain strings in double quotes."""
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token in reversed(tokens):
        plain = token.type == tokenize.STRING and token.string.startswith("'")
        if plain and not any(mark in token.string for mark in ('"', "\\", "\n")):
            (row, begin), (_, end) = token.start, token.end
            line = lines[row - 1]
            lines[row - 1] = f'{line[:begin]}"{token.string[1:-1]}"{line[end:]}'
    return "".join(lines)


def _is_call(head: str) -> bool:
    before = head[:-1]
    return bool(before) and (before[-1].isalnum() or before[-1] in "_])")


def _widest(line: str) -> tuple[str, str, str] | None:
    """The text before a bracket, in it, and from its end; the widest bracket."""
    best: tuple[int, int] | None = None
    for start, end in _outer(line):
        if best is None or end - start > best[1] - best[0]:
            best = (start, end)
    if best is None or best[1] - best[0] < 2:
        return None
    start, end = best
    parts = _elements(line[start + 1 : end])
    if not parts or any(part.startswith("for ") or " for " in part for part in parts):
        return None
    return line[: start + 1], line[start + 1 : end], line[end:]


def _outer(line: str) -> list[tuple[int, int]]:
    found, depth, start, quote = [], 0, 0, ""
    for position, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPEN:
            start = position if depth == 0 else start
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if depth == 0:
                found.append((start, position))
    return found


def _elements(text: str) -> list[str]:
    parts, depth, begin, quote = [], 0, 0, ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:position].strip())
            begin = position + 1
    parts.append(text[begin:].strip())
    return [part for part in parts if part]
