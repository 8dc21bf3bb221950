"""Attributes whose tensor something else keeps while it changes: `log.append(self.total)`.

By names alone: whose attribute is read is seldom known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.tree import Tree

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PUTTING = frozenset("append insert extend appendleft setdefault put".split())
_DISPLAYS = (ast.List, ast.Dict)


def is_kept(name: str, tree: Tree) -> bool:
    """Whether a file puts what an attribute holds elsewhere, and reads that behind a change."""
    returning = {
        function.name
        for function in tree.of(*_FUNCTIONS)
        for part in tree.walked(function)
        if isinstance(part, ast.Return) and getattr(part.value, "attr", "") == name
    }
    return any(_keeps(node, name, tree) for node in _read(name, returning, tree))


def _read(name: str, returning: set[str], tree: Tree) -> Iterator[ast.expr]:
    """Expressions that mean the attribute's tensor: its own, a property, and what methods return.

    returning: the functions that return it.
    """
    for node in tree.of(ast.Attribute):
        if isinstance(node.ctx, ast.Load) and (node.attr == name or node.attr in returning):
            parent = tree.parents.get(node)
            is_called = isinstance(parent, ast.Call) and parent.func is node
            if not is_called:
                yield node
            elif isinstance(parent, ast.Call) and node.attr in returning:
                yield parent


def _keeps(node: ast.expr, name: str, tree: Tree) -> bool:
    """Whether a statement keeps an expression's value where it is read behind a change."""
    parent = tree.parents.get(node)
    if isinstance(parent, _DISPLAYS):
        parent = tree.parents.get(parent)
        return isinstance(parent, ast.Assign) or _puts(parent)
    if _puts(parent):
        return True
    if not isinstance(parent, ast.Assign) or parent.value is not node:
        return False
    for target in parent.targets:
        if isinstance(target, ast.Subscript):
            return True
        if isinstance(target, ast.Name) and _is_read_behind(target.id, parent, node, name, tree):
            return True
    return False


def _puts(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _PUTTING


def _is_read_behind(kept: str, bound: ast.Assign, value: ast.expr, name: str, tree: Tree) -> bool:
    """Whether a name is read behind a change of the attribute, or a call of the same object."""
    inside = [part for part in tree.walked(tree.scope(bound)) if _start(part) > _end(bound)]
    changes = [
        _end(part)
        for part in inside
        if (isinstance(part, ast.Call) and _root(part.func) == _root(value))
        or (isinstance(part, ast.AugAssign) and getattr(part.target, "attr", "") == name)
    ]
    names = [part for part in inside if isinstance(part, ast.Name) and part.id == kept]
    stored = [_start(part) for part in names if isinstance(part.ctx, ast.Store)]
    last = min(stored, default=None)
    return any(
        isinstance(part.ctx, ast.Load) and (last is None or _start(part) < last)
        for part in names
        if any(_start(part) > change for change in changes)
    )


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


def _start(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def _end(node: ast.AST) -> tuple[int, int]:
    return (getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))
