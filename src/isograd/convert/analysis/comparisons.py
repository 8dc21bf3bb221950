"""Which classes of torch a file compares with each other."""

from __future__ import annotations

import ast

from isograd.convert.tree import is_type_of
from isograd.scan.state import REFERENCE, State
from isograd.static_graph.scope import below


def compared(tree: ast.Module, state: State) -> frozenset[str]:
    """The classes of torch beside `==`, `is` or `in`, but for those of an instance's type."""
    named = {
        (line, column): api
        for line, column, api, how in state.uses
        if how is REFERENCE and state.names.kind(api) == "M"
    }
    if not named:
        return frozenset()
    return frozenset(
        named[part.lineno, part.col_offset]
        for node in below(tree)
        if isinstance(node, ast.Compare)
        if not any(is_type_of(operand) for operand in (node.left, *node.comparators))
        for operand in (node.left, *node.comparators)
        for part in below(operand)
        if isinstance(part, (ast.Name, ast.Attribute))
        if (part.lineno, part.col_offset) in named
    )
