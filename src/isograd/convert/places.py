"""Where a node stands in its file, by which facts outlive the tree that they were read from."""

from __future__ import annotations

import ast

#: Line, column, last line, last column.
Place = tuple[int, int, int, int]


def place(node: ast.AST) -> Place:
    """Where a node stands."""
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
