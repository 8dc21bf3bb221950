"""`opt.zero_grad(); loss.backward(); opt.step()`, each statement on a line of its own.

for x in loader: loss = net(x).mean(); loss.backward(); opt.step()

What becomes part of a step is taken by its lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from isograd.convert.text import Text
from isograd.convert.training.paths import method_of, statement_call
from isograd.static_graph.scope import below, blocks

#: A text without this has no such lines.
WORD = ";"
_INDENT = 4
_LAST = re.compile(r"[ \t]*;")
_TAKING = ("backward", "step", "zero_grad")


def split_lines(text: str, tree: ast.Module) -> list[tuple[int, int, str]]:
    """The edits of a file that put the statements of a step on lines of their own."""
    places = Text(text)
    found: list[tuple[int, int, str]] = []
    for node in below(tree):
        for block in blocks(node):
            if any(map(_takes_gradients, block)):
                found += _edits(block, places)
    return found


def _takes_gradients(statement: ast.stmt) -> bool:
    return method_of(statement_call(statement) or statement)[1] in _TAKING


def _edits(block: list[ast.stmt], text: Text) -> Iterator[tuple[int, int, str]]:
    """Line ends between the statements of a block, and before the first behind a colon."""
    first, start = block[0], text.span(block[0])[0]
    is_inline = bool(text.original[text.line_start(first.lineno) : start].strip())
    indent = first.col_offset
    shared = [
        (before, after) for before, after in pairwise(block) if before.end_lineno == after.lineno
    ]
    if not shared:
        return
    if is_inline:
        line = text.original[text.line_start(first.lineno) : start]
        indent = len(line) - len(line.lstrip()) + _INDENT
        gap = len(line) - len(line.rstrip())
        if not line.rstrip().endswith(":"):
            return  # what the block belongs to is not on this line alone
        yield start - gap, start, f"{text.newline}{' ' * indent}"
    end = text.span(block[-1])[1]
    if last := _LAST.match(text.original, end):
        yield end, last.end(), ""
    for before, after in shared:
        yield text.span(before)[1], text.span(after)[0], f"{text.newline}{' ' * indent}"
