"""Lists that a function writes out itself, and goes through backwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: Methods that change a list while it is gone through, which a copy does not see.
_CHANGES = frozenset("append extend insert pop remove clear sort reverse".split())
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def reversed_lists(function: _Function) -> Iterator[ast.Call]:
    """The calls `reversed(name)` of names that hold nothing but lists of the function."""
    nodes = list(ast.walk(function))
    calls = [
        node
        for node in nodes
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "reversed"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Name)
        and not node.keywords
    ]
    for call in calls:
        name = call.args[0].id  # type: ignore[attr-defined]  # asked above
        if is_own_list(name, nodes) and not _is_changed(name, call, nodes):
            yield call


def is_own_list(name: str, nodes: list[ast.AST]) -> bool:
    """Whether plain assignments of lists that are written out are all that binds a name."""
    values = [
        node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if getattr(target, "id", "") == name
    ]
    bound = [
        node
        for node in nodes
        if (isinstance(node, ast.arg) and node.arg == name)
        or (getattr(node, "id", "") == name and not isinstance(node.ctx, ast.Load))  # type: ignore[attr-defined]
    ]
    are_lists = all(isinstance(value, (ast.List, ast.ListComp)) for value in values)
    return bool(values) and are_lists and len(bound) == len(values)


def _is_changed(name: str, call: ast.Call, nodes: list[ast.AST]) -> bool:
    """Whether the loop that goes through the list changes it."""
    return any(
        isinstance(part, ast.Attribute)
        and part.attr in _CHANGES
        and getattr(part.value, "id", "") == name
        for loop in nodes
        if isinstance(loop, ast.For) and call in ast.walk(loop.iter)
        for statement in loop.body
        for part in ast.walk(statement)
    )
