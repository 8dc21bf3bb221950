"""What several detectors ask of a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.static_graph.scope import (
    LIST,
    is_self_attribute,
)
from isograd.static_graph.values import Locals

Found = Iterator[ast.AST]


CHANGES = frozenset("append extend insert pop remove clear reverse sort".split())


Position = tuple[int, int]


def position(node: ast.AST) -> Position:
    """Where a node stands: line and column."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def end_position(node: ast.AST) -> Position:
    """Where a node ends."""
    return getattr(node, "end_lineno", None) or 0, getattr(node, "end_col_offset", None) or 0


def changes(node: ast.AST, own: Locals, methods: frozenset[str] | tuple[str, ...]) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
        and own.of(node.func.value) == LIST
    )


def is_known(own: Locals, name: str) -> bool:
    for scope in own.file.with_attributes(own.cls):
        if name in scope.kinds or any(_binds(part, name) for part in scope.node.body):
            return True
    return False


def binds_self(target: ast.expr) -> bool:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return any(is_self_attribute(part) for part in parts)


def _binds(part: ast.stmt, name: str) -> bool:
    targets = part.targets if isinstance(part, ast.Assign) else []
    if isinstance(part, ast.AnnAssign):
        targets = [part.target]
    return any(isinstance(t, ast.Name) and t.id == name for t in targets)
