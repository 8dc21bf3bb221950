"""Where the function that makes a step stands: above what holds the loop, at module level."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.training.model import Repeated


def place_above(loop: Repeated, file: FileEdit, *, is_script: bool) -> int:
    """The offset in the text at which it begins; is_script: the loop is in no function."""
    top: ast.AST = loop
    while file.tree.parents[top] is not file.tree.module:
        top = file.tree.parents[top]
    assert isinstance(top, ast.stmt)
    if is_script and not isinstance(top, ast.ClassDef):
        first = top.lineno
    else:
        decorated = [part.lineno for part in getattr(top, "decorator_list", [])]
        first = min([top.lineno, *decorated])
    return _above_comments(first, file)


def _above_comments(line: int, file: FileEdit) -> int:
    """Before the comments that stand directly above a line."""
    lines = file.text.original.split("\n")
    while line > 1 and lines[line - 2].startswith("#"):
        line -= 1
    return file.text.line_start(line)
