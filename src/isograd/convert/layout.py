"""A call written anew without disturbing how its arguments are laid out."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from isograd.convert.file import FileEdit
from isograd.convert.text import Text, wide
from isograd.knowledge.rewrite import ROOMY, is_closed

_SPACE = re.compile(r"[ \t]*")
#: What stands between an argument's brackets and other arguments.
_BETWEEN = re.compile(r"(?:[\s,\\]|#[^\n]*)*")


@dataclass(frozen=True)
class _Part:
    """An argument: its keyword or an empty text, its value's text, and its span."""

    keyword: str
    value: str
    start: int
    end: int


def write_call(file: FileEdit, node: ast.Call, code: str) -> None:
    """Put code in place of a call; lines and comments between its arguments stay if they can."""
    start, end = file.text.span(node)
    original = file.text.original[start:end]
    if "\n" in original and _in_place(file, node, code):
        return
    write(file, node, code)


def write(file: FileEdit, node: ast.expr, code: str) -> None:
    """Put code in place of an expression, in brackets where it needs them there."""
    start, end = file.text.span(node)
    for comment in file.comments_between(start, end):
        if comment not in code:
            file.keep_comment(node, comment)
    file.replace(node, code if stands(file, node, code) else f"({code})")


def stands(file: FileEdit, node: ast.expr, code: str) -> bool:
    """Whether the code needs no brackets where the node stood."""
    made = parsed(code)
    if made is None:
        return False
    parent = file.tree.parents.get(node)
    if isinstance(made, ast.Constant) and isinstance(made.value, (int, float)):
        return not (isinstance(parent, ast.Attribute) and parent.value is node)
    if is_closed(wide(code)):
        return True
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    return isinstance(parent, ROOMY) and "\n" not in code


@lru_cache(maxsize=4096)
def parsed(code: str) -> ast.expr | None:
    """An expression from its code, or None."""
    try:
        return ast.parse(wide(code), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


def _in_place(file: FileEdit, node: ast.Call, code: str) -> bool:
    """Write only what differs between two calls; False where they are too different."""
    made = parsed(code)
    if not isinstance(made, ast.Call) or (not made.args and not made.keywords):
        return False
    inner = Text(wide(code))
    opening = file.text.original.index("(", file.text.span(node.func)[1])
    old = _originals(file, node, opening)
    wanted: list[ast.expr | ast.keyword] = [*made.args, *made.keywords]
    new = [_made(inner, part) for part in wanted]
    new.sort(key=lambda part: part.start)
    matched = _match(old, new)
    if matched is None:
        return False
    _write_parts(file, old, new, matched, opening)
    file.replace(node.func, inner.raw(made.func))
    return True


def _originals(file: FileEdit, node: ast.Call, opening: int) -> list[_Part]:
    """The arguments of a call as they stand, each with the brackets around it."""
    found: list[_Part] = []
    text, at = file.text.original, opening + 1
    given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    for part in sorted(given, key=file.text.span):
        start, end = file.text.span(part)
        first = _BETWEEN.match(text, at).end()  # type: ignore[union-attr] # matches nothing, too
        inner = first
        while inner < start:  # brackets of its own
            inner = _BETWEEN.match(text, inner + 1).end()  # type: ignore[union-attr]
            end = _BETWEEN.match(text, end).end() + 1  # type: ignore[union-attr]
        start, at = min(first, start), end
        if isinstance(part, ast.keyword):
            found.append(_Part(part.arg or "**", file.argument(part.value), start, end))
        else:
            found.append(_Part("", file.argument(part), start, end))
    return found


def _made(text: Text, node: ast.expr | ast.keyword) -> _Part:
    start, end = text.span(node)
    if isinstance(node, ast.keyword):
        return _Part(node.arg or "**", text.raw(node.value), start, end)
    return _Part("", text.raw(node), start, end)


def _match(old: list[_Part], new: list[_Part]) -> list[int | None] | None:
    """For each new argument the old one whose value it is; None if their orders cross."""
    found: list[int | None] = [None] * len(new)
    free = set(range(len(old)))

    def take(position: int, fits: Callable[[_Part], bool]) -> None:
        wanted = [i for i in sorted(free) if _same(old[i].value, new[position].value)]
        wanted = [i for i in wanted if fits(old[i])]
        if wanted and found[position] is None:
            found[position] = wanted[0]
            free.discard(wanted[0])

    for position, part in enumerate(new):
        if part.keyword:
            take(position, lambda other, part=part: other.keyword == part.keyword)  # type: ignore[misc]
    for position, part in enumerate(new):
        if not part.keyword:
            take(position, lambda other: not other.keyword)
    for position, part in enumerate(new):
        if found[position] is None:
            before = max((i for i in found[:position] if i is not None), default=-1)
            after = min((i for i in found[position + 1 :] if i is not None), default=len(old))
            between = [i for i in sorted(free) if before < i < after]
            found[position] = next((i for i in between if _same(old[i].value, part.value)), None)
            free -= {i for i in found if i is not None}
    used = [position for position in found if position is not None]
    if not used or used != sorted(used):
        return None
    # An old argument that stands elsewhere among the new ones would be written twice or lost.
    loose = [part.value for part, position in zip(new, found, strict=True) if position is None]
    left = [old[i].value for i in free]
    if any(value == part or (len(value) > 1 and value in part) for value in left for part in loose):
        return None
    return found


def _same(old: str, new: str) -> bool:
    return old == new or f"({old})" == new


def _write_parts(
    file: FileEdit,
    old: list[_Part],
    new: list[_Part],
    matched: list[int | None],
    opening: int,
) -> None:
    text = file.text
    used = {position for position in matched if position is not None}
    for i, part in enumerate(old):
        if i not in used:
            start, end = _removed(text.original, part, is_last=i == len(old) - 1)
            text.replace(start, end, "")
    after: int | None = None
    waiting: list[str] = []
    for part, position in zip(new, matched, strict=True):
        written = f"{part.keyword}={part.value}" if part.keyword not in ("", "**") else part.value
        if position is None:
            if after is None:
                waiting.append(f"{written}, ")
            else:
                text.insert(after, f", {written}")
            continue
        previous = old[position]
        if waiting:
            first = text.original[opening + 1 :]
            text.insert(opening + 1 + len(first) - len(first.lstrip()), "".join(waiting))
            waiting = []
        _rename(file, previous, part)
        after = previous.end


def _rename(file: FileEdit, old: _Part, new: _Part) -> None:
    if old.keyword == new.keyword:
        return
    if old.keyword and new.keyword:
        file.text.replace(old.start, old.start + len(old.keyword), new.keyword)
    elif new.keyword:
        file.text.insert(old.start, f"{new.keyword}=")
    else:
        stop = file.text.original.index("=", old.start) + 1
        stop += len(_SPACE.match(file.text.original, stop).group())  # type: ignore[union-attr]
        file.text.replace(old.start, stop, "")


def _removed(text: str, part: _Part, *, is_last: bool) -> tuple[int, int]:
    """The span of an argument with its comma, and with its line where it stands alone there."""
    start, end = part.start, part.end
    after = end
    while after < len(text) and text[after] in " \t":
        after += 1
    if after < len(text) and text[after] == ",":
        after += 1
        line = text.rfind("\n", 0, start) + 1
        rest = re.compile(r"[ \t]*(\r\n|\n|\r)").match(text, after)
        if rest is not None and not text[line:start].strip():
            return line, rest.end()
        while after < len(text) and text[after] in " \t":
            after += 1
        return start, after
    if is_last:
        before = start
        while before and text[before - 1] in " \t\r\n":
            before -= 1
        if before and text[before - 1] == ",":
            return before - 1, end
    return start, end


def operand(file: FileEdit, node: ast.expr) -> str:
    """An expression, as it is written by now, beside an operator or before a dot."""
    return closed(file.source(node))


def closed(code: str) -> str:
    """Code as an operand, in brackets where it needs them."""
    return code if is_closed(wide(code)) else f"({code})"


def write_statement(file: FileEdit, node: ast.expr | ast.stmt, code: str) -> None:
    """Put a statement in place of another, or of an expression that is one, with its brackets."""
    around = file.tree.parents.get(node)
    if isinstance(around, ast.Expr):
        node = around
    start, end = file.text.span(node)
    for comment in file.comments_between(start, end):
        if comment not in code:
            file.keep_comment(node, comment)
    file.replace(node, code)
