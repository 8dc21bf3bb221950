"""Whether the dictionaries in which torch's modules keep their parameters are only read."""

from __future__ import annotations

import ast
from collections.abc import Collection

from isograd.convert.places import Place, place

_READS = frozenset("items keys values get copy".split())
_FUNCTIONS = frozenset("len list dict bool any sorted iter set tuple enumerate".split())


def only_reads(module: ast.Module, places: Collection[Place]) -> bool:
    """Whether all of these attributes stand where nothing changes or keeps a dictionary."""
    return all(
        _is_read(child, parent)
        for parent in ast.walk(module)
        for child in ast.iter_child_nodes(parent)
        if isinstance(child, ast.Attribute) and place(child) in places
    )


def _is_read(node: ast.Attribute, parent: ast.AST) -> bool:
    """`if m._parameters`, `for name in m._parameters`, `m._parameters.items()`, `len(…)`."""
    if not isinstance(node.ctx, ast.Load):
        return False
    if isinstance(parent, ast.Attribute):
        return parent.attr in _READS
    if isinstance(parent, ast.Call):
        return getattr(parent.func, "id", "") in _FUNCTIONS
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load)
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    return isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Compare))
